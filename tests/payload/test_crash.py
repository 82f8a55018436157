"""Killed at any point, an execution is driven on to the same end, and its command starts once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

type Json = Any
type Scenario = Callable[[Any, dict[str, Json]], Seen]

KILL = {"action": "kill"}
PARALLEL = 4

pytestmark = pytest.mark.engine


@dataclass
class Seen:
    """What one disturbed execution came to."""

    outcome: Json
    starts: int
    fired: list[str]
    clean: bool
    """Whether everything was removed at the end, with a receipt."""


def finished(kit: Any, runner: Any, work: Any, *, drive: bool = True) -> Seen:
    """Drive to the end, clean up, and tell what was seen."""
    if drive:
        runner.drive(work)
    result = runner.wait(work)
    if "exported" in result.kinds:
        runner.objects(work, list(result.receipt("exported")["objects"]))
    runner.clean(work)
    names = kit.engine("ps", "-a", "--filter", f"name={work.name}", "--format", "{{.Names}}")
    volumes = kit.engine("volume", "ls", "--filter", f"name={work.name}", "-q")
    log = runner.root / "faults.log"
    fired = [line.split()[0] for line in log.read_text().splitlines()] if log.exists() else []
    runner.stop()
    return Seen(result.outcome(), work.starts(), fired, not names and not volumes)


def whole_life(kit: Any, faults: dict[str, Json]) -> Seen:
    """Everything that an execution can have: image workspace, credential, delivery, captured."""
    runner = kit.runner(faults=faults)
    command = "cat kept; echo new >new; mkdir -p /out; echo log >/out/log; exit 3"
    work = kit.work(
        command,
        files={"kept": b"kept\n"},
        from_image="/srv",
        secret=b'{"OPENAI_API_KEY": "sk-0123456789abcdef0123456789"}',
        paths=["/out"],
    )
    runner.send(work)
    return finished(kit, runner, work)


def cancelled_while_it_runs(kit: Any, faults: dict[str, Json]) -> Seen:
    runner = kit.runner(faults=faults)
    work = kit.work("echo partial >partial; sleep 60")
    runner.send(work)
    runner.drive(work)
    runner.until(work, "started")
    while not work.starts():
        pass
    runner.insist("cancel", uuids=[work.uuid], socket=kit.socket)
    return finished(kit, runner, work)


def cancelled_before_a_start_is_certain(kit: Any, faults: dict[str, Json]) -> Seen:
    """Its driver dies between start intent and start; then somebody cancels, then it is driven."""
    runner = kit.runner(faults={"receipt.start_intent.after": KILL, **faults})
    work = kit.work("true")
    runner.send(work)
    runner.drive(work)
    runner.until(work, "start_intent")
    runner.insist("cancel", uuids=[work.uuid], socket=kit.socket)
    return finished(kit, runner, work)


def failed(kit: Any, faults: dict[str, Json]) -> Seen:
    runner = kit.runner(faults=faults)
    work = kit.work("true", image="sha256:" + "0" * 64)
    runner.send(work)
    return finished(kit, runner, work)


def gap(kit: Any, faults: dict[str, Json]) -> Seen:
    runner = kit.runner(faults=faults)
    work = kit.work("true")
    kit.engine("volume", "create", f"{work.name}-work")
    try:
        runner.send(work)
        seen = finished(kit, runner, work)
    finally:
        kit.engine("volume", "rm", f"{work.name}-work")
    seen.clean = True  # what is not ours has to stay
    return seen


def scenario_of(point: str) -> Scenario:
    """Return the scenario that comes by a point."""
    name = point.rsplit(".", 1)[0]
    if name in {"cancel.tell", "receipt.cancel_requested"}:
        return cancelled_while_it_runs
    if name in {"cancel.fence", "receipt.cancelled"}:
        return cancelled_before_a_start_is_certain
    return {"receipt.failed": failed, "receipt.gap": gap}.get(name, whole_life)


LOST = {"command_started": True, "record": dict.fromkeys(("status", "exit_code", "expired"))}
INSIDE = {
    # The supervisor died: no record, so no result; the token says whether the command may have run.
    "supervisor.token.before": (0, {**LOST, "command_started": False}),
    "supervisor.token.after": (0, LOST),
    "supervisor.command.after": (1, LOST),
    "supervisor.record.before": (1, LOST),
}


def points() -> list[str]:
    """Return the points that the shipped runner names."""
    runner = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "host_runner"
    done = subprocess.run(
        [sys.executable, "-I", "-B", runner, "points", "/nonexistent"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


POINTS = points()


@pytest.fixture(scope="module")
def undisturbed(kit: Any) -> dict[Scenario, Seen]:
    scenarios = {scenario_of(point) for point in POINTS}
    with ThreadPoolExecutor(PARALLEL) as pool:
        return dict(zip(scenarios, pool.map(lambda run: run(kit, {}), scenarios), strict=True))


@pytest.fixture(scope="module")
def disturbed(kit: Any, undisturbed: dict[Scenario, Seen]) -> Iterator[dict[str, Future[Seen]]]:
    """Every point's execution, a few at a time."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        yield {point: pool.submit(scenario_of(point), kit, {point: KILL}) for point in POINTS}


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_point_it_comes_to_the_same_end_with_one_start(
    point: str, undisturbed: dict[Scenario, Seen], disturbed: dict[str, Future[Seen]]
) -> None:
    seen, whole = disturbed[point].result(), undisturbed[scenario_of(point)]
    assert point in seen.fired
    assert seen.clean
    if point in INSIDE:
        starts, outcome = INSIDE[point]
        assert seen.starts == starts
        assert {key: seen.outcome[key] for key in outcome} == outcome
        assert seen.outcome["delivery"] is None
    else:
        assert seen.outcome == whole.outcome
        assert seen.starts == whole.starts


def test_the_undisturbed_ends_are_the_five_that_exist(undisturbed: dict[Scenario, Seen]) -> None:
    ends = {run: (seen.outcome, seen.starts) for run, seen in undisturbed.items()}
    assert ends[whole_life][0]["record"] == {"status": "ended", "exit_code": 3, "expired": False}
    assert [change["path"] for change in ends[whole_life][0]["delivery"]["changes"]] == ["new"]
    assert ends[cancelled_while_it_runs][0]["record"]["status"] == "cancelled"
    assert ends[cancelled_before_a_start_is_certain][0]["kind"] == "cancelled"
    assert ends[failed][0]["cause"] == "image_missing"
    assert "not ours" in ends[gap][0]["reason"]
    assert [ends[run][1] for run in (whole_life, cancelled_while_it_runs)] == [1, 1]
    assert [ends[run][1] for run in (cancelled_before_a_start_is_certain, failed, gap)] == [0] * 3


def test_no_listed_point_is_left_out_and_none_is_unlisted(
    disturbed: dict[str, Future[Seen]],
) -> None:
    fired = {name for future in disturbed.values() for name in future.result().fired}
    assert fired == set(POINTS)
