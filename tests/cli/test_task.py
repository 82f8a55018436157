"""`task check` says what a folder lacks, and changes nothing unless it is asked to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Say = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "instruction.md": "Do it.\n",
        "tests/test.sh": "#!/bin/sh\n",
        "solution/solve.sh": "#!/bin/sh\n",
    }.items():
        path = tmp_path / "task" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "task"


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_folder_without_settings_runs_here_and_not_in_harbor(folder: Path, answer: Say) -> None:
    before = tree(folder)
    said = answer("task", "check", folder)
    assert (said.code, said.err) == (0, "")
    assert "runs here yes\n" in said.out
    assert "Harbor    no, it lacks task.toml, environment/, environment/Dockerfile" in said.out
    assert f"task check --fix {folder}" in said.out
    assert tree(folder) == before


def test_fix_adds_the_two_and_nothing_else(folder: Path, answer: Say) -> None:
    before = tree(folder)
    said = json.loads(answer("task", "check", "--fix", "--json", folder).out)
    assert said["added"] == ["environment/", "task.toml"]
    assert said["runs_here"] is True
    assert said["harbor"]["loads"] is False, "an image is not invented"
    assert sorted({*tree(folder)} - {*before}) == ["environment", "task.toml"]
    assert (folder / "task.toml").read_bytes() == b""
    again = json.loads(answer("task", "check", "--fix", "--json", folder).out)
    assert again["added"] == []
    (folder / "task.toml").write_text('[environment]\ndocker_image = "base:1"\n')
    loads = json.loads(answer("task", "check", "--fix", "--json", folder).out)
    assert loads["harbor"] == {"loads": True, "missing": []}
    assert loads["settings"]["docker_image"] == "base:1"


def test_every_feature_that_is_not_run_is_named(folder: Path, answer: Say) -> None:
    (folder / "task.toml").write_text('[environment]\ngpus = 1\nmemory = "abc"\n')
    (folder / "environment").mkdir()
    (folder / "environment" / "docker-compose.yaml").write_text("services: {}\n")
    (folder / "tests" / "test.sh").unlink()
    said = answer("task", "check", folder)
    assert said.code == 2
    assert "runs here no" in said.out
    for code in ("E_SPEC_TASK_FEATURE", "E_SPEC_RESOURCE", "E_SPEC_TASK_FILE"):
        assert f"error[{code}]" in said.err
    error = json.loads(answer("task", "check", "--json", folder).out)
    assert [fault["code"] for fault in error["faults"]] == [
        "E_SPEC_TASK_FEATURE",
        "E_SPEC_RESOURCE",
        "E_SPEC_TASK_FEATURE",
        "E_SPEC_TASK_FILE",
    ]


def test_a_task_without_a_solution_is_said_to_be_uncheckable(folder: Path, answer: Say) -> None:
    (folder / "solution" / "solve.sh").unlink()
    said = answer("task", "check", folder)
    assert said.code == 0
    assert '"oracle_check": "unchecked"' in said.out


def test_a_misspelt_key_is_a_warning(folder: Path, answer: Say) -> None:
    (folder / "task.toml").write_text("[agent]\ntimeout_secs = 5\n")
    said = answer("task", "check", folder)
    assert said.code == 0
    assert "W_TASK_UNKNOWN_KEY" in said.out


@pytest.mark.parametrize("place", ["absent", "task/instruction.md"])
def test_what_is_no_folder_is_refused(folder: Path, answer: Say, place: str) -> None:
    said = answer("task", "check", folder.parent / place)
    assert said.code == 2
    assert "error[E_SPEC_TASK_FILE]" in said.err


def test_an_empty_prompt_and_a_link_are_refused(folder: Path, answer: Say) -> None:
    (folder / "instruction.md").write_text("<!-- canary -->\n\n")
    (folder / "task.toml").symlink_to("/etc/passwd")
    assert answer("task", "check", "--fix", folder).err.count("error[E_SPEC_TASK_FILE]") == 2
