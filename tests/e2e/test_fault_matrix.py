"""The controller's side of the crash matrix (docs/crash-matrix.md), cell by cell.

A sample of the cells runs by default; with XGENT_EVOLVE_FULL_MATRIX=1 all of them do.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

import xgent_evolve
from tests.e2e.test_recovery import POINTS, report
from tests.e2e.test_ssh_trouble import Proxy, through

PACKAGE = Path(xgent_evolve.__file__).parent
FULL = bool(os.environ.get("XGENT_EVOLVE_FULL_MATRIX"))
EXECUTOR = [point for point in POINTS if point.startswith("executor.")]
STORE = {
    "blobs.barrier": 16,
    "blobs.publish": 40,
    "blobs.sync-names": 16,
    "durable.sync-file": 30,
    "durable.rename": 12,
    "durable.sync-directory": 12,
    "journal.write": 6,
    "journal.sync": 6,
    "results.write": 2,
    "results.sync": 2,
}
"""Points of the store, and at which time to act: late enough for the run directory to be made."""


def sample[T](cells: Sequence[T], every: int) -> Sequence[T]:
    """Return all cells, or every so-manieth."""
    return cells if FULL else cells[::every]


@pytest.fixture
def proxy(sshd: Any) -> Generator[Proxy]:
    proxy = Proxy(sshd.address.port)
    yield proxy
    proxy.close()


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Any]:
    return {}


@pytest.fixture
def expected(
    smoke: Any, undisturbed: dict[str, Any], without_times: Callable[[Any], Any]
) -> dict[str, Any]:
    """The report of a run that nobody disturbs, made once."""
    if not undisturbed:
        whole = smoke.directory / "whole"
        smoke.call("run", "--spec", smoke.spec, "--output", whole)
        undisturbed.update(without_times(report(whole)))
    return undisturbed


CUTS = [(point, "cut") for point in EXECUTOR]
FREEZES = [(point, "freeze") for point in EXECUTOR]


@pytest.mark.codex
@pytest.mark.parametrize(("point", "trouble"), [*sample(CUTS, 2), *sample(FREEZES, 13)])
def test_a_connection_that_breaks_at_a_point_changes_nothing(
    smoke: Any,
    sshd: Any,
    proxy: Proxy,
    tmp_path: Path,
    wait_for: Callable[..., None],
    containers: Callable[[Path], list[str]],
    expected: dict[str, Any],
    without_times: Callable[[Any], Any],
    point: str,
    trouble: str,
) -> None:
    document = json.loads(smoke.spec.read_text())
    through(proxy, sshd, tmp_path)(document)
    smoke.spec.write_text(json.dumps(document))
    run = tmp_path / "run"
    process = smoke.start(
        "run",
        "--spec",
        smoke.spec,
        "--output",
        run,
        environment={"XGENT_EVOLVE_CRASH_AT": f"{point}:2", "XGENT_EVOLVE_CRASH_AS": "pause"},
    )
    wait_for(lambda: f"paused at {point}" in smoke.story.read_text(), f"paused at {point}")
    getattr(proxy, trouble)()
    assert process.wait(timeout=150) == 0, smoke.story.read_text()
    assert without_times(report(run)) == expected
    assert containers(run) == []


ERRORS = [(point, error) for error in ("enospc", "eio", "eacces") for point in STORE]


@pytest.mark.codex
@pytest.mark.parametrize(("point", "error"), sample(ERRORS, 4))
def test_a_failing_disk_stops_the_command_and_resume_goes_on(
    smoke: Any,
    tmp_path: Path,
    containers: Callable[[Path], list[str]],
    expected: dict[str, Any],
    without_times: Callable[[Any], Any],
    point: str,
    error: str,
) -> None:
    run = tmp_path / "run"
    smoke.environment = {
        "XGENT_EVOLVE_CRASH_AT": f"{point}:{STORE[point]}",
        "XGENT_EVOLVE_CRASH_AS": error,
    }
    stopped = smoke.call("run", "--spec", smoke.spec, "--output", run, check=3)
    code = "E_STORE_NO_SPACE" if error == "enospc" else "E_STORE_IO"
    assert f"error[{code}]" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    smoke.environment = {}
    smoke.call("resume", "--run", run)
    assert without_times(report(run)) == expected
    assert containers(run) == []


POINT = re.compile(r'crash_point\("((?:blobs|durable|journal|results|rundir|staging)\.[\w-]+)"\)')
FOUND = {name for path in PACKAGE.rglob("*.py") for name in POINT.findall(path.read_text())}
DISK = sorted(FOUND - {"journal.repaired"})
"""Every point at which a run is about to touch the controller's disk, or just has."""
FULL_DISKS = [(point, error) for error in ("enospc", "eio") for point in DISK]


@pytest.mark.codex
@pytest.mark.parametrize(("point", "error"), sample(FULL_DISKS, 11))
def test_a_disk_that_fails_at_any_point_leaves_a_run_that_ends_the_same(
    smoke: Any,
    tmp_path: Path,
    containers: Callable[[Path], list[str]],
    expected: dict[str, Any],
    without_times: Callable[[Any], Any],
    point: str,
    error: str,
) -> None:
    """At the first time that the point is reached; of all cells, at every time until none is."""
    for time in itertools.count(1) if FULL else (1,):
        run = tmp_path / f"run-{time}"
        smoke.environment = {
            "XGENT_EVOLVE_CRASH_AT": f"{point}:{time}",
            "XGENT_EVOLVE_CRASH_AS": error,
        }
        stopped = smoke.call("run", "--spec", smoke.spec, "--output", run, check=None)
        if stopped.returncode == 0 and time > 1:
            return
        assert stopped.returncode == 3, f"{point}:{time}: {stopped.stderr}"
        assert "error[E_STORE_" in stopped.stderr
        assert "Traceback" not in stopped.stderr
        smoke.environment = {}
        if run.exists():
            smoke.call("resume", "--run", run)
        else:  # the disk failed before there was a run
            smoke.call("run", "--spec", smoke.spec, "--output", run)
        assert without_times(report(run)) == expected
        assert containers(run) == []


@pytest.mark.codex
@pytest.mark.parametrize("jump", ["-1h", "+1h", "+400d"])
def test_a_clock_that_jumps_changes_nothing(
    smoke: Any,
    tmp_path: Path,
    expected: dict[str, Any],
    without_times: Callable[[Any], Any],
    jump: str,
) -> None:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    assert found, "libfaketime is not installed; scripts/test installs it"
    run = tmp_path / "run"
    smoke.environment = {"XGENT_EVOLVE_CRASH_AT": "executor.driven:2"}
    smoke.call("run", "--spec", smoke.spec, "--output", run, check=-signal.SIGKILL)
    smoke.environment = {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": jump,
        "DONT_FAKE_MONOTONIC": "1",
    }
    smoke.call("resume", "--run", run)
    assert without_times(report(run)) == expected
