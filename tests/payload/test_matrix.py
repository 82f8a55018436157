"""The host's side of the crash matrix (docs/crash-matrix.md): where it stands, what happens to it.

An execution is held at a step by a hanging driver; then its container is killed or removed, or the
host loses every process; then it is driven on. Whatever the cell, the command starts at most once,
and the outcome is the one that the matrix states.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine

STEPS = {
    "accepted": "create.volume.before",
    "created": "receipt.created.after",
    "staged": "receipt.staged.after",
    "start intent": "receipt.start_intent.after",
    "start sent": "receipt.started.before",
    "running": None,
    "exited": "receipt.exited.after",
    "exporting": "export.publish.before",
    "exported": None,
}
"""Where an execution stands, and the point at which its driver hangs to keep it there."""

WHOLE, LOST, GAP = "whole", "lost", "gap"
"""whole: the undisturbed result. lost: exported without a record, an infrastructure failure.
gap: its truth cannot be established."""

MATRIX = {
    "kill": {"start sent": LOST, "running": LOST},
    "remove": {step: GAP for step in STEPS if step not in ("accepted", "exported")},
    "reboot": {"start sent": LOST, "running": LOST},
    "drive twice": {},
}
"""Outcomes that differ from `whole`, by trouble and step."""

CELLS = [(trouble, step) for trouble in MATRIX for step in STEPS]


@pytest.mark.parametrize(("trouble", "step"), CELLS)
def test_an_execution_in_trouble_ends_as_the_matrix_states(
    kit: Any, trouble: str, step: str
) -> None:
    point = STEPS[step]
    faults = {point: {"action": "hang"}} if point else {}
    runner = kit.runner(faults=faults)
    work = kit.work("echo new >new; sleep 1; exit 3")
    runner.send(work)
    runner.drive(work)
    if point:
        log = runner.root / "faults.log"
        wait_until(lambda: log.exists() and log.read_text(), f"it hangs at {point}")
        if step == "start sent":  # a container that unpacks comes to its command a little later
            wait_until(lambda: work.starts() == 1, "the command runs")
    elif step == "running":
        wait_until(lambda: work.starts() == 1, "the command runs")
    else:
        runner.wait(work)
    (runner.root / "faults.json").unlink(missing_ok=True)

    make_trouble(kit, runner, work, trouble)
    if point:
        end_processes(runner)
    result = runner.wait(work)

    expected = MATRIX[trouble].get(step, WHOLE)
    assert outcome_of(result) == expected
    assert work.starts() == (0 if expected == GAP and started_never(step) else 1)
    if expected != GAP:
        runner.clean(work)
        assert kit.engine("ps", "-aq", "--filter", f"name={work.name}") == ""
    runner.stop()


def started_never(step: str) -> bool:
    return step in ("created", "staged", "start intent")


def outcome_of(result: Any) -> str:
    if result.state == "gap":
        return GAP
    if result.record is None:
        return LOST
    assert result.record["exit_code"] == 3
    assert [change["path"] for change in result.delivery["changes"]] == ["new"]
    return WHOLE


def make_trouble(kit: Any, runner: Any, work: Any, trouble: str) -> None:
    with contextlib.suppress(Exception):  # the engine refuses what is not there or does not run
        match trouble:
            case "kill":
                kit.engine("kill", work.name)
            case "remove":
                kit.engine("rm", "-f", work.name)
            case "reboot":
                end_processes(runner)
                kit.engine("kill", work.name)
            case "drive twice":
                runner.drive(work)
                runner.drive(work)


def end_processes(runner: Any) -> None:
    """End the server and every driver at once, as a host that loses its power does."""
    for process in runner.drivers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until(lambda: not alive(runner), "every process is gone")
    runner.stop()
    runner.start()


def alive(runner: Any) -> list[int]:
    found = []
    for process in runner.drivers():
        # It may be gone by now: then it is not alive either.
        with contextlib.suppress(OSError):
            if " Z " not in Path(f"/proc/{process}/stat").read_text(errors="replace"):
                found.append(process)
    return found


def wait_until(condition: Any, what: str, limit_s: float = 30) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        time.sleep(0.02)
