"""Codex itself is asked what it reads of skills and AGENTS.md files: our rules are its rules.

`codex debug prompt-input` renders what a model would see. No server, no engine, no sandbox.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xgent_evolve.freeze.instructions import loaded_texts
from xgent_evolve.freeze.skills import MAX_DESCRIPTION, read_skill

if TYPE_CHECKING:
    from tests.codex.conftest import Desk

pytestmark = pytest.mark.codex

SKILL = "---\nname: {}\ndescription: {}\n---\nbody\n"
GOOD = SKILL.format("good", "Good.")


@pytest.fixture
def inputs() -> Path:
    """Return the directory of collected real skills."""
    name = os.environ.get("XGENT_EVOLVE_TEST_INPUTS", "")
    if name and Path(name, "skills").is_dir():
        return Path(name)
    reason = "XGENT_EVOLVE_TEST_INPUTS does not name the directory of real inputs"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


READ_BY_CODEX = {
    "good": GOOD,
    "differs": SKILL.format("other-name", "x"),
    "under": SKILL.format("under_score", "x"),
    "cased": SKILL.format("Has Spaces And Ünicode", "x"),
    "long": SKILL.format("n" * 64, "x"),
    "wide": SKILL.format("é" * 64, "x"),
    "crlf": GOOD.replace("\n", "\r\n"),
    "number": SKILL.format("123", "456"),
    "words": SKILL.format("true", "no"),
    "block": "---\nname: block\ndescription: |\n  two\n  lines\n---\n",
    "tools": "---\nname: tools\ndescription: x\nallowed-tools: [a]\nmetadata:\n  a: {b: c}\n---\n",
    "null": "---\nname: null-metadata\ndescription: x\nmetadata:\n---\n",
    "alias": "---\nname: &n alias\ndescription: x\nlicense: *n\n---\n",
    "tag": "---\nname: tag\ndescription: !own x\n---\n",
    "flow": "---\n{name: flow, description: x}\n---\n",
    "rules": GOOD + "---\nname: [\n---\n",
}
DROPPED_BY_CODEX = {
    "undescribed": "---\nname: undescribed\n---\n",
    "empty": "---\nname: empty\ndescription: ''\n---\n",
    "tilde": "---\nname: tilde\ndescription: ~\n---\n",
    "toolong": SKILL.format("m" * 65, "x"),
    "twice": "---\nname: twice\nname: again\ndescription: x\n---\n",
    "marked": "\ufeff" + GOOD,
    "late": "\n" + GOOD,
    "latin": GOOD.encode() + b"caf\xe9\n",
    "nofence": "# Title\n",
    "endless": "---\nname: endless\ndescription: x\n",
    "list": "---\nname: list\ndescription: [a, b]\n---\n",
    "metadata": "---\nname: metadata\ndescription: x\nmetadata: text\n---\n",
    "short": "---\nname: short\ndescription: x\nmetadata:\n  short-description: [a]\n---\n",
    "keys": "---\nname: keys\ndescription: x\n? [a, b]\n: c\n---\n",
    "star": "---\nname: star\ndescription: *x*\n---\n",
    "glued": "---\nname:glued\ndescription: x\n---\n",
    "control": "---\nname: control\ndescription: a\x7fb\n---\n",
}
MENDED_BY_CODEX = {
    "colon": SKILL.format("colon", "use it: always"),
    "nameless": "---\ndescription: x\n---\n",
    "doubled": "---\nname: doubled\ndescription: x\nlicense: a\nlicense: b\n---\n",
}
"""What Codex reads all the same, others do not, and we refuse."""


def test_codex_lists_every_skill_that_we_accept_and_we_refuse_all_that_it_drops(
    desk: Desk, inputs: Path
) -> None:
    skills: dict[str, str | bytes] = READ_BY_CODEX | DROPPED_BY_CODEX | MENDED_BY_CODEX
    for path in [*inputs.glob("skills/*/SKILL.md"), *inputs.glob("skills_invalid/*/SKILL.md")]:
        skills[f"real-{path.parent.name}"] = path.read_bytes()
    desk.write({f".agents/skills/{name}/SKILL.md": text for name, text in skills.items()})
    listed = desk.skills()
    accepted = {
        name
        for name, text in skills.items()
        if not read_skill(text.encode() if isinstance(text, str) else text, name).faults
    }
    assert accepted - listed.keys() == set(), "accepted, and the agent would not see it"
    assert READ_BY_CODEX.keys() <= accepted
    assert DROPPED_BY_CODEX.keys().isdisjoint(listed)
    assert MENDED_BY_CODEX.keys() <= listed.keys() - accepted
    assert listed["real-composition-patterns"].startswith("vercel-composition-patterns: ")


def test_codex_lists_the_beginning_of_a_long_description(desk: Desk) -> None:
    text = "é" * (MAX_DESCRIPTION + 9)
    desk.write({".agents/skills/long/SKILL.md": SKILL.format("long", text)})
    shown = desk.skills()["long"].removeprefix("long: ").rstrip(".…")
    assert set(shown) == {"é"}
    assert MAX_DESCRIPTION - 4 <= len(shown) <= MAX_DESCRIPTION


def test_codex_sees_a_linked_skill_directory_and_no_linked_skill_file(desk: Desk) -> None:
    desk.write({"shared/SKILL.md": SKILL.format("shared", "x"), ".agents/skills/file/notes": ""})
    (desk.repository / ".agents/skills/dir").symlink_to("../../shared")
    (desk.repository / ".agents/skills/file/SKILL.md").symlink_to("../../../shared/SKILL.md")
    assert set(desk.skills()) == {"dir"}


@pytest.mark.parametrize(
    ("directory", "limit", "files"),
    [
        ("", 9, {"AGENTS.md": "01234567ééé"}),
        ("", 11, {"AGENTS.md": "01234567\U0001f389"}),
        ("sub", 10, {"AGENTS.md": "01234567", "sub/AGENTS.md": "abcdefgh"}),
        ("sub", 8, {"AGENTS.md": "01234567", "sub/AGENTS.md": "abcdefgh"}),
        ("sub", 12, {"AGENTS.md": "    \n  \n", "sub/AGENTS.md": "abcdefgh"}),
        ("", 100, {"AGENTS.md": "aaa", "AGENTS.override.md": "ov"}),
        ("", 100, {"AGENTS.md": "aaa", "AGENTS.override.md": ""}),
        ("", 100, {"AGENTS.md": "@CLAUDE.md\n", "CLAUDE.md": "claude"}),
        ("", 0, {"AGENTS.md": "aaa"}),
    ],
)
def test_codex_loads_what_we_say_that_it_loads(
    desk: Desk, directory: str, limit: int, files: dict[str, str]
) -> None:
    desk.write(files)
    contents = {path: text.encode() for path, text in files.items() if "AGENTS" in path}
    ours = [text.text for text in loaded_texts(contents, limit).values() if text.text.strip()]
    assert desk.instructions(directory, limit) == "\n\n".join(ours)


def test_codex_starts_at_the_top_and_loads_nothing_below(desk: Desk) -> None:
    desk.write({"AGENTS.md": "top", "sub/AGENTS.md": "below"})
    assert desk.instructions("", 100) == "top"
