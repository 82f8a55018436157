"""init: one file that validates, from what can be found out; the rest is a flag, told at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Say = Callable[..., Any]

IMAGE = f"base@sha256:{'a' * 64}"
HOST = ("--host", "me@build.example:2222", "--docker-version", "20.10", "--image", IMAGE)


@pytest.fixture
def at(workshop: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in the workshop's directory: `repo` has one skill, `tasks` has three tasks."""
    monkeypatch.chdir(workshop.directory)
    return workshop.directory


def made(answer: Say, *arguments: str, spec: str = "job.json") -> dict[str, Any]:
    """Write a JobSpec, require that it validates, and return it."""
    said = answer("init", "--repo", "repo", "--tasks", "tasks", "--spec", spec, *HOST, *arguments)
    assert (said.code, said.err) == (0, "")
    checked = answer("validate", "--spec", spec)
    assert (checked.code, checked.err) == (0, "")
    return json.loads(Path(spec).read_text())


def codes(said: Any) -> list[str]:
    return [line.split("]")[0] for line in said.err.splitlines() if line.startswith("error[")]


def test_a_skill_without_a_candidate_is_measured_against_its_absence(at: Path, answer: Say) -> None:
    spec = made(answer)
    assert spec["target"] | {"base_commit": "#"} == {
        "repo": "repo",
        "base_commit": "#",
        "surface": "skill",
        "paths": ["skills/review"],
    }
    assert [item["id"] for item in spec["conditions"]] == ["absent", "present"]
    assert (spec["baseline_condition"], spec["candidate_condition"]) == ("absent", "present")
    assert spec["runtime"]["ssh"] == {"host": "build.example", "port": 2222, "user": "me"}
    assert [case["group"] for case in spec["cases"]] == ["one", "three", "two"]
    assert spec["cases"][0]["observable_requirements"] == ["Write hello into greeting.txt."]
    # 2 conditions, 3 cases, 2 repeats, and a quarter more.
    assert spec["budget"]["max_trials"] == 15


def test_the_answer_tells_what_was_assumed_and_what_comes_next(at: Path, answer: Say) -> None:
    said = answer("init", "--repo", "repo", "--tasks", "tasks", *HOST)
    assert said.out == (
        "wrote     job.json, which validates\n"
        "studies   the skill skills/review: present against absent\n"
        "plans     12 agent executions (2 conditions, 3 cases)\n"
        "assumed   runtime.remote_root /srv/xgent-evolve (nobody said another)\n"
        "assumed   runtime.codex.architecture x86_64 (the host was not asked)\n"
        "assumed   runtime.docker.path /usr/bin/docker (the host was not asked)\n"
        "assumed   runtime.authentication.path ~/.codex/auth.json (where the Codex login lies on a"
        " host)\n"
        "assumed   cases[].group one for each task (tasks of one origin share one)\n"
        "assumed   cases[].observable_requirements one line each (the beginning of each"
        " instruction.md)\n"
        "assumed   measurement.min_gain 0.1 (the smallest gain worth having)\n"
        "next      xgent-evolve validate --spec job.json --diff\n"
        "          xgent-evolve doctor --spec job.json\n"
        "          xgent-evolve run --spec job.json --output runs/1\n"
    )


def test_json_tells_the_same(at: Path, answer: Say) -> None:
    said = answer("init", "--repo", "repo", "--tasks", "tasks", "--json", *HOST)
    told = json.loads(said.out)
    assert (told["type"], told["spec"], told["planned_trials"]) == ("initialised", "job.json", 12)
    assert told["next"][0] == "xgent-evolve validate --spec job.json --diff"
    assert {item["path"] for item in told["assumed"]} >= {"runtime.remote_root"}


def test_an_edited_file_becomes_a_third_condition(at: Path, answer: Say) -> None:
    edited = at / "repo/skills/review/SKILL.md"
    (at / "edited.md").write_text(edited.read_text() + "Look again.\n")
    spec = made(answer, "--candidate", "edited.md")
    assert [item["id"] for item in spec["conditions"]] == ["absent", "present", "edited"]
    assert list(spec["conditions"][2]["overrides"]) == ["skills/review/SKILL.md"]


def test_an_edited_copy_of_the_skill_becomes_overrides_of_what_differs(
    at: Path, answer: Say
) -> None:
    copy = at / "copy"
    copy.mkdir()
    (copy / "SKILL.md").write_bytes((at / "repo/skills/review/SKILL.md").read_bytes())
    (copy / "more.md").write_text("More.\n")
    spec = made(answer, "--candidate", "copy")
    assert spec["conditions"][2]["overrides"] == {
        "skills/review/more.md": "More.\n",
        "skills/review/notes.md": None,
    }


def test_agents_text_is_measured_on_the_whole_repository_without_its_tasks(
    at: Path, answer: Say, workshop: Any
) -> None:
    repo = at / "repo"
    (repo / "AGENTS.md").write_text("Run the tests.\n")
    (repo / "main.py").write_text("print(1)\n")
    (repo / "checks/unit").mkdir(parents=True)
    (repo / "checks/unit/a.py").write_text("1\n")
    (at / "tasks").rename(repo / "checks/tasks")
    (repo / "checks/tasks/.git").rename(at / "old-git")
    workshop.commit(repo)
    said = answer("init", "--repo", "repo/checks/unit", "--agents", *HOST)
    assert (said.code, said.err) == (0, "")
    spec = json.loads((at / "job.json").read_text())
    assert spec["source"]["paths"] == ["AGENTS.md", "checks/unit", "main.py", "skills"]
    assert spec["cases"][0]["task_path"] == "repo/checks/tasks/one"
    assert spec["cases"][0]["repo_path"] == "/workspace"
    assert [item["agents"] for item in spec["conditions"]] == ["minimal", "baseline"]
    assert answer("validate", "--spec", "job.json").code == 0


def test_a_smoke_names_no_model(at: Path, answer: Say) -> None:
    spec = made(answer, "--mode", "smoke")
    assert spec["mode"] == "smoke"
    assert not {"model", "authentication"} & spec["runtime"].keys()


def test_what_a_task_says_of_itself_is_taken_over(at: Path, answer: Say) -> None:
    image = f"other@sha256:{'b' * 64}"
    (at / "tasks/one/task.toml").write_text(
        f'[environment]\ndocker_image = "{image}"\nworkdir = "/srv/one"\nmemory_mb = 4096\n'
        "cpus = 4\n[agent]\ntimeout_sec = 3000\n[verifier]\ntimeout_sec = 900.5\n"
    )
    (at / "tasks/two/environment").mkdir()
    (at / "tasks/two/environment/Dockerfile").write_text("FROM x\nWORKDIR /a\nWORKDIR /b/c\n")
    spec = made(answer)
    assert [case["image"] for case in spec["cases"]] == [image, IMAGE, IMAGE]
    assert [case["repo_path"] for case in spec["cases"]] == ["/srv/one", "/app", "/b/c"]
    assert (spec["runtime"]["cpus"], spec["runtime"]["memory_mb"]) == (4, 4096)
    assert spec["budget"]["trial_timeout_s"] == 3000
    assert spec["budget"]["grade_timeout_s"] >= 900


def test_tasks_that_cannot_be_run_are_left_out_with_the_reason(at: Path, answer: Say) -> None:
    (at / "tasks/two/solution/solve.sh").unlink()
    (at / "tasks/three/task.toml").write_text("steps = [{name = 'a'}]\n")
    said = answer("init", "--repo", "repo", "--tasks", "tasks", *HOST)
    assert said.code == 0
    assert (
        "left out  two: it has no solution/solve.sh (--unchecked takes it all the same)\n"
        in said.out
    )
    assert "left out  three: the task asks for" in said.out
    spec = json.loads((at / "job.json").read_text())
    assert [case["id"] for case in spec["cases"]] == ["one"]


def test_a_task_without_a_solution_is_taken_on_demand_and_stated_as_unchecked(
    at: Path, answer: Say
) -> None:
    (at / "tasks/two/solution/solve.sh").unlink()
    spec = made(answer, "--unchecked")
    assert [case.get("oracle_check") for case in spec["cases"]] == [None, None, "unchecked"]
    warned = json.loads(answer("validate", "--spec", "job.json", "--json").out)["warnings"]
    assert {item["code"] for item in warned} == {"W_TOO_FEW_GROUPS", "W_TASK_UNCHECKED"}


def test_an_image_for_one_task_comes_before_the_one_for_all(at: Path, answer: Say) -> None:
    own = f"sha256:{'c' * 64}"
    spec = made(answer, "--image", f"three={own}")
    assert [case["image"] for case in spec["cases"]] == [IMAGE, own, IMAGE]


def test_nothing_is_overwritten(at: Path, answer: Say) -> None:
    (at / "job.json").write_text("mine")
    said = answer("init", "--repo", "repo", "--tasks", "tasks", *HOST)
    assert (said.code, codes(said)) == (2, ["error[E_INIT_EXISTS"])
    assert "fix       give another --spec" in said.err
    assert (at / "job.json").read_text() == "mine"
    (at / "job.json").unlink()
    (at / "job.json").symlink_to("nowhere")
    assert answer("init", "--repo", "repo", "--tasks", "tasks", *HOST).code == 2


def test_everything_that_only_the_caller_knows_is_told_at_once(at: Path, answer: Say) -> None:
    said = answer("init", "--repo", "repo", "--tasks", "tasks")
    assert said.code == 2
    flags = ("--host", "--docker-version", "--image one=", "--image two=", "--ask-host")
    assert [flag for flag in flags if flag not in said.err] == []
    assert said.err.endswith("5 faults; nothing was run\n")
    assert not (at / "job.json").exists()


def test_of_several_skills_the_caller_chooses_by_name_or_directory(
    at: Path, answer: Say, workshop: Any
) -> None:
    skill = at / "repo/skills/other/SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: other\ndescription: x\n---\n")
    workshop.commit(at / "repo")
    said = answer("init", "--repo", "repo", "--tasks", "tasks", *HOST)
    assert said.code == 2
    assert "found     skills/other, skills/review" in said.err
    assert made(answer, "--skill", "other")["target"]["paths"] == ["skills/other"]
    spec = made(answer, "--skill", "./skills/review/", spec="two.json")
    assert spec["target"]["paths"] == ["skills/review"]
    said = answer(
        "init", "--repo", "repo", "--tasks", "tasks", "--skill", "x", *HOST, "--spec", "3"
    )
    assert (said.code, "x; there are skills/other" in said.err) == (2, True)


def test_a_study_that_would_not_validate_is_not_written(at: Path, answer: Say) -> None:
    (at / "edited.md").write_text("no header\n")
    said = answer("init", "--repo", "repo", "--tasks", "tasks", *HOST, "--candidate", "edited.md")
    assert (said.code, codes(said)) == (2, ["error[E_SKILL_YAML"])
    assert not (at / "job.json").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--repo", "tasks/one/tests"), "E_INIT_MISSING"),
        (("--repo", "nowhere"), "E_SPEC_REPO"),
        (("--tasks", "nowhere"), "E_INIT_MISSING"),
        (("--host", "a b"), "E_INIT_MISSING"),
        (("--host", "h:99999"), "E_INIT_MISSING"),
        (("--mode", "search"), "E_USAGE"),
        (("--candidate", "nowhere.md"), "E_INIT_MISSING"),
        (("--spec", "nowhere/job.json"), "E_SPEC_PATH"),
        (("--image", "base:latest"), "E_INIT_MISSING"),
        (("--repeats", "0"), "E_USAGE"),
        (("--auth-env", "not a name"), "E_SPEC_VALUE"),
    ],
)
def test_a_flag_that_cannot_be_right_is_refused_with_its_cure(
    at: Path, answer: Say, arguments: tuple[str, str], code: str
) -> None:
    defaults = {"--repo": "repo", "--tasks": "tasks", "--host": "h", "--docker-version": "1"}
    if arguments[0] != "--image":
        defaults["--image"] = IMAGE
    chosen = defaults | {arguments[0]: arguments[1]}
    said = answer("init", *(word for pair in chosen.items() for word in pair))
    assert (said.code, f"error[{code}]" in said.err) == (2, True), said.err
    assert "fix" in said.err
    assert not (at / "job.json").exists()


def test_a_repository_without_a_commit_is_told(tmp_path: Path, answer: Say) -> None:
    os.system(f"git init -q {tmp_path}/new")
    said = answer("init", "--repo", tmp_path / "new", "--tasks", tmp_path)
    assert (said.code, codes(said)) == (2, ["error[E_SPEC_COMMIT"])


def test_the_repository_is_only_read(at: Path, answer: Say) -> None:
    before = {path: path.stat().st_mtime_ns for path in (at / "repo").rglob("*")}
    made(answer)
    assert {path: path.stat().st_mtime_ns for path in (at / "repo").rglob("*")} == before
