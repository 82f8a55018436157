"""The header of a SKILL.md: what an agent would drop, and what only breaks the written rules.

A skill that an agent silently drops is an error here: its trials would measure nothing. What
Codex 0.162.1 drops was measured (tests/codex asks it again); it also mends a few headers that are
no YAML, which others drop, and which are refused here. Only the first fenced block is the header,
as one YAML mapping; rules and sample headers in the body do not matter. What breaks the format's
written rules and is read all the same (an unusual name, a long description) is a warning.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.freeze.skill_header import SkillReading, header_text, plain_reading

MAX_DESCRIPTION = 1024
"""Characters of a description; Codex lists no more of it."""

_WRITTEN_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class SkillHeader(NamedTuple):
    """What the agent is told about a skill."""

    name: str
    description: str


def read_skill(content: bytes, where: str) -> SkillReading:
    """Return what a SKILL.md declares, with all of its faults; `where` names the file. Pure.

    The faults are E_SKILL_YAML (no header, or not one YAML mapping), E_SKILL_MISSING_FIELD (no
    name or no description) and E_SKILL_NAME (a name that Codex does not accept).
    """
    try:
        header = header_text(content, where)
    except SpecError as error:
        return SkillReading("", "", error.faults)
    if plain := plain_reading(header):
        return plain
    # Most headers are two plain lines, and the YAML library takes its time to load.
    from xgent_evolve.freeze.skill_yaml import yaml_reading

    return yaml_reading(header, where)


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
