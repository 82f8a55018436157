"""What a Codex execution said and did, read from the event stream that it printed.

The stream is the agent's own account and is not trusted: a line that cannot be read is counted,
one of an unknown kind is kept by its name, and nothing in it can make the reading fail. Who looks
for what was really changed reads the delivery.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, cast

from xgent_evolve.canonical import Json

type Status = Literal["completed", "failed", "in_progress"]


@dataclass(frozen=True, slots=True)
class Message:
    """Something that the agent said."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A summary of its reasoning, as the model's service gave it."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A shell command and what it printed."""

    command: str
    output: str
    exit_code: int | None
    status: Status
    """in_progress: the stream ends before the command does."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files that the agent said it edited."""

    changes: tuple[tuple[str, str], ...]
    """Kind (add, update, delete) and path."""
    status: Status


@dataclass(frozen=True, slots=True)
class TodoList:
    """The agent's plan as it last stood."""

    items: tuple[tuple[bool, str], ...]
    """Whether it is done, and what it is."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that is not the shell."""

    name: str
    arguments: str
    result: str
    status: Status


@dataclass(frozen=True, slots=True)
class Problem:
    """A warning or an error of Codex itself."""

    text: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event of a kind that this version does not know."""

    kind: str
    text: str
    """The event as JSON."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of the stream that was not kept when it was captured."""

    dropped_bytes: int


type Entry = (
    Message | Reasoning | Command | FileChange | TodoList | ToolCall | Problem | Unknown | Cut
)


@dataclass(frozen=True, slots=True)
class Transcript:
    """One execution's account of itself."""

    entries: tuple[Entry, ...]
    """In the order in which they began."""
    thread: str = ""
    """Codex's name for the conversation; empty when it announced none."""
    model_turns: int = 0
    """Turns that were begun."""
    unread_lines: int = 0
    """Lines that are no JSON objects."""


@dataclass(slots=True)
class _Reading:
    """The state of reading one stream."""

    entries: list[Entry] = field(default_factory=list[Entry])
    places: dict[str, int] = field(default_factory=dict[str, int])
    """Where the entry of each item is; items have new ids after `thread.started`."""
    thread: str = ""
    turns: int = 0
    unread: int = 0


def read_transcript(stdout: bytes, tail: bytes = b"", dropped_bytes: int = 0) -> Transcript:
    """Return what a stream tells; `tail` is its end when `dropped_bytes` lie between the two."""
    reading = _Reading()
    if not dropped_bytes:
        _read_lines(stdout + tail, reading)
    else:
        _read_lines(stdout, reading)
        reading.entries.append(Cut(dropped_bytes))
        _read_lines(tail, reading)
    return Transcript(tuple(reading.entries), reading.thread, reading.turns, reading.unread)


def _read_lines(content: bytes, reading: _Reading) -> None:
    for line in content.split(b"\n"):
        if not line.strip():
            continue
        event = _parsed(line)
        if event is None:
            reading.unread += 1
        else:
            _take(event, reading)


def _parsed(line: bytes) -> dict[str, Json] | None:
    try:
        parsed = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Json]", parsed) if isinstance(parsed, dict) else None


def _take(event: dict[str, Json], reading: _Reading) -> None:
    match event.get("type"):
        case "thread.started":
            reading.thread = reading.thread or _text(event.get("thread_id"))
            reading.places.clear()
        case "turn.started":
            reading.turns += 1
        case "turn.completed":
            pass
        case "turn.failed":
            message = _text(_object(event.get("error")).get("message"))
            reading.entries.append(Problem(f"turn failed: {message}"))
        case "error":
            reading.entries.append(Problem(_text(event.get("message"))))
        case "item.started" | "item.updated" | "item.completed":
            item = _object(event.get("item"))
            _place(_text(item.get("id")), _entry(item), reading)
        case kind:
            reading.entries.append(Unknown(_text(kind), _dumped(event)))


def _place(name: str, entry: Entry, reading: _Reading) -> None:
    """Put an item where it began; what is told of it later replaces what was told before."""
    place = reading.places.get(name)
    if name and place is not None and type(reading.entries[place]) is type(entry):
        reading.entries[place] = entry
        return
    if name:
        reading.places[name] = len(reading.entries)
    reading.entries.append(entry)


def _entry(item: dict[str, Json]) -> Entry:
    match item.get("type"):
        case "agent_message":
            return Message(_text(item.get("text")))
        case "reasoning":
            return Reasoning(_text(item.get("text")))
        case "command_execution":
            code = item.get("exit_code")
            return Command(
                _text(item.get("command")),
                _text(item.get("aggregated_output")),
                code if isinstance(code, int) and not isinstance(code, bool) else None,
                _status(item),
            )
        case "file_change":
            return FileChange(
                tuple(
                    (_text(change.get("kind")), _text(change.get("path")))
                    for change in _objects(item.get("changes"))
                ),
                _status(item),
            )
        case "todo_list":
            items = _objects(item.get("items"))
            return TodoList(
                tuple((step.get("completed") is True, _text(step.get("text"))) for step in items)
            )
        case "mcp_tool_call":
            name = ".".join(filter(None, (_text(item.get("server")), _text(item.get("tool")))))
            result = item.get("error") or item.get("result")
            return ToolCall(name, _dumped(item.get("arguments")), _dumped(result), _status(item))
        case "web_search":
            return ToolCall("web_search", _text(item.get("query")), "", _status(item))
        case "collab_tool_call":
            return ToolCall(_text(item.get("tool")), _text(item.get("prompt")), "", _status(item))
        case "error":
            return Problem(_text(item.get("message")))
        case kind:
            return Unknown(_text(kind), _dumped(item))


def _status(item: dict[str, Json]) -> Status:
    match item.get("status"):
        case "completed":
            return "completed"
        case "in_progress":
            return "in_progress"
        case None:
            return "completed"
        case _:
            return "failed"


def _dumped(value: Json) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        return "(nested too deeply to be shown)"


def _objects(value: Json) -> Iterator[dict[str, Json]]:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict):
            yield item


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""
