"""The main job, end to end, on real parts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Json = Any


def facts(run: Path) -> list[dict[str, Json]]:
    lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["fact"] for line in lines]


def report(run: Path) -> dict[str, Json]:
    return json.loads((run / "report.json").read_text())


@pytest.mark.codex
def test_the_demo_study_measures_what_the_skill_text_changes(
    make_study: Callable[..., Any], containers: Callable[[Path], list[str]]
) -> None:
    study = make_study()
    run = study.directory / "run"
    done = study.call("run", "--spec", study.spec, "--output", run)
    comparison = report(run)["comparison"]
    assert comparison["estimate"] == 0.642857
    assert comparison["paired_groups"] == 7
    assert report(run)["verdict"]["decision"] == "keep"
    assert comparison["missing"]["missing_trials"] == 0
    assert str(run / "report.md") in done.stdout
    assert len(study.model.requests_by_thread) == 20, "each trial is one conversation"
    assert containers(run) == [], "everything that was registered is cleaned"
    cleaned = {fact["uuid"] for fact in facts(run) if fact["type"] == "cleaned"}
    assert cleaned == {fact["uuid"] for fact in facts(run) if fact["type"] == "intent"}


@pytest.mark.codex
def test_a_killed_controller_is_resumed_to_the_report_of_an_undisturbed_run(
    make_study: Callable[..., Any],
    kill_when: Callable[..., None],
    containers: Callable[[Path], list[str]],
    without_times: Callable[[Json], Json],
) -> None:
    study = make_study(cases=4, delay_s=1.0)
    whole, killed = study.directory / "whole", study.directory / "killed"
    study.call("run", "--spec", study.spec, "--output", whole)
    before = len(study.model.requests_by_thread)

    process = study.start("run", "--spec", study.spec, "--output", killed)
    started: list[str] = []

    def trials_run() -> bool:
        started[:] = containers(killed) if (killed / "run.json").exists() else []
        conversations = len(study.model.requests_by_thread) - before
        return conversations >= 3 and len(started) >= 4

    kill_when(process, trials_run, "three trials talk to the model")
    study.call("resume", "--run", killed)

    assert len(study.model.requests_by_thread) - before == 8, "no trial was started twice"
    uuids = {fact["uuid"] for fact in facts(killed) if fact["type"] == "intent"}
    assert {name.removeprefix("xg-")[:36] for name in started} <= uuids, "they were adopted"
    assert without_times(report(killed)) == without_times(report(whole))
    assert containers(killed) == []


@pytest.mark.codex
def test_a_finished_run_is_recomputed_without_its_host(
    make_study: Callable[..., Any],
) -> None:
    study = make_study(cases=2)
    run = study.directory / "run"
    study.call("run", "--spec", study.spec, "--output", run)
    first = (run / "report.json").read_bytes()
    journal = (run / "journal.jsonl").read_bytes()
    (run / "report.json").unlink()
    study.environment = {"XGENT_TEST_MODEL_KEY": ""}
    host_gone = study.command("resume", "--run", run)
    # The frozen protocol names the host's key file; without it no connection could be made.
    known_hosts = Path(json.loads(study.spec.read_text())["runtime"]["ssh"]["known_hosts"])
    hidden = known_hosts.rename(known_hosts.with_suffix(".hidden"))
    try:
        study.call(*host_gone[3:])
    finally:
        hidden.rename(known_hosts)
    assert (run / "report.json").read_bytes() == first
    assert (run / "journal.jsonl").read_bytes() == journal


@pytest.mark.codex
def test_an_unconfirmed_candidate_is_not_applied(make_study: Callable[..., Any]) -> None:
    study = make_study(cases=2)

    def allow(document: dict[str, Json]) -> None:
        document["authority"].update(allow_apply=True, write_paths=["skills/house-style"])

    spec = study.edit(allow)
    run, repo = study.directory / "run", study.directory / "study" / "house-style"
    study.call("run", "--spec", spec, "--output", run)
    before = {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    refused = study.call("apply", "--run", run, "--repo", repo, check=3)
    assert "error[E_UNCONFIRMED]" in refused.stderr
    assert before == {path: path.read_bytes() for path in repo.rglob("*") if path.is_file()}
    stranger = study.directory / "stranger"
    subprocess.run(["git", "init", "--quiet", stranger], check=True)
    refused = study.call("apply", "--run", run, "--repo", stranger, check=2)
    assert "error[E_AUTHORITY]" in refused.stderr
