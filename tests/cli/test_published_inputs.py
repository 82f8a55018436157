"""init and validate on what others published: every skill, every AGENTS.md, every task."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Say = Callable[..., Any]

HOST = ("--host", "h", "--docker-version", "20.10", "--image", f"base@sha256:{'a' * 64}")
SKILLS = {
    "claude-api": ["W_SKILL_DESCRIPTION_LENGTH"],
    "composition-patterns": ["W_SKILL_NAME"],
    "csv-workbench": [],
    "gh-fix-ci": [],
    "internal-comms": [],
    "notion-knowledge-capture": [],
    "secret-code": [],
    "system-info": [],
    "systematic-debugging": [],
    "webapp-testing": [],
    "writing-skills": [],
}
INVALID = {
    "artifact_demo": "W_SKILL_NAME",
    "autoresearch": "E_SKILL_YAML",
    "commit": "E_SKILL_MISSING_FIELD",
    "completion-check": "E_SKILL_YAML",
    "hello": "E_SKILL_YAML",
    "recall": "E_SKILL_YAML",
    "skill_find": "W_SKILL_NAME",
}
AGENTS = {
    "inspect_ai": [],
    "llm": [],
    "nushell": [],
    "nushell-0755": [],
    "openai-agents-python": ["W_AGENTS_TRUNCATED"],
    "react-best-practices": ["W_AGENTS_TRUNCATED"],
}


@pytest.fixture(scope="session")
def inputs() -> Path:
    name = os.environ.get("XGENT_EVOLVE_TEST_INPUTS", "")
    if name and Path(name, "skills").is_dir():
        return Path(name)
    reason = "XGENT_EVOLVE_TEST_INPUTS does not name the directory of real inputs"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workshop: Any) -> Path:
    """An empty directory with three tasks beside it."""
    (tmp_path / "bench").mkdir()
    monkeypatch.chdir(tmp_path / "bench")
    return tmp_path / "bench"


def copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | 0o200)


def warnings(answer: Say, spec: str = "job.json", **expected: int) -> list[str]:
    said = answer("validate", "--spec", spec, "--json")
    assert said.code == 0, said.out
    found = {item["code"] for item in json.loads(said.out)["warnings"]}
    return sorted(found - {"W_TOO_FEW_GROUPS"})


def initialised(answer: Say, bench: Path, *arguments: str) -> Any:
    return answer("init", "--repo", "repo", "--tasks", bench.parent / "tasks", *HOST, *arguments)


def test_no_published_skill_is_forgotten(inputs: Path) -> None:
    found = {path.parent.name for path in inputs.glob("skills/*/SKILL.md")}
    assert found == SKILLS.keys()
    assert {path.parent.name for path in inputs.glob("skills_invalid/*/SKILL.md")} == INVALID.keys()


def test_every_published_skill_validates_with_just_these_warnings(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    for name in SKILLS:
        copy(inputs / "skills" / name, bench / "repo/skills" / name)
    workshop.commit(bench / "repo")
    for name, expected in SKILLS.items():
        said = initialised(answer, bench, "--skill", name, "--spec", f"{name}.json")
        assert (said.code, said.err) == (0, ""), name
        assert warnings(answer, f"{name}.json") == expected, name


def test_every_invalid_skill_is_refused_or_warned_of_in_one_run(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    for name in INVALID:
        copy(inputs / "skills_invalid" / name, bench / "repo/skills" / name)
    workshop.commit(bench / "repo")
    assert initialised(answer, bench, "--skill", "skill_find").code == 0
    spec = json.loads(Path("job.json").read_text())
    refused = sorted(name for name, code in INVALID.items() if code.startswith("E_"))
    spec["source"]["paths"] = spec["authority"]["export_paths"] = ["skills"]
    spec["source"]["fixed_skill_roots"] = [f"skills/{name}" for name in refused]
    Path("job.json").write_text(json.dumps(spec))
    said = answer("validate", "--spec", "job.json", "--json")
    faults = json.loads(said.out)["faults"]
    assert said.code == 2
    told = {fault["where"].split("/SKILL.md")[0].rpartition("/")[2]: fault for fault in faults}
    assert {name: fault["code"] for name, fault in told.items()} == {
        name: INVALID[name] for name in refused
    }
    assert all(fault["where"].split(":")[-2:][0].isdigit() for fault in faults)
    assert all(fault["fix"] for fault in faults)


@pytest.mark.parametrize("name", [name for name, code in INVALID.items() if code[0] == "W"])
def test_a_skill_that_only_breaks_written_rules_is_an_error_in_strict_mode_alone(
    inputs: Path, bench: Path, answer: Say, workshop: Any, name: str
) -> None:
    copy(inputs / "skills_invalid" / name, bench / "repo/skills" / name)
    workshop.commit(bench / "repo")
    assert initialised(answer, bench).code == 0
    assert warnings(answer) == ["W_SKILL_NAME"]
    said = answer("validate", "--spec", "job.json", "--strict")
    assert (said.code, said.out) == (2, "")
    assert "error[E_SKILL_NAME]" in said.err


@pytest.mark.parametrize("name", AGENTS)
def test_every_published_agents_file_validates_with_just_these_warnings(
    inputs: Path, bench: Path, answer: Say, workshop: Any, name: str
) -> None:
    copy(inputs / "agents_md" / name, bench / "repo")
    (bench / "repo/main.py").write_text("print(1)\n")
    workshop.commit(bench / "repo")
    said = initialised(answer, bench, "--agents")
    assert (said.code, said.err) == (0, "")
    assert warnings(answer) == AGENTS[name]


def test_an_agents_file_is_read_through_a_link_in_either_direction(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    text = (inputs / "agents_md/superpowers/CLAUDE.md").read_bytes()
    for real, link in (("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "CLAUDE.md")):
        shutil.rmtree(bench / "repo", ignore_errors=True)
        Path("job.json").unlink(missing_ok=True)
        (bench / "repo").mkdir()
        (bench / "repo" / real).write_bytes(text)
        (bench / "repo" / link).symlink_to(real)
        (bench / "repo/main.py").write_text("print(1)\n")
        workshop.commit(bench / "repo")
        assert initialised(answer, bench).code == 0
        said = answer("validate", "--spec", "job.json", "--json")
        present = json.loads(said.out)["conditions"][1]["changes"]
        assert [(item["path"], item["after"]["size"]) for item in present] == [
            ("AGENTS.md", len(text))
        ]
        assert warnings(answer) == []


def test_an_import_of_one_line_is_warned_of(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    (bench / "repo").mkdir()
    # What this project has as CLAUDE.md, with the names exchanged.
    (bench / "repo/AGENTS.md").write_bytes(
        (inputs / "agents_md/inspect_ai/CLAUDE.md").read_bytes().replace(b"AGENTS", b"CLAUDE")
    )
    (bench / "repo/CLAUDE.md").write_text("The rules.\n")
    workshop.commit(bench / "repo")
    assert initialised(answer, bench).code == 0
    assert warnings(answer) == ["W_AGENTS_IMPORT"]


def test_a_change_behind_the_cut_of_a_published_file_is_refused(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    copy(inputs / "agents_md/openai-agents-python", bench / "repo")
    (bench / "repo/main.py").write_text("print(1)\n")
    workshop.commit(bench / "repo")
    text = (bench / "repo/AGENTS.md").read_text()
    Path("edited.md").write_text(text + "Always run the linter.\n")
    said = initialised(answer, bench, "--candidate", "edited.md")
    assert (said.code, "error[E_SPEC_CHANGE_UNREACHABLE]" in said.err) == (2, True)
    Path("edited.md").write_text("Always run the linter.\n" + text)
    assert initialised(answer, bench, "--candidate", "edited.md").code == 0


def test_the_published_tasks_that_fit_become_cases_and_the_rest_is_named(
    inputs: Path, bench: Path, answer: Say, workshop: Any
) -> None:
    copy(inputs / "skills/secret-code", bench / "repo/skills/secret-code")
    workshop.commit(bench / "repo")
    said = answer("init", "--repo", "repo", "--tasks", inputs / "tasks", "--json", *HOST)
    told = json.loads(said.out)
    assert said.code == 0
    assert told["cases"] == ["hello-world-task", "multi-reward", "nanofirm-task", "simple-task"]
    assert sorted(item["task"] for item in told["left_out"]) == [
        "acp_smoke",
        "demo_task",
        "multi-step",
        "skills-task",
    ]
    assert answer("validate", "--spec", "job.json").code == 0
    said = answer(
        *("init", "--repo", "repo", "--tasks", inputs / "tasks", "--json", "--unchecked"),
        *("--spec", "all.json", *HOST),
    )
    assert set(json.loads(said.out)["cases"]) - set(told["cases"]) == {"demo_task"}
    assert warnings(answer, "all.json") == ["W_TASK_UNCHECKED"]
