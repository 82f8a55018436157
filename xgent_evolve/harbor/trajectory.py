"""A transcript in the Agent Trajectory Interchange Format (ATIF-v1.7) that Harbor reads. Pure.

Codex's event stream does not say which events came from one answer of the model. So every message
and every action is a step of its own, and no step claims a number of model calls or tokens; the
sums stand in `final_metrics`, where they are known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xgent_evolve.canonical import Json
from xgent_evolve.harbor.events import Usage
from xgent_evolve.harbor.transcript import (
    Command,
    Cut,
    Entry,
    FileChange,
    Message,
    Problem,
    Reasoning,
    TodoList,
    ToolCall,
    Transcript,
    Unknown,
)

FORMAT = "ATIF-v1.7"
NOTES = (
    "Made from the event stream that Codex printed. One step per message or action: the stream "
    "does not tell which of them came from one answer of the model."
)

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a trajectory says besides the transcript."""

    execution: str
    """Names the trajectory; the session is Codex's thread where it announced one."""
    prompt: str
    version: str
    """Version of Codex."""
    model: str | None
    usage: Usage | None
    """None when unknown: then there are no sums."""


def trajectory_document(transcript: Transcript, about: Conversation) -> dict[str, Json]:
    """Return the trajectory as JSON, without anything that is unknown."""
    steps: list[dict[str, Json]] = [{"source": "user", "message": clean(about.prompt)}]
    steps += _steps(transcript.entries)
    agent: dict[str, Json] = {"name": "codex", "version": about.version}
    if about.model is not None:
        agent["model_name"] = about.model
    metrics: dict[str, Json] = {"total_steps": len(steps)}
    if about.usage is not None:
        metrics |= {
            "total_prompt_tokens": about.usage.input,
            "total_cached_tokens": about.usage.cached_input,
            "total_completion_tokens": about.usage.output,
            "extra": {"reasoning_output_tokens": about.usage.reasoning_output},
        }
    return {
        "schema_version": FORMAT,
        "session_id": clean(transcript.thread) or about.execution,
        "trajectory_id": about.execution,
        "agent": agent,
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, start=1)],
        "notes": NOTES,
        "final_metrics": metrics,
        "extra": {"lines_that_are_no_events": transcript.unread_lines},
    }


def clean(text: str) -> str:
    """Return text that every JSON reader takes: without lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def _steps(entries: tuple[Entry, ...]) -> Iterator[dict[str, Json]]:
    """Yield one step per entry; reasoning goes with what follows it."""
    reasoning: list[str] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, Reasoning):
            reasoning.append(entry.text)
            continue
        step = _step(entry, f"call-{number + 1}")
        if reasoning and step["source"] == "agent":
            step["reasoning_content"] = clean("\n\n".join(reasoning))
            reasoning = []
        yield step
    if reasoning:
        text = clean("\n\n".join(reasoning))
        yield {"source": "agent", "message": "", "reasoning_content": text}


def _step(entry: Entry, call: str) -> dict[str, Json]:
    match entry:
        case Message(text=text) | Reasoning(text=text):
            return {"source": "agent", "message": clean(text)}
        case Command():
            extra: dict[str, Json] = {"status": entry.status, "exit_code": entry.exit_code}
            arguments: dict[str, Json] = {"command": clean(entry.command)}
            return _action(call, "shell", arguments, entry.output, extra)
        case FileChange(changes=changes, status=status):
            edits: list[Json] = [{"kind": clean(k), "path": clean(p)} for k, p in changes]
            return _action(call, "apply_patch", {"changes": edits}, None, {"status": status})
        case TodoList(items=items):
            plan: list[Json] = [{"step": clean(text), "completed": done} for done, text in items]
            return _action(call, "update_plan", {"plan": plan}, None, {})
        case ToolCall(name=name, result=result, status=status):
            return _action(
                call, clean(name) or "tool", _arguments(entry.arguments), result, {"status": status}
            )
        case Problem(text=text):
            return {"source": "system", "message": clean(text)}
        case Unknown(kind=kind, text=text):
            return {"source": "system", "message": clean(text), "extra": {"event": clean(kind)}}
        case Cut(dropped_bytes=dropped):
            return {"source": "system", "message": f"{dropped} bytes were not captured here"}


def _action(
    call: str, name: str, arguments: dict[str, Json], output: str | None, extra: dict[str, Json]
) -> dict[str, Json]:
    step: dict[str, Json] = {
        "source": "agent",
        "message": "",
        "tool_calls": [{"tool_call_id": call, "function_name": name, "arguments": arguments}],
    }
    result: dict[str, Json] = {"source_call_id": call, "content": clean(output or "")}
    if extra:
        result["extra"] = extra
    if output is not None or extra:
        step["observation"] = {"results": [result]}
    return step


def _arguments(text: str) -> dict[str, Json]:
    try:
        parsed = json.loads(clean(text))
    except (ValueError, RecursionError):
        return {"input": clean(text)}
    return cast("dict[str, Json]", parsed) if isinstance(parsed, dict) else {"input": clean(text)}
