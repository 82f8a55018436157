"""The header of a SKILL.md as YAML: what is not plain, and everything that is wrong."""

from __future__ import annotations

from typing import cast

import yaml

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.freeze.skill_header import MAX_NAME, SkillReading, unreadable

_NOTHING = {"", "~", "null", "Null", "NULL"}


class _TextLoader(yaml.SafeLoader):
    """Reads plain words as text: what `no`, `1:30` or a date means differs between parsers."""


_TextLoader.yaml_implicit_resolvers = {}


def yaml_reading(header: str, where: str) -> SkillReading:
    """Return what a header declares, with all of its faults; `where` names the file."""
    try:
        fields = _fields(_compose(header, where), where)
    except SpecError as error:
        return SkillReading("", "", error.faults)
    faults: list[Fault] = []
    texts = {name: _text(fields, name, where, faults) for name in ("name", "description")}
    name = " ".join(texts["name"].split())
    if len(name) > MAX_NAME:
        faults.append(_long_name(name, fields["name"], where))
    faults.extend(_metadata_faults(fields.get("metadata"), where))
    return SkillReading(name, texts["description"], tuple(faults))


def _compose(header: str, where: str) -> yaml.MappingNode:
    try:
        node = cast(
            "yaml.Node | None",
            yaml.compose(header + "\n", _TextLoader),  # pyright: ignore[reportUnknownMemberType]
        )
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 2, mark.column + 1) if mark else (1, 1)
        raise unreadable(where, line, column, error.problem or str(error)) from None
    except (yaml.YAMLError, RecursionError) as error:
        found = " ".join(str(error).split()) or "too deeply nested"
        raise unreadable(where, 2, 1, found) from None
    if not isinstance(node, yaml.MappingNode):
        raise unreadable(where, 2, 1, "no `key: value` lines")
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
                    raise unreadable(where, *_position(key), "a key that is not text")
                name = str(key.value)
                if name in keys:
                    raise unreadable(where, *_position(key), f"the key {name!r} twice")
                keys[name] = value
                pending.append(value)
            fields = fields or keys
    return fields


def _text(fields: dict[str, yaml.Node], name: str, where: str, faults: list[Fault]) -> str:
    """Return a field that the header must have; add the fault when it has none."""
    node = fields.get(name)
    if node is not None and not isinstance(node, yaml.ScalarNode):
        faults.extend(unreadable(where, *_position(node), f"{name} is not text").faults)
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
        return unreadable(where, *_position(node), "metadata is not a mapping").faults
    for key, value in node.value:
        if key.value == "short-description" and not isinstance(value, yaml.ScalarNode):
            found = "metadata.short-description is not text"
            return unreadable(where, *_position(value), found).faults
    return ()


def _position(node: yaml.Node) -> tuple[int, int]:
    """Return the line and column in the file: the fence is its first line."""
    return node.start_mark.line + 2, node.start_mark.column + 1
