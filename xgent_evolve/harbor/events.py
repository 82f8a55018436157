"""What Codex recorded about its own turn: how it ended and what it used.

The event stream on stdout says how the turn ended. Token usage comes from the session records, one
`token_usage_record` per answer of the model, sub-agents included; the stream's total is used only
when there are none. Anything that cannot be read makes the usage unknown, never zero.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal, cast

from xgent_evolve.canonical import Json


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one execution; cached and reasoning tokens are parts, not additions."""

    input: int
    cached_input: int
    output: int
    reasoning_output: int

    def __add__(self, other: Usage) -> Usage:
        """Return the sum, part by part."""
        return Usage(
            self.input + other.input,
            self.cached_input + other.cached_input,
            self.output + other.output,
            self.reasoning_output + other.reasoning_output,
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """How the turn ended."""

    status: Literal["completed", "failed", "unfinished"]
    message: str = ""
    """The error's text, when it failed."""


def json_lines(content: bytes) -> Iterator[dict[str, Json]]:
    """Yield the JSON objects of a JSONL file; other lines, such as a torn last one, are skipped."""
    for line in content.split(b"\n"):
        try:
            parsed = json.loads(line)
        except (ValueError, RecursionError):  # what comes from a container may nest without end
            continue
        if isinstance(parsed, dict):
            yield cast("dict[str, Json]", parsed)


def turn_of(stdout: bytes) -> Turn:
    """Return how the turn ended, going by the event stream."""
    turn = Turn("unfinished")
    for event in json_lines(stdout):
        match event.get("type"):
            case "turn.started":
                # The last turn counts; a stream that ends in a new one says nothing about it.
                turn = Turn("unfinished")
            case "turn.completed":
                turn = Turn("completed")
            case "turn.failed":
                turn = Turn("failed", _text(_object(event.get("error")).get("message")))
            case _:
                pass
    return turn


def has_begun(stdout: bytes) -> bool:
    """Say whether Codex announced a thread: without one it was not able to start."""
    return any(event.get("type") == "thread.started" for event in json_lines(stdout))


def last_message(stdout: bytes) -> str | None:
    """Return the text of the turn's last message, or None when there is none."""
    found: str | None = None
    for event in json_lines(stdout):
        item = _object(event.get("item"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            found = _text(item.get("text"))
    return found


def usage_of(stdout: bytes, sessions: Iterable[bytes]) -> Usage | None:
    """Return the tokens used, or None when that is unknown."""
    found = [usage for content in sessions for usage in _session_usage(content)]
    if not found:
        found = [
            usage
            for event in json_lines(stdout)
            if event.get("type") == "turn.completed"
            and (usage := _usage(event.get("usage"))) is not None
        ][-1:]
    if not found:
        return None
    total = found[0]
    for usage in found[1:]:
        total = total + usage
    # A service that reports no usage is recorded as zeros: that is unknown, not free.
    return None if total.input == 0 else total


def model_error(sessions: Iterable[bytes]) -> str | None:
    """Return why the model's service ended the turn, or None when the records do not say.

    One of: model_unauthorised, model_unknown, model_quota_used_up, model_rate_limited,
    model_unavailable, model_unreachable, context_window_exceeded.
    """
    found: str | None = None
    for content in sessions:
        for line in json_lines(content):
            payload = _object(line.get("payload"))
            if line.get("type") == "event_msg" and payload.get("type") == "task_complete":
                found = _error_cause(_object(payload.get("error")).get("codex_error_info"))
    return found


def _error_cause(information: Json) -> str | None:
    if isinstance(information, str):
        return {
            "usage_limit_exceeded": "model_quota_used_up",
            "rate_limit_exceeded": "model_rate_limited",
            "internal_server_error": "model_unavailable",
            "context_window_exceeded": "context_window_exceeded",
        }.get(information)
    for name, details in _object(information).items():
        status = _object(details).get("http_status_code")
        if name == "response_too_many_failed_attempts" or status == HTTPStatus.TOO_MANY_REQUESTS:
            return "model_rate_limited"
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return "model_unauthorised"
        if status == HTTPStatus.NOT_FOUND:
            return "model_unknown"
        if name == "http_connection_failed" and status is None:
            return "model_unreachable"
        return "model_unavailable"
    return None


def _session_usage(content: bytes) -> Iterator[Usage]:
    for line in json_lines(content):
        if line.get("type") == "token_usage_record":
            usage = _usage(_object(line.get("payload")).get("usage"))
            if usage is not None:
                yield usage


def _usage(value: Json) -> Usage | None:
    fields = _object(value)
    numbers = [
        fields.get(name, 0)
        for name in (
            "input_tokens",
            "cached_input_tokens",
            "output_tokens",
            "reasoning_output_tokens",
        )
    ]
    if not fields or not all(isinstance(number, int) for number in numbers):
        return None
    return Usage(*cast("list[int]", numbers))


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
