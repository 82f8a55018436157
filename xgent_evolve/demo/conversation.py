"""What one Responses API request says, in the terms a colleague would use.

Codex sends the whole conversation with every request: the catalogue of skills, AGENTS.md, the
task, and every command with its output. Reading all of it each time is what lets the scripted
model keep no state.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_INJECTED = ("# AGENTS.md instructions", "<environment_context>", "<turn_aborted>", "<skill>")
_CATALOGUE = re.compile(r"<skills_instructions>(.*?)</skills_instructions>", re.DOTALL)
_ROOT = re.compile(r"^- `(r\d+)` = `([^`]+)`$", re.MULTILINE)
_SKILL = re.compile(r"^- ([^\s:]+): (.*) \(file: ([^)]+)\)$", re.MULTILINE)
_NESTED_CALL = re.compile(r"tools\.exec_command\((\{.*\})\)", re.DOTALL)
# Direct tools prefix the output with a chunk id and a wall time, code mode with a status line.
_OUTPUT_HEADER = re.compile(r"\A(?:Chunk ID|Wall time|Script )[^\n]*\n(?:[^\n]*\n)*?Output:\n")


def _texts(value: object) -> object:
    """Bring the wire's three shapes of content (absent, string, list of parts) to one."""
    match value:
        case str():
            return (value,)
        case list():
            parts = cast("list[object]", value)
            return tuple(text for part in parts if (text := _part_text(part)) is not None)
        case _:
            return ()


def _part_text(part: object) -> str | None:
    if not isinstance(part, dict):
        return None
    text = cast("dict[str, object]", part).get("text")
    return text if isinstance(text, str) else None


type Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Tool(_Wire):
    """A tool on offer; code mode nests its tools in a namespace."""

    name: str = ""
    tools: tuple[Tool, ...] = ()


class Item(_Wire):
    """One element of the conversation. Only the fields of its type are set."""

    type: str = "message"
    role: str = ""
    content: Texts = ()
    name: str = ""
    arguments: str = ""
    input: str = ""
    call_id: str = ""
    output: Texts = ()
    tools: tuple[Tool, ...] = ()


class Request(_Wire):
    """The body of `POST /responses`, as far as it matters here."""

    model: str
    input: tuple[Item, ...]
    tools: tuple[Tool, ...] = ()
    prompt_cache_key: str = Field(default="")


@dataclass(frozen=True, slots=True)
class ListedSkill:
    """A skill as the catalogue announces it; its text is not known yet."""

    name: str
    description: str
    path: str


@dataclass(frozen=True, slots=True)
class Step:
    """A command that was run and what it printed."""

    command: str
    output: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything that has been said so far."""

    prompt: str
    """The last message that a person wrote."""
    skills: tuple[ListedSkill, ...]
    steps: tuple[Step, ...]
    """All commands, oldest first."""
    steps_of_prompt: tuple[Step, ...]
    """The commands since the prompt."""
    guidance: tuple[str, ...]
    """AGENTS.md and injected skills, in the order in which they were given."""
    items: int
    """Number of input items, a measure of length that is equal in equal conversations."""
    code_mode: bool
    """Whether commands are run through JavaScript."""


def read_conversation(request: Request) -> Conversation:
    """Return what `request` says."""
    items = request.input
    asked_at, prompt = _prompt(items)
    return Conversation(
        prompt=prompt,
        skills=_skills(items),
        steps=_steps(items),
        steps_of_prompt=_steps(items[asked_at:]),
        guidance=tuple(_guidance(items)),
        items=len(items),
        code_mode=_offers_javascript(request),
    )


def _prompt(items: tuple[Item, ...]) -> tuple[int, str]:
    for index in range(len(items) - 1, -1, -1):
        if items[index].role == "user":
            own = [text for text in items[index].content if not text.startswith(_INJECTED)]
            if own:
                return index, "\n".join(own)
    return len(items), ""


def _guidance(items: tuple[Item, ...]) -> Iterator[str]:
    for item in items:
        if item.role == "user":
            for text in item.content:
                if text.startswith(("# AGENTS.md instructions", "<skill>")):
                    yield text


def _skills(items: tuple[Item, ...]) -> tuple[ListedSkill, ...]:
    found: list[ListedSkill] = []
    texts = (
        text for item in items if item.role in {"developer", "system"} for text in item.content
    )
    for block in _CATALOGUE.findall("\n".join(texts)):
        roots = dict(_ROOT.findall(block))
        found.extend(
            ListedSkill(name, description, _resolve(path, roots))
            for name, description, path in _SKILL.findall(block)
        )
    return tuple(found)


def _resolve(path: str, roots: Mapping[str, str]) -> str:
    head, _, rest = path.partition("/")
    return f"{roots[head]}/{rest}" if head in roots else path


def _steps(items: tuple[Item, ...]) -> tuple[Step, ...]:
    outputs = {
        item.call_id: _OUTPUT_HEADER.sub("", "".join(item.output), count=1)
        for item in items
        if item.type in {"function_call_output", "custom_tool_call_output"}
    }
    return tuple(
        Step(command, outputs.get(item.call_id, ""))
        for item in items
        if (command := _command(item)) is not None
    )


def _command(item: Item) -> str | None:
    match item.type:
        case "function_call":
            arguments = item.arguments
        case "custom_tool_call":
            nested = _NESTED_CALL.search(item.input)
            arguments = nested[1] if nested else ""
        case _:
            return None
    try:
        parsed: object = json.loads(arguments)
    except ValueError:
        return None
    if not isinstance(parsed, dict):
        return None
    command = cast("dict[str, object]", parsed).get("cmd")
    return command if isinstance(command, str) else None


def _offers_javascript(request: Request) -> bool:
    waiting = [*request.tools, *(tool for item in request.input for tool in item.tools)]
    while waiting:
        tool = waiting.pop()
        if tool.name == "exec":
            return True
        waiting.extend(tool.tools)
    return False
