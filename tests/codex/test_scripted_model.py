"""The scripted model convinces the real Codex CLI, with direct tools and in code mode."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xgent_evolve.demo.model import ScriptedModel
from xgent_evolve.demo.study import TASKS

if TYPE_CHECKING:
    from tests.codex.conftest import CodexLab, Turn

pytestmark = [pytest.mark.engine, pytest.mark.codex]

KEY = "sk-demo-key-of-the-test"
MATERIAL = Path(__file__).resolve().parents[2] / "xgent_evolve/demo/material"
DIRECT, CODE_MODE, UNKNOWN = "gpt-5.5", "gpt-6.1-sol", "gpt-test"
SOLVED_WITHOUT = {"greeting", "announcement", "build-order"}
SOLVED_WITH = {task.id for task in TASKS} - {"runbook"}


def run_task(lab: CodexLab, directory: Path, model: ScriptedModel, slug: str, task: str) -> Turn:
    prompt = (MATERIAL / "tasks" / task / "instruction.md").read_text()
    return lab.run(directory, prompt, model=slug, base_url=model.base_url, key=KEY)


def install_skill(directory: Path) -> None:
    skill = MATERIAL / "repository/skills/house-style"
    shutil.copytree(skill, directory / "app/.agents/skills/house-style")


@pytest.mark.parametrize("slug", [DIRECT, CODE_MODE])
@pytest.mark.parametrize("skill", ["with", "without"])
def test_the_skill_alone_decides_which_demo_tasks_are_solved(
    lab: CodexLab, tmp_path: Path, slug: str, skill: str
) -> None:
    def reward(task: str) -> int:
        directory = tmp_path / task
        if skill == "with":
            install_skill(directory)
        turn = run_task(lab, directory, model, slug, task)
        assert turn.exit_code == 0, turn.stderr
        assert all(command["exit_code"] == 0 for command in turn.commands())
        return lab.grade(turn.workspace, MATERIAL / "tasks" / task)

    names = [task.id for task in TASKS]
    with ScriptedModel(key=KEY) as model, ThreadPoolExecutor(4) as pool:
        rewards = dict(zip(names, pool.map(reward, names), strict=True))

    solved = {name for name, value in rewards.items() if value == 1}
    assert solved == (SOLVED_WITH if skill == "with" else SOLVED_WITHOUT)


@pytest.mark.parametrize("task", [task.id for task in TASKS])
def test_a_verifier_accepts_the_reference_solution_and_not_an_empty_directory(
    lab: CodexLab, tmp_path: Path, task: str
) -> None:
    (tmp_path / "app").mkdir()
    folder = MATERIAL / "tasks" / task

    assert lab.grade(tmp_path / "app", folder) == 0
    assert lab.grade(tmp_path / "app", folder, solve=True) == 1


def test_an_unknown_model_name_gets_direct_tools(lab: CodexLab, tmp_path: Path) -> None:
    install_skill(tmp_path)
    with ScriptedModel(key=KEY) as model:
        turn = run_task(lab, tmp_path, model, UNKNOWN, "settings")

    assert turn.exit_code == 0
    assert lab.grade(turn.workspace, MATERIAL / "tasks/settings") == 1


@pytest.mark.parametrize("slug", [DIRECT, CODE_MODE])
def test_two_runs_of_one_task_cost_the_same_tokens(
    lab: CodexLab, tmp_path: Path, slug: str
) -> None:
    usages = []
    for name in ("first", "second"):
        install_skill(tmp_path / name)
        # A new server each time: nothing may depend on its life.
        with ScriptedModel(key=KEY) as model:
            turn = run_task(lab, tmp_path / name, model, slug, "decision-record")
            counted = model.requests_by_thread
        usages.append(turn.usage())
        thread_id = str(turn.events[0]["thread_id"])
        assert counted == {thread_id: 3}

    assert usages[0] == usages[1]
    assert usages[0]["input_tokens"] > 0


def test_agents_md_instructs_as_well_as_a_skill(lab: CodexLab, tmp_path: Path) -> None:
    skill = (MATERIAL / "repository/skills/house-style/SKILL.md").read_text()
    home = tmp_path / "home"
    home.mkdir(parents=True)
    (home / "AGENTS.md").write_text(skill)
    with ScriptedModel(key=KEY) as model:
        turn = run_task(lab, tmp_path, model, CODE_MODE, "version-file")

    assert lab.grade(turn.workspace, MATERIAL / "tasks/version-file") == 1


def test_a_wrong_key_fails_the_turn(lab: CodexLab, tmp_path: Path) -> None:
    with ScriptedModel(key="another key") as model:
        turn = run_task(lab, tmp_path, model, CODE_MODE, "greeting")
        refused = model.refused

    assert turn.exit_code == 1
    assert turn.kinds()[-1] == "turn.failed"
    assert refused >= 1
    assert not (turn.workspace / "greeting.txt").exists()


@pytest.mark.parametrize("task", ["hello-world-task", "acp_smoke"])
def test_a_public_task_that_dictates_a_file_is_solved(
    lab: CodexLab, tmp_path: Path, task: str
) -> None:
    inputs = os.environ.get("XGENT_EVOLVE_TEST_INPUTS")
    if not inputs:
        pytest.skip("XGENT_EVOLVE_TEST_INPUTS is not set")
    folder = Path(inputs) / "tasks" / task
    with ScriptedModel(key=KEY) as model:
        prompt = (folder / "instruction.md").read_text()
        turn = lab.run(tmp_path, prompt, model=CODE_MODE, base_url=model.base_url, key=KEY)

    name = "hello.txt" if task == "hello-world-task" else "conformance.txt"
    expected = "Hello, world!\n" if task == "hello-world-task" else "ok\n"
    assert (turn.workspace / name).read_text() == expected
