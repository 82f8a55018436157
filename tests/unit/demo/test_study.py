"""The demo study is reproducible, and its tasks measure what they say."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from xgent_evolve.demo.junior import find_section
from xgent_evolve.demo.study import SKILL_ROOT, TASKS, write_study
from xgent_evolve.errors import DriftError
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.outcomes import Row, Scored
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh

IMAGE = "sha256:" + "1" * 64
PLAIN = {"greeting", "announcement", "build-order"}
"""Tasks that need no convention."""
WRONG = {"runbook"}
"""Tasks that fail even with the skill."""


def write(directory: Path, candidate_text: str | None = None) -> JobSpec:
    job = write_study(
        directory,
        ssh=Ssh(host="127.0.0.1", port=2222, user="me", known_hosts="/k", identity="/i"),
        remote_root="/srv/demo",
        image=IMAGE,
        docker_path="/usr/bin/docker",
        docker_version="20.10.24",
        base_url="http://127.0.0.1:8000/v1",
        architecture="x86_64",
        key_env="XGENT_DEMO_KEY",
        candidate_text=candidate_text,
    )
    assert job == directory / "job.json"
    return load_spec(job).spec


def tree(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mode,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def test_the_same_study_is_written_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write(tmp_path / "first")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody Else")
    monkeypatch.setenv("GIT_DIR", "/nonexistent")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    before = os.umask(0o077)
    try:
        second = write(tmp_path / "second")
    finally:
        os.umask(before)

    assert first == second
    modes = [
        {path: mode for path, (mode, _, _) in tree(tmp_path / name).items()}
        for name in ("first", "second")
    ]
    assert modes[0] == modes[1]


def test_writing_it_again_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path)
    before = tree(tmp_path)

    write(tmp_path)

    assert tree(tmp_path) == before


def test_a_changed_repository_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path)
    skill = tmp_path / "house-style" / SKILL_ROOT / "SKILL.md"
    skill.write_text("mine")

    with pytest.raises(DriftError) as raised:
        write(tmp_path)

    assert skill.read_text() == "mine"
    assert SKILL_ROOT in raised.value.found


def test_the_spec_asks_what_the_demo_promises(tmp_path: Path) -> None:
    spec = write(tmp_path)

    assert spec.mode == "compare"
    assert len(spec.cases) == 10
    assert len({case.group for case in spec.cases}) == 7 >= spec.measurement.min_groups
    assert [condition.skill for condition in spec.conditions] == ["absent", "candidate"]
    assert spec.runtime.network == "host"
    trials = len(spec.cases) * len(spec.conditions) * spec.measurement.repeats
    assert trials * (1 + spec.budget.max_retries) <= spec.budget.max_trials
    for case in spec.cases:
        assert (tmp_path / case.task_path / "instruction.md").is_file()


def test_the_promised_rewards_decide_the_study(tmp_path: Path) -> None:
    spec = write(tmp_path)
    rows = [
        Row(case.id, case.group, condition.id, 1, Scored(float(solved(case.id, condition.skill))))
        for case in spec.cases
        for condition in spec.conditions
    ]

    comparison = compare(
        rows,
        baseline=spec.baseline_condition,
        candidate="candidate",
        measurement=spec.measurement,
        guardrails=spec.guardrails,
    )

    differences = sorted(group.difference for group in comparison.groups if group.difference)
    assert differences == [0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    assert comparison.verdict.decision == "keep"
    assert comparison.estimate == pytest.approx(4.5 / 7, abs=1e-6)
    assert comparison.interval is not None
    assert comparison.interval.low == pytest.approx(0.26529, abs=1e-4)
    assert comparison.interval.high == 1.0


def solved(task: str, skill: str) -> bool:
    """Say whether the colleague solves a task; tests/codex holds the real one to it."""
    return task in PLAIN or (skill == "candidate" and task not in WRONG)


def test_the_candidate_can_be_another_text(tmp_path: Path) -> None:
    spec = write(tmp_path, candidate_text="another text")

    assert spec.conditions[0].overrides == {}
    assert spec.conditions[1].overrides == {f"{SKILL_ROOT}/SKILL.md": "another text"}


def test_the_base_commit_is_the_head_of_a_clean_repository(tmp_path: Path) -> None:
    spec = write(tmp_path)
    repository = tmp_path / spec.target.repo

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(repository), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    assert git("rev-parse", "HEAD") == spec.target.base_commit
    assert git("status", "--porcelain") == ""
    rule = spec.target.protected_rules[0]
    assert rule.text in (repository / rule.path).read_text().splitlines()


def test_the_skill_has_a_valid_head_and_a_recipe_for_every_topic(tmp_path: Path) -> None:
    write(tmp_path)
    text = (tmp_path / "house-style" / SKILL_ROOT / "SKILL.md").read_text()
    head = yaml.safe_load(text.split("---\n")[1])

    assert head["name"] == "house-style"
    assert 0 < len(head["description"]) <= 1024
    for task in TASKS:
        if task.id not in PLAIN:
            assert find_section((text,), task.id), task.id


@pytest.mark.parametrize("task", [task.id for task in TASKS])
def test_a_task_names_its_topic_and_its_scripts_are_shell(tmp_path: Path, task: str) -> None:
    write(tmp_path)
    folder = tmp_path / "tasks" / task
    instruction = (folder / "instruction.md").read_text()

    assert (task in PLAIN) != (f"\nTopic: {task}\n" in instruction)
    for script in ("tests/test.sh", "solution/solve.sh"):
        assert os.access(folder / script, os.X_OK)
        subprocess.run(["sh", "-n", str(folder / script)], check=True)


def test_the_job_is_readable_by_people(tmp_path: Path) -> None:
    write(tmp_path)
    text = (tmp_path / "job.json").read_text()

    assert text == json.dumps(json.loads(text), indent=2) + "\n"
