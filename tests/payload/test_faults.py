"""When the disk fails, the process stops; nothing half-written is believed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.payload.test_crash import POINTS, scenario_of

pytestmark = pytest.mark.engine

FULL = bool(os.environ.get("XGENT_EVOLVE_FULL_MATRIX"))
ERRORS = ("enospc", "eio", "eacces")
PLACES = [point for point in POINTS if not point.startswith("supervisor.")]
"""Every effect and every receipt of the host, before and after it."""
ALL = [(point, error) for error in ERRORS for point in PLACES]
CASES = ALL if FULL else ALL[::5]


def disturbed(kit: Any, point: str, error: str) -> Any:
    """The same place fails twice, the second time when somebody tries again."""
    return scenario_of(point)(kit, {point: {"action": error, "times": 2}})


@pytest.fixture(scope="module")
def whole(kit: Any) -> dict[Any, Any]:
    scenarios = {scenario_of(point) for point in PLACES}
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(scenarios, pool.map(lambda run: run(kit, {}), scenarios), strict=True))


@pytest.fixture(scope="module")
def ends(kit: Any, whole: dict[Any, Any]) -> Iterator[dict[tuple[str, str], Future[Any]]]:
    with ThreadPoolExecutor(4) as pool:
        yield {case: pool.submit(disturbed, kit, *case) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_where_the_host_fails_nothing_is_half_done_and_a_later_try_comes_to_the_same_end(
    case: tuple[str, str], ends: dict[tuple[str, str], Future[Any]], whole: dict[Any, Any]
) -> None:
    seen, undisturbed = ends[case].result(), whole[scenario_of(case[0])]
    assert case[0] in seen.fired
    assert seen.outcome == undisturbed.outcome
    assert seen.starts == undisturbed.starts
    assert seen.clean


def fill(root: Path) -> Path:
    """Leave not one byte free."""
    filler = root / "filler"
    with filler.open("ab", buffering=0) as stream:
        for size in (65536, 4096, 1):
            try:
                while True:
                    stream.write(bytes(size))
            except OSError:
                continue
    return filler


def test_on_a_full_disk_nothing_is_accepted_and_later_everything_is(
    kit: Any, small_root: Path
) -> None:
    runner = kit.runner(small_root)
    work = kit.work("exit 3")
    filler = fill(small_root)
    with pytest.raises(Exception, match="No space left"):
        runner.ask("accept", executions=[{"uuid": work.uuid, "request": work.text()}])
    assert runner.look(work)["state"] == "absent"
    filler.unlink()
    assert runner.execute(work).record["exit_code"] == 3
    assert work.starts() == 1
    runner.stop()


def test_when_the_disk_fills_while_it_runs_the_result_waits_for_space(
    kit: Any, small_root: Path
) -> None:
    runner = kit.runner(small_root)
    work = kit.work("sleep 1; head -c 6000000 /dev/urandom >large; echo done")
    runner.send(work)
    runner.drive(work)
    runner.until(work, "started")
    filler = fill(small_root)
    receipts = small_root / "executions" / work.uuid / "receipts.jsonl"
    before = receipts.read_bytes()
    idle(runner, work)
    after = receipts.read_bytes()
    assert after.startswith(before)
    assert after.endswith(b"\n"), "no part of a receipt stays"
    assert b'"exported"' not in after
    filler.unlink()
    runner.drive(work)
    runner.until(work, "exited")
    idle(runner, work)
    assert runner.look(work)["state"] == "exited", "six megabytes do not fit"
    assert named(small_root, work) == []
    subprocess.run(["mount", "-o", "remount,size=64m", small_root], check=True)
    result = runner.wait(work)
    assert runner.content(work, result, "stdout") == b"done\n"
    assert [change["path"] for change in result.delivery["changes"]] == ["large"]
    assert work.starts() == 1
    assert not list((small_root / "executions" / work.uuid).rglob(".tmp-*"))
    runner.stop()


def idle(runner: Any, work: Any) -> None:
    """Wait until nobody drives it any more."""
    end = time.monotonic() + 20
    while runner.look(work)["driven"]:
        assert time.monotonic() < end
        time.sleep(0.05)


def named(root: Path, work: Any) -> list[str]:
    """Objects that have their final name."""
    objects = root / "executions" / work.uuid / "objects"
    names = [path.name for path in objects.iterdir()] if objects.exists() else []
    return [name for name in names if not name.startswith(".tmp-")]


def test_a_hanging_process_keeps_its_execution_until_it_is_ended(kit: Any) -> None:
    runner = kit.runner(faults={"wait.before": {"action": "hang"}})
    work = kit.work("exit 3")
    runner.send(work)
    runner.drive(work)
    runner.until(work, "started")
    time.sleep(0.5)
    assert runner.look(work)["driven"] is True
    runner.drive(work)
    [hanging] = set(runner.drivers()) - {runner.process.pid} - spawners(runner)
    os.kill(hanging, signal.SIGKILL)
    assert runner.wait(work).record["exit_code"] == 3
    assert work.starts() == 1


def spawners(runner: Any) -> set[int]:
    """Direct children of the server: the one that forks."""
    path = Path(f"/proc/{runner.process.pid}/task/{runner.process.pid}/children")
    return {int(pid) for pid in path.read_text().split()}


def test_a_fault_for_one_execution_leaves_the_others_alone(kit: Any) -> None:
    hit, spared = kit.work("true"), kit.work("true")
    point = "receipt.started.after"
    runner = kit.runner(faults={point: {"action": "kill", "uuid": hit.uuid, "times": 1}})
    for work in (spared, hit):
        assert runner.execute(work).record["exit_code"] == 0
    log = (runner.root / "faults.log").read_text().splitlines()
    assert log == [f"{point} kill {hit.uuid}"]


def test_a_hanging_supervisor_is_ended_by_force_and_leaves_no_result(kit: Any) -> None:
    runner = kit.runner(faults={"supervisor.command.after": {"action": "hang"}})
    work = kit.work("true", limit_s=1)
    work.request["grace_s"] = 1
    result = runner.execute(work)
    assert result.receipt("exited")["forced"] is True
    assert result.record is None
    assert work.starts() == 1


def test_a_point_that_does_not_exist_is_an_error_at_the_start(kit: Any, archive: Path) -> None:
    root = kit.directory / "wrong"
    root.mkdir()
    (root / "faults.json").write_text(json.dumps({"no.such.point": {"action": "kill"}}))
    done = subprocess.run(
        ["python3", "-I", archive, "serve", root], stdin=subprocess.DEVNULL, capture_output=True
    )
    assert done.returncode != 0
    assert b"no such fault point: no.such.point" in done.stderr
