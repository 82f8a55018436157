"""The header of a SKILL.md: what an agent would drop, and what only breaks the written rules.

A skill that an agent silently drops is an error here: its trials would measure nothing. What
Codex 0.162.1 drops was measured (tests/codex asks it again); it also mends a few headers that are
no YAML, which others drop, and which are refused here. Only the first fenced block is the header,
as one YAML mapping; rules and sample headers in the body do not matter. What breaks the format's
written rules and is read all the same (an unusual name, a long description) is a warning.
"""

from __future__ import annotations

import re
from typing import NamedTuple, cast

import yaml

from xgent_evolve.errors import Fault, SpecError

MAX_NAME = 64
"""Characters of a name; Codex drops a skill with a longer one."""
MAX_DESCRIPTION = 1024
"""Characters of a description; Codex lists no more of it."""

_FENCE = "---"
_NOTHING = {"", "~", "null", "Null", "NULL"}
_MOST_CHARACTERS = 65_536
_WRITTEN_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SkillHeader(NamedTuple):
    """What the agent is told about a skill."""

    name: str
    description: str


class _TextLoader(yaml.SafeLoader):
    """Reads plain words as text: what `no`, `1:30` or a date means differs between parsers."""


_TextLoader.yaml_implicit_resolvers = {}


class SkillReading(NamedTuple):
    """A SKILL.md's header and everything that is wrong with it."""

    name: str
    """Empty when it cannot be read."""
    description: str
    """Empty when it cannot be read."""
    faults: tuple[Fault, ...]
    """Why an agent would not see the skill as it is meant; each at `where:line:column`."""


def read_skill(content: bytes, where: str) -> SkillReading:
    """Return what a SKILL.md declares, with all of its faults; `where` names the file. Pure.

    The faults are E_SKILL_YAML (no header, or not one YAML mapping), E_SKILL_MISSING_FIELD (no
    name or no description) and E_SKILL_NAME (a name that Codex does not accept).
    """
    try:
        fields = _fields(_compose(_header(content, where), where), where)
    except SpecError as error:
        return SkillReading("", "", error.faults)
    faults: list[Fault] = []
    texts = {name: _text(fields, name, where, faults) for name in ("name", "description")}
    name = " ".join(texts["name"].split())
    if len(name) > MAX_NAME:
        faults.append(_long_name(name, fields["name"], where))
    faults.extend(_metadata_faults(fields.get("metadata"), where))
    return SkillReading(name, texts["description"], tuple(faults))


def read_skill_header(content: bytes, where: str) -> SkillHeader:
    """Return the name and description that a SKILL.md declares; `where` names the file.

    Raises:
        SpecError: with every fault that `read_skill` finds.

    """
    reading = read_skill(content, where)
    if reading.faults:
        raise SpecError(reading.faults)
    return SkillHeader(reading.name, reading.description)


def skill_warnings(content: bytes, where: str, directory: str) -> list[Fault]:
    """Return the written rules that a readable SKILL.md breaks. Pure.

    `directory` is the name of the skill's directory. Lengths are counted in characters.
    """
    reading = read_skill(content, where)
    if reading.faults:
        return []
    warnings: list[Fault] = []
    if not _WRITTEN_NAME.fullmatch(reading.name):
        warnings.append(
            Fault(
                code="W_SKILL_NAME",
                message="the skill's name breaks the rule for names; other agents may refuse it",
                where=where,
                expected="lower-case letters and digits in words joined by single hyphens",
                found=repr(reading.name),
                fix="rename the skill and its directory",
            )
        )
    if reading.name != directory:
        warnings.append(
            Fault(
                code="W_SKILL_NAME",
                message="the skill's name is not its directory's name; other agents may refuse it",
                where=where,
                expected=repr(directory),
                found=repr(reading.name),
                fix="give both one name",
            )
        )
    if len(reading.description) > MAX_DESCRIPTION:
        warnings.append(
            Fault(
                code="W_SKILL_DESCRIPTION_LENGTH",
                message="the skill's description is too long; Codex lists its beginning alone",
                where=where,
                expected=f"at most {MAX_DESCRIPTION} characters",
                found=f"{len(reading.description)} characters",
                fix="shorten the description, and tell the rest in the body",
            )
        )
    return warnings


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
                if not isinstance(key, yaml.ScalarNode):
                    raise _unreadable(where, *_position(key), "a key that is not text")
                name = str(key.value)
                if name in keys:
                    raise _unreadable(where, *_position(key), f"the key {name!r} twice")
                keys[name] = value
                pending.append(value)
            fields = fields or keys
    return fields


def _text(fields: dict[str, yaml.Node], name: str, where: str, faults: list[Fault]) -> str:
    """Return a field that the header must have; add the fault when it has none."""
    node = fields.get(name)
    if node is not None and not isinstance(node, yaml.ScalarNode):
        faults.extend(_unreadable(where, *_position(node), f"{name} is not text").faults)
        return ""
    text = "" if node is None else str(node.value).strip()
    if node is not None and text and not _is_null(node):
        return text
    line, column = (1, 1) if node is None else _position(node)
    consequence = (
        "some agents would not see it, and others call it like its directory"
        if name == "name"
        else "so the agent would not see it"
    )
    faults.append(
        Fault(
            code="E_SKILL_MISSING_FIELD",
            message=f"the skill has no {name}, {consequence}",
            where=f"{where}:{line}:{column}",
            expected=f"a line `{name}: ...` in the header",
            found="no such line" if node is None else "nothing after it",
            fix=f"add a {name} between the two `---` lines at the top",
        )
    )
    return ""


def _is_null(node: yaml.Node) -> bool:
    """Say whether a value is YAML's null: nothing, or one of its plain words."""
    return isinstance(node, yaml.ScalarNode) and node.style is None and node.value in _NOTHING


def _long_name(name: str, node: yaml.Node, where: str) -> Fault:
    line, column = _position(node)
    return Fault(
        code="E_SKILL_NAME",
        message="the skill's name is too long, so the agent would not see the skill",
        where=f"{where}:{line}:{column}",
        expected=f"at most {MAX_NAME} characters",
        found=f"{len(name)} characters",
        fix="shorten the name",
    )


def _metadata_faults(node: yaml.Node | None, where: str) -> tuple[Fault, ...]:
    """Return why Codex would refuse the header's `metadata`, the one other field it reads."""
    if node is None or _is_null(node):
        return ()
    if not isinstance(node, yaml.MappingNode):
        return _unreadable(where, *_position(node), "metadata is not a mapping").faults
    for key, value in node.value:
        if key.value == "short-description" and not isinstance(value, yaml.ScalarNode):
            found = "metadata.short-description is not text"
            return _unreadable(where, *_position(value), found).faults
    return ()


def _position(node: yaml.Node) -> tuple[int, int]:
    """Return the line and column in the file: the fence is its first line."""
    return node.start_mark.line + 2, node.start_mark.column + 1


def _unreadable(where: str, line: int, column: int, found: str) -> SpecError:
    fault = Fault(
        code="E_SKILL_YAML",
        message="the skill's header cannot be read, so agents drop the skill or guess at it",
        where=f"{where}:{line}:{column}",
        expected="`---`, one YAML mapping with name and description, `---`, at the very top",
        found=found,
        fix="put values that hold `: ` or `#` in quotes; keep the two `---` lines",
    )
    return SpecError((fault,))
