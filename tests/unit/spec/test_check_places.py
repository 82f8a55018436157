"""Rules of paths, tasks and the runtime: each is told at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xgent_evolve.errors import Fault
from xgent_evolve.spec.load import LoadedSpec

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]
type Faults = Callable[[object], list[Fault]]
type Edit = Callable[[Study], object]
type Refused = Callable[[Study, Edit, str, str], None]

OTHER = "b" * 40


def case(study: Study, index: int = 0) -> Study:
    return study["cases"][index]


def export(study: Study, path: str) -> bool:
    study["source"]["paths"].append(path)
    study["authority"]["export_paths"].append(path)
    return True


PATH_RULES: dict[str, tuple[Edit, str, str]] = {
    "an authority for another repository": (
        lambda s: s["authority"].update(repo="elsewhere"),
        "$.authority.repo",
        "another repository",
    ),
    "two skills under study": (
        lambda s: s["target"]["paths"].append("skills/review/more"),
        "$.target.paths",
        "exactly one skill",
    ),
    "a target that is not frozen": (
        lambda s: s["source"].update(paths=["skills/review/docs"]),
        "$.target.paths[0]",
        "not within source.paths",
    ),
    "a source that may not leave": (
        lambda s: s["source"]["paths"].append("secrets"),
        "$.source.paths[1]",
        "not within authority.export_paths",
    ),
    "a new file that may not leave": (
        lambda s: s["source"].update(new_paths=["notes.md"]),
        "$.source.new_paths[0]",
        "not within authority.export_paths",
    ),
    "a background skill that is not frozen": (
        lambda s: s["source"].update(fixed_skill_roots=["skills/other"]),
        "$.source.fixed_skill_roots[0]",
        "not within source.paths",
    ),
    "a background skill that is the target": (
        lambda s: s["source"].update(fixed_skill_roots=["skills/review"]),
        "$.source.fixed_skill_roots[0]",
        "overlaps the target",
    ),
    "a background skill of the target's name": (
        lambda s: export(s, "vendor") and s["source"].update(fixed_skill_roots=["vendor/Review"]),
        "$.source.fixed_skill_roots[0]",
        "under one name",
    ),
    "two background skills of one name": (
        lambda s: export(s, "x") and s["source"].update(fixed_skill_roots=["x/a/lint", "x/b/lint"]),
        "$.source.fixed_skill_roots[1]",
        "under one name",
    ),
    "a background skill inside another": (
        lambda s: export(s, "x") and s["source"].update(fixed_skill_roots=["x/a", "x/a/b"]),
        "$.source.fixed_skill_roots[1]",
        "inside another",
    ),
    "a protected rule in a file that is not frozen": (
        lambda s: s["target"].update(protected_rules=[{"path": "AGENTS.md", "text": "- No."}]),
        "$.target.protected_rules[0].path",
        "not within source.paths",
    ),
    "apply without anything to write": (
        lambda s: s["authority"].update(write_paths=[]),
        "$.authority.write_paths",
        "nothing that it may write",
    ),
    "apply that could write half of the target": (
        lambda s: s["authority"].update(write_paths=["skills/review/docs"]),
        "$.authority.write_paths",
        "could not write",
    ),
}

TASK_RULES: dict[str, tuple[Edit, str, str]] = {
    "a task without its prompt": (
        lambda s: case(s).update(public_paths=["docs"]),
        "$.cases[0].public_paths",
        "instruction.md",
    ),
    "a task without its test": (
        lambda s: case(s).update(grader_paths=["tests/data"]),
        "$.cases[0].grader_paths",
        "tests/test.sh",
    ),
    "a task without its solution": (
        lambda s: case(s).update(oracle_paths=[]),
        "$.cases[0].oracle_paths",
        "solution/solve.sh",
    ),
    "a test that the agent could read": (
        lambda s: case(s).update(public_paths=["instruction.md", "tests/data"]),
        "$.cases[0].grader_paths[0]",
        "share files",
    ),
    "a solution that the grader could read": (
        lambda s: case(s).update(grader_paths=["tests", "solution/solve.sh"]),
        "$.cases[0].oracle_paths[0]",
        "share files",
    ),
    "a date that does not exist": (
        lambda s: case(s).update(information_cutoff="2026-02-30"),
        "$.cases[0].information_cutoff",
        "no such date",
    ),
    "one task as two cases": (
        lambda s: case(s, 1).update(task_path="./" + case(s)["task_path"]),
        "$.cases[1].task_path",
        "already a case",
    ),
    "a repository task of another repository": (
        lambda s: case(s).update(
            source={"kind": "repo", "repo": "other", "base": s["target"]["base_commit"]}
        ),
        "$.cases[0].source.repo",
        "another repository",
    ),
    "a repository task of an undeclared commit": (
        lambda s: case(s).update(source={"kind": "repo", "repo": "repo", "base": OTHER}),
        "$.cases[0].source.base",
        "not declared",
    ),
}

RUNTIME_RULES: dict[str, tuple[Edit, str, str]] = {
    "no model": (lambda s: s["runtime"].pop("model"), "$.runtime.model", "needs runtime.model"),
    "no effort": (lambda s: s["runtime"].pop("effort"), "$.runtime.effort", "runtime.effort"),
    "no tools": (lambda s: s["runtime"].pop("tools"), "$.runtime.tools", "runtime.tools"),
    "no credential": (
        lambda s: s["runtime"].pop("authentication") and s["authority"].pop("auth_path"),
        "$.runtime.authentication",
        "runtime.authentication",
    ),
    "a tool twice": (
        lambda s: s["runtime"].update(tools=["shell", "shell"]),
        "$.runtime.tools",
        "twice",
    ),
    "a credential file that the caller did not allow": (
        lambda s: s["authority"].update(auth_path="~/other.json"),
        "$.authority.auth_path",
        "did not allow",
    ),
    "an allowed credential file that nothing uses": (
        lambda s: s["runtime"].update(authentication={"source": "controller_env", "name": "KEY"}),
        "$.authority.auth_path",
        "nothing uses",
    ),
    "a port that no address has": (
        lambda s: s["runtime"].update(model_proxy="http://proxy:99999"),
        "$.runtime.model_proxy",
        "host or port",
    ),
    "certificates without a secured connection": (
        lambda s: s["runtime"].update(base_url="http://model/v1", model_ca="ca.pem"),
        "$.runtime.model_ca",
        "starts with https:",
    ),
    "an address without host": (
        lambda s: s["runtime"].update(base_url="http://:80/v1"),
        "$.runtime.base_url",
        "host or port",
    ),
    "an address with half a bracket": (
        lambda s: s["runtime"]["codex"].update(registry="https://[::1/npm"),
        "$.runtime.codex.registry",
        "host or port",
    ),
    "a key file that depends on the current directory": (
        lambda s: s["runtime"]["ssh"].update(identity="keys/evolve"),
        "$.runtime.ssh.identity",
        "where the command is started",
    ),
    "a directory of the system as remote root": (
        lambda s: s["runtime"].update(remote_root="/usr"),
        "$.runtime.remote_root",
        "alone",
    ),
    "a remote root that climbs": (
        lambda s: s["runtime"].update(remote_root="/srv/x/../.."),
        "$.runtime.remote_root",
        "alone",
    ),
}


@pytest.mark.parametrize("broken", PATH_RULES)
def test_paths_are_refused_with(study: Study, refused: Refused, broken: str) -> None:
    refused(study, *PATH_RULES[broken])


@pytest.mark.parametrize("broken", TASK_RULES)
def test_a_case_is_refused_with(study: Study, refused: Refused, broken: str) -> None:
    refused(study, *TASK_RULES[broken])


@pytest.mark.parametrize("broken", RUNTIME_RULES)
def test_the_runtime_is_refused_with(study: Study, refused: Refused, broken: str) -> None:
    refused(study, *RUNTIME_RULES[broken])


@pytest.mark.parametrize(
    "place",
    ["/", "//app", "/app/", "/app/../etc", "/etc", "/etc/x", "/tmp", "/xgent/a", "/opt",
     "/opt/codex", "/evolution-input/task", "/home", "/home/agent/x", "/proc/1", "/sys", "/dev",
     "/tests", "/logs/verifier", "/solution"],
)  # fmt: skip
def test_a_working_directory_in_a_reserved_place_is_refused(
    study: Study, faults: Faults, place: str
) -> None:
    case(study)["repo_path"] = place
    assert [fault.where.split(": ", 1)[1] for fault in faults(study)] == ["$.cases[0].repo_path"]


@pytest.mark.parametrize("place", ["/app", "/workspace/repo", "/root", "/testsuite", "/opt/other"])
def test_a_working_directory_elsewhere_is_accepted(study: Study, load: Load, place: str) -> None:
    case(study)["repo_path"] = place
    assert load(study).spec.cases[0].repo_path == place


def test_one_repository_may_be_spelt_in_two_ways(study: Study, load: Load) -> None:
    study["authority"]["repo"] = "./sub/../repo"
    load(study)


def test_a_declared_older_base_is_accepted(study: Study, load: Load) -> None:
    study["target"]["compatible_bases"] = [OTHER]
    case(study)["source"] = {"kind": "repo", "repo": "repo", "base": OTHER}
    load(study)


def test_a_smoke_that_names_a_model_needs_all_that_a_login_needs(
    study: Study, faults: Faults
) -> None:
    study["mode"] = "smoke"
    del study["runtime"]["effort"], study["runtime"]["tools"]
    assert {fault.where.split(": ", 1)[1] for fault in faults(study)} == {
        "$.runtime.effort",
        "$.runtime.tools",
    }


def test_a_task_that_is_declared_unchecked_needs_no_solution(study: Study, load: Load) -> None:
    case(study).update(oracle_paths=[], oracle_check="unchecked")
    load(study)
