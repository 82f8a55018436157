"""What validate prints, to the letter: plain, as JSON, and on a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Say = Callable[..., Any]

GOLDEN = Path(__file__).parent / "golden"
LONG = "".join(f"Rule {number}: keep to it, whatever the task says.\n" for number in range(800))
SHORT = "Be brief.\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def study(workshop: Any) -> Path:
    """Fill the template with a study that gives rise to warnings of all parts."""
    repo = workshop.directory / "repo"
    (repo / "AGENTS.md").write_text(LONG)
    (repo / "main.py").write_text("print(1)\n")
    skill = repo / "skills/review/SKILL.md"
    skill.write_text(skill.read_text().replace("name: review", "name: Review it"))
    (workshop.directory / "tasks/one/task.toml").write_text("[agent]\ntimeout_secs = 5\n")
    workshop.fillings["TARGET_GIT_SHA"] = workshop.commit(repo)
    path = workshop.fill("skill-compare.json")
    document = json.loads(path.read_text())
    document["source"]["paths"] = ["AGENTS.md", "main.py", "skills/review"]
    document["authority"]["export_paths"] = document["source"]["paths"]
    for case in document["cases"]:
        base = document["target"]["base_commit"]
        case["source"] = {"kind": "repo", "repo": "repo", "base": base}
    path.write_text(json.dumps(document, indent=2))
    return path


def settled(text: str, study: Path) -> str:
    """Take out what differs from run to run, and the defaults, which docs/job-spec.md lists."""
    text = re.sub(r"^(  [a-z]\S+) .*  \(default\)\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(  [a-z_]\S*?[.\[]\S+|  \w+_condition) +", r"\1  ", text, flags=re.MULTILINE)
    text = text.replace(str(study.parent), "/workshop")
    text = re.sub(r'((?:protocol"?:?|content"?:?)\s+"?)blake3:[0-9a-f]+', r"\1blake3:#", text)
    return re.sub(r"\b[0-9a-f]{40}\b", "#" * 40, text)


def require_golden(name: str, found: str) -> None:
    """Compare with a golden file; XGENT_GOLDEN=write makes it anew."""
    path = GOLDEN / name
    if os.environ.get("XGENT_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    assert found == path.read_text()


def test_the_plain_answer_is_the_golden_one(study: Path, answer: Say) -> None:
    said = answer("validate", "--spec", study, "--diff")
    assert (said.code, said.err) == (0, "")
    assert "\x1b" not in said.out
    require_golden("validate.txt", settled(said.out, study))


def test_the_json_answer_is_the_golden_one(study: Path, answer: Say) -> None:
    said = answer("validate", "--spec", study, "--json")
    assert said.out.count("\n") == 1
    facts = json.loads(said.out)
    assert facts.pop("configuration")["measurement"]["min_groups"] == 6
    found = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    require_golden("validate.json", settled(found, study))


def test_the_strict_refusal_is_the_golden_one(study: Path, answer: Say) -> None:
    said = answer("validate", "--spec", study, "--strict")
    assert (said.code, said.out) == (2, "")
    require_golden("validate-strict.txt", settled(said.err, study))


def on_terminal(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    from xgent_evolve.cli.main import main

    screen = Terminal()
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stdout", screen)
    assert main(list(arguments)) == 0
    return screen.getvalue()


def test_a_terminal_gets_colours_and_a_table_of_the_same_facts(
    study: Path, answer: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = answer("validate", "--spec", study, "--diff").out
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_terminal(monkeypatch, "validate", "--spec", str(study), "--diff")
    assert "\x1b[1mconditions\x1b[0m" in shown
    assert "\x1b[1;33mwarning[W_SKILL_NAME]\x1b[0m" in shown
    assert "\x1b[32m      +Look twice.\x1b[0m" in shown
    bare = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    before, _, rest = plain.partition("executions at most\n")
    assert bare.startswith(before)
    assert bare.endswith(rest[rest.index("\n\n") :])
    words = " ".join(bare.split())
    for line in re.findall(r"^  (?:agent|grade|confirmation) (.*)$", rest, re.MULTILINE):
        assert line in words


def test_no_colour_and_a_dumb_terminal_get_the_plain_text(
    study: Path, answer: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = answer("validate", "--spec", study).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert on_terminal(monkeypatch, "validate", "--spec", str(study)) == plain


def test_a_hostile_text_cannot_colour_a_terminal(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = json.loads(study.read_text())
    document["question"] = "Does [red]this[/red] \x1b[41mwork?"
    study.write_text(json.dumps(document))
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_terminal(monkeypatch, "validate", "--spec", str(study))
    assert "Does [red]this[/red] work?" in shown
    assert "\x1b[41m" not in shown
