"""Killed at any point of the protocol, a run is resumed to the same report, and nothing twice."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

POINTS = [
    "executor.register",
    "executor.registered",
    "executor.uploaded",
    "executor.accepted",
    "executor.drive",
    "executor.driven",
    "executor.ended",
    "executor.fetched",
    "executor.stored",
    "executor.captured",
    "executor.clean",
    "executor.removed",
    "executor.cleaned",
    "results.write",
    "results.sync",
    "study.report",
    "study.finished",
]


def facts(run: Path) -> list[dict[str, Any]]:
    lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["fact"] for line in lines]


def captured_agents(run: Path) -> int:
    agents = {fact["uuid"] for fact in facts(run) if fact.get("kind") == "agent"}
    return sum(fact["type"] == "captured" and fact["uuid"] in agents for fact in facts(run))


def report(run: Path) -> dict[str, Any]:
    """Return the report without the study's name: each test has paths and ports of its own."""
    document = json.loads((run / "report.json").read_text())
    del document["study"]["protocol_digest"]
    return document


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    """The report of a run that nobody disturbs, made once by the first test that needs it."""
    return {}


@pytest.mark.codex
@pytest.mark.parametrize("point", POINTS)
def test_a_controller_killed_at_any_point_is_resumed_to_the_same_report(
    smoke: Any,
    containers: Callable[[Path], list[str]],
    without_times: Callable[[Any], Any],
    undisturbed: dict[str, Any],
    point: str,
) -> None:
    if not undisturbed:
        whole = smoke.directory / "whole"
        smoke.call("run", "--spec", smoke.spec, "--output", whole)
        undisturbed.update(without_times(report(whole)))
    run = smoke.directory / "run"
    # The second time that a point is reached, so that one execution is through already.
    count = 1 if point.startswith("study.") else 2
    smoke.environment = {"XGENT_EVOLVE_CRASH_AT": f"{point}:{count}"}
    killed = smoke.call("run", "--spec", smoke.spec, "--output", run, check=None)
    assert killed.returncode == -signal.SIGKILL, f"{point} was not reached"
    smoke.environment = {}
    smoke.call("resume", "--run", run)
    assert without_times(report(run)) == undisturbed
    assert containers(run) == []
    cleaned = [fact["uuid"] for fact in facts(run) if fact["type"] == "cleaned"]
    registered = [fact["uuid"] for fact in facts(run) if fact["type"] == "intent"]
    assert sorted(cleaned) == sorted(registered)
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    assert len({row["execution"] for row in rows}) == len(rows) == len(registered)


@pytest.mark.codex
def test_a_resume_that_is_killed_again_and_again_still_ends_well(
    smoke: Any, containers: Callable[[Path], list[str]]
) -> None:
    run = smoke.directory / "run"
    smoke.environment = {"XGENT_EVOLVE_CRASH_AT": "executor.driven:1"}
    smoke.call("run", "--spec", smoke.spec, "--output", run, check=-signal.SIGKILL)
    for point in ("executor.ended:1", "executor.captured:2", "executor.removed:1"):
        smoke.environment = {"XGENT_EVOLVE_CRASH_AT": point}
        smoke.call("resume", "--run", run, check=-signal.SIGKILL)
    smoke.environment = {}
    smoke.call("resume", "--run", run)
    assert containers(run) == []


@pytest.mark.codex
def test_a_dry_run_says_what_is_true_of_every_execution_and_changes_nothing(
    make_study: Callable[..., Any], kill_when: Callable[..., None]
) -> None:
    study = make_study(cases=2, delay_s=8.0)
    run = study.directory / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    kill_when(process, lambda: len(study.model.requests_by_thread) >= 2, "two trials run")
    before = (run / "journal.jsonl").read_bytes()
    done = study.call("resume", "--run", run, "--dry-run", "--json")
    rows = [
        row for row in json.loads(done.stdout)["executions"] if row["slot"].startswith("measure")
    ]
    assert {row["outcome"] for row in rows} <= {"running", "never_started", "exported", "ended"}
    assert any(row["outcome"] == "running" for row in rows)
    assert all(row["reason"] for row in rows)
    assert (run / "journal.jsonl").read_bytes() == before
    assert "running" in study.call("resume", "--run", run, "--dry-run").stdout
    study.call("cancel", "--run", run)


def removed(directory: Path) -> bool:
    """Remove a directory in which a driving process may still write; say whether it is gone."""
    with contextlib.suppress(OSError):
        shutil.rmtree(directory)
    return not directory.exists()


@pytest.mark.codex
def test_a_gap_stops_the_run_until_a_person_decides(
    make_study: Callable[..., Any],
    kill_when: Callable[..., None],
    remote_root: Path,
    engine: Any,
    wait_for: Callable[..., None],
) -> None:
    study = make_study(cases=1, delay_s=1.5)
    run = study.directory / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    kill_when(process, lambda: len(study.model.requests_by_thread) >= 2, "both trials run")
    lost = next(fact["uuid"] for fact in facts(run) if fact.get("kind") == "agent")
    subprocess.run([engine.path, "rm", "-f", f"xg-{lost}"], check=True, capture_output=True)
    wait_for(lambda: removed(remote_root / "executions" / lost), "nobody writes there any more")

    stopped = study.call("resume", "--run", run, check=3)
    assert "error[E_GAP]" in stopped.stderr
    assert lost in stopped.stderr
    paid = len(study.model.requests_by_thread)
    assert study.call("resume", "--run", run, check=3).stderr
    assert len(study.model.requests_by_thread) == paid, "a gap stops paid work"
    status = json.loads(study.call("status", "--run", run, "--json").stdout)
    assert status["stage"] == "gap"
    assert lost in status["next"]

    refused = study.call("resolve", "--run", run, "--execution", lost, "--reason", " ", check=2)
    assert "error[E_RESOLVE]" in refused.stderr
    study.call("resolve", "--run", run, "--execution", lost, "--reason", "the host was wiped")
    study.call("resume", "--run", run)
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    causes = {row["execution"]: row["cause"] for row in rows}
    assert causes[lost] == "resolved_lost"
    attempts = [row for row in rows if row["kind"] == "agent" and row["attempt"] == 2]
    assert len(attempts) == 1, "one further attempt, of the lost slot alone"


@pytest.mark.codex
@pytest.mark.parametrize(
    ("signal_number", "mode", "code"),
    [
        (signal.SIGINT, "detach", 130),
        (signal.SIGTERM, "detach", 143),
        (signal.SIGINT, "drain", 130),
    ],
)
def test_a_signal_ends_a_run_in_an_orderly_way(
    make_study: Callable[..., Any],
    wait_for: Callable[..., None],
    signal_number: int,
    mode: str,
    code: int,
) -> None:
    study = make_study(cases=3, delay_s=1.0)
    study.edit(lambda document: document["budget"].update(max_concurrency=2))
    run = study.directory / "run"
    words = ("run", "--spec", study.spec, "--output", run, "--on-interrupt", mode)
    process = study.start(*words)
    wait_for(lambda: len(study.model.requests_by_thread) >= 2, "two trials run")
    process.send_signal(signal_number)
    assert process.wait(timeout=60) == code
    assert captured_agents(run) == (2 if mode == "drain" else 0)
    status = json.loads(study.call("status", "--run", run, "--json").stdout)
    assert status["stage"] == "interrupted"
    study.call("resume", "--run", run)
    assert len(study.model.requests_by_thread) == 6


@pytest.mark.codex
def test_cancel_ends_what_is_under_way_and_may_be_repeated(
    make_study: Callable[..., Any],
    wait_for: Callable[..., None],
    containers: Callable[[Path], list[str]],
) -> None:
    study = make_study(cases=2, delay_s=20.0)
    run = study.directory / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    wait_for(lambda: len(study.model.requests_by_thread) >= 4, "four trials run")
    done = json.loads(study.call("cancel", "--run", run, "--json").stdout.splitlines()[-1])
    assert done["ended"] == 4
    assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert containers(run) == []
    again = json.loads(study.call("cancel", "--run", run, "--json").stdout.splitlines()[-1])
    assert again["already"]
    refused = study.call("resume", "--run", run, check=3)
    assert "error[E_RUN_CANCELLED]" in refused.stderr
    assert captured_agents(run) == 4, "what they left is kept"
    assert study.call("logs", "--run", run).stdout.count("thread.started") == 4


@pytest.mark.codex
def test_a_second_controller_is_told_who_owns_the_run(
    make_study: Callable[..., Any], wait_for: Callable[..., None]
) -> None:
    study = make_study(cases=1, delay_s=2.0)
    run = study.directory / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    wait_for(lambda: len(study.model.requests_by_thread) >= 1, "a trial runs")
    refused = study.call("resume", "--run", run, check=3)
    assert "error[E_BUSY]" in refused.stderr
    assert str(process.pid) in refused.stderr
    status = json.loads(study.call("status", "--run", run, "--json").stdout)
    assert status["stage"] == "running"
    assert status["controller"]["pid"] == process.pid
    watched = study.call("watch", "--run", run, "--interval", "0.2")
    assert process.wait(timeout=60) == 0
    assert "stage       finished" in watched.stdout


@pytest.mark.codex
def test_changed_frozen_bytes_and_code_are_refused(smoke: Any) -> None:
    run = smoke.directory / "run"
    smoke.environment = {"XGENT_EVOLVE_CRASH_AT": "executor.driven:1"}
    smoke.call("run", "--spec", smoke.spec, "--output", run, check=-signal.SIGKILL)
    smoke.environment = {}
    protocol = run / "protocol.json"
    content = protocol.read_bytes()
    protocol.chmod(0o644)
    protocol.write_bytes(content.replace(b'"house-style-demo"', b'"house-style-fake"'))
    assert "error[E_" in smoke.call("resume", "--run", run, check=3).stderr
    protocol.write_bytes(content)
    blob = max((run / "blobs").glob("??/*"), key=lambda path: path.stat().st_size)
    kept = blob.read_bytes()
    blob.chmod(0o644)
    blob.write_bytes(kept[:-1] + b"X")
    assert "error[E_STORE" in smoke.call("resume", "--run", run, check=3).stderr
    blob.parent.mkdir(exist_ok=True)
    blob.unlink(missing_ok=True)
    blob.write_bytes(kept)
    smoke.call("resume", "--run", run)
