"""The header of a SKILL.md: where it stands, and what two plain lines say without any YAML."""

from __future__ import annotations

import re
from typing import NamedTuple

from xgent_evolve.errors import Fault, SpecError

MAX_NAME = 64
"""Characters of a name; Codex drops a skill with a longer one."""

_FENCE = "---"
_MOST_CHARACTERS = 65_536
_PLAIN_LINE = re.compile(r"(name|description): ([A-Za-z](?:[ !\"$-9;-~]*[!\"$-9;-~])?)")


class SkillReading(NamedTuple):
    """A SKILL.md's header and everything that is wrong with it."""

    name: str
    """Empty when it cannot be read."""
    description: str
    """Empty when it cannot be read."""
    faults: tuple[Fault, ...]
    """Why an agent would not see the skill as it is meant; each at `where:line:column`."""


def header_text(content: bytes, where: str) -> str:
    """Return the text between the first two fences."""
    try:
        first, *lines = content.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise unreadable(where, line, 1, "bytes that are not UTF-8") from None
    if first.strip() != _FENCE:
        found = "a byte order mark" if first.startswith("\ufeff") else repr(first[:40])
        raise unreadable(where, 1, 1, f"{found} where the header should begin")
    end = next((number for number, line in enumerate(lines) if line.strip() == _FENCE), None)
    if end is None:
        raise unreadable(where, 1, 1, "a header without an end")
    header = "\n".join(lines[:end])
    if len(header) > _MOST_CHARACTERS:
        raise unreadable(where, 1, 1, f"a header of {len(header)} characters")
    return header


def plain_reading(header: str) -> SkillReading | None:
    """Return what a header says that every YAML parser reads alike: a plain name and description.

    None for everything else: another key, quotes, `:` or `#` in a value, characters beyond ASCII.
    """
    lines = [_PLAIN_LINE.fullmatch(line) for line in header.rstrip("\n").split("\n")]
    fields = {line[1]: line[2] for line in lines if line is not None}
    if None in lines or len(lines) != 2 or len(fields) != 2 or len(fields["name"]) > MAX_NAME:
        return None
    if any(text.lower() == "null" for text in fields.values()):
        return None
    return SkillReading(" ".join(fields["name"].split()), fields["description"], ())


def unreadable(where: str, line: int, column: int, found: str) -> SpecError:
    """Return the refusal of a header; `line` and `column` count from 1."""
    fault = Fault(
        code="E_SKILL_YAML",
        message="the skill's header cannot be read, so agents drop the skill or guess at it",
        where=f"{where}:{line}:{column}",
        expected="`---`, one YAML mapping with name and description, `---`, at the very top",
        found=found,
        fix="put values that hold `: ` or `#` in quotes; keep the two `---` lines",
    )
    return SpecError((fault,))
