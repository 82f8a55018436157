"""The header of a SKILL.md, read the way the agent reads it.

A skill that the agent would silently drop is an error here: its trials would measure nothing.
Only the first fenced block is the header, as one YAML mapping; rules and sample headers in the
body do not matter. What is not dropped (an unusual name, a long description) is no error.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import yaml

from xgent_evolve.errors import InvalidError

_FENCE = "---"
_NOTHING = {"", "~", "null", "Null", "NULL"}
_MOST_CHARACTERS = 65_536


class SkillHeader(NamedTuple):
    """What the agent is told about a skill."""

    name: str
    description: str


class _TextLoader(yaml.SafeLoader):
    """Reads plain words as text: what `no`, `1:30` or a date means differs between parsers."""


_TextLoader.yaml_implicit_resolvers = {}


def read_skill_header(content: bytes, where: str) -> SkillHeader:
    """Return the name and description that a SKILL.md declares; `where` names the file.

    Raises:
        InvalidError: E_SKILL_YAML: there is no header, or it is not one YAML mapping;
            E_SKILL_MISSING_FIELD: it has no name or no description. The error's place is
            `where:line:column`.

    """
    header = _header(content, where)
    fields = _fields(_compose(header, where), where)
    return SkillHeader(
        name=_require_text(fields, "name", where),
        description=_require_text(fields, "description", where),
    )


def _header(content: bytes, where: str) -> str:
    """Return the text between the first two fences."""
    try:
        first, *lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _unreadable(where, line, 1, "bytes that are not UTF-8") from None
    if first.strip() != _FENCE:
        found = "a byte order mark" if first.startswith("\ufeff") else repr(first[:40])
        raise _unreadable(where, 1, 1, f"{found} where the header should begin")
    end = next((number for number, line in enumerate(lines) if line.strip() == _FENCE), None)
    if end is None:
        raise _unreadable(where, 1, 1, "a header without an end")
    header = "\n".join(lines[:end])
    if len(header) > _MOST_CHARACTERS:
        raise _unreadable(where, 1, 1, f"a header of {len(header)} characters")
    return header


def _compose(header: str, where: str) -> yaml.MappingNode:
    try:
        node = cast(
            "yaml.Node | None",
            yaml.compose(header + "\n", _TextLoader),  # pyright: ignore[reportUnknownMemberType]
        )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 2, mark.column + 1) if mark else (1, 1)
        raise _unreadable(where, line, column, error.problem or str(error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        found = " ".join(str(error).split()) or "too deeply nested"
        raise _unreadable(where, 2, 1, found) from None
    if not isinstance(node, yaml.MappingNode):
        raise _unreadable(where, 2, 1, "no `key: value` lines")
    return node


def _fields(mapping: yaml.MappingNode, where: str) -> dict[str, yaml.Node]:
    """Return the fields of the header; a key that occurs twice is refused at any depth."""
    fields: dict[str, yaml.Node] = {}
    pending: list[yaml.Node] = [mapping]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)
        if isinstance(node, yaml.MappingNode):
            keys: dict[str, yaml.Node] = {}
            for key, value in node.value:
                name = str(key.value)
                if name in keys:
                    raise _unreadable(where, *_position(key), f"the key {name!r} twice")
                keys[name] = value
                pending.append(value)
            fields = fields or keys
    return fields


def _require_text(fields: dict[str, yaml.Node], name: str, where: str) -> str:
    node = fields.get(name)
    if node is not None and not isinstance(node, yaml.ScalarNode):
        raise _unreadable(where, *_position(node), f"{name} is not text")
    text = "" if node is None else str(node.value).strip()
    plain = node is not None and node.style is None
    if text and not (plain and text in _NOTHING):
        return text
    line, column = (1, 1) if node is None else _position(node)
    raise InvalidError(
        f"the skill has no {name}, so the agent would not see it",
        code="E_SKILL_MISSING_FIELD",
        where=f"{where}:{line}:{column}",
        expected=f"a line `{name}: ...` in the header",
        found="no such line" if node is None else "nothing after it",
        fix=f"add a {name} between the two `---` lines at the top",
    )


def _position(node: yaml.Node) -> tuple[int, int]:
    """Return the line and column in the file: the fence is its first line."""
    return node.start_mark.line + 2, node.start_mark.column + 1


def _unreadable(where: str, line: int, column: int, found: str) -> InvalidError:
    return InvalidError(
        "the skill's header cannot be read, so the agent would not see the skill",
        code="E_SKILL_YAML",
        where=f"{where}:{line}:{column}",
        expected="`---`, one YAML mapping with name and description, `---`, at the very top",
        found=found,
        fix="put values that hold `: ` or `#` in quotes; keep the two `---` lines",
    )
