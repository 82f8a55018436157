"""Smoke: everything is tried, nothing is paid for."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.conftest import as_smoke


@pytest.mark.codex
def test_smoke_checks_sandbox_verifier_and_reference_solution_without_a_model(
    make_study: Callable[..., Any],
) -> None:
    study = make_study(cases=2)
    run = study.directory / "run"
    study.call("run", "--spec", study.edit(as_smoke), "--output", run)
    document = json.loads((run / "report.json").read_text())
    for case in document["smoke"]:
        for step in ("probe", "untouched", "oracle"):
            assert case[step]["status"] == "passed", case
    assert dict(study.model.requests_by_thread) == {}
    assert study.call("apply", "--run", run, "--repo", study.directory, check=2)


@pytest.mark.codex
def test_smoke_names_a_reference_solution_that_does_not_solve(
    make_study: Callable[..., Any],
) -> None:
    study = make_study(cases=1)
    solution = study.spec.parent / "tasks" / "release-notes" / "solution" / "solve.sh"
    solution.write_text("#!/bin/sh\necho tried >&2\nexit 7\n")
    run = study.directory / "run"
    done = study.call("run", "--spec", study.edit(as_smoke), "--output", run, check=2)
    case = json.loads((run / "report.json").read_text())["smoke"][0]
    assert case["oracle"]["status"] == "failed"
    assert "not 1" in case["oracle"]["detail"]
    assert "error[E_SPEC_TASK_ORACLE]" in done.stderr
    assert "release-notes" in done.stderr
    assert "the solution itself: exit code 7: tried" in done.stderr
    again = study.call("resume", "--run", run, check=2)
    assert "error[E_SPEC_TASK_ORACLE]" in again.stderr


@pytest.mark.codex
def test_smoke_with_a_model_proves_the_login(make_study: Callable[..., Any]) -> None:
    study = make_study(cases=1)

    def with_model(document: dict[str, Any]) -> None:
        document["mode"] = "smoke"
        document.pop("candidate_condition")

    run = study.directory / "run"
    study.call("run", "--spec", study.edit(with_model), "--output", run)
    case = json.loads((run / "report.json").read_text())["smoke"][0]
    assert case["agent"]["status"] == "passed"
    assert len(study.model.requests_by_thread) == 1
