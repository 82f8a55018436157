"""What must never happen twice, and whose record counts."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import Any

import pytest

from tests.payload.test_matrix import alive, wait_until

pytestmark = pytest.mark.engine


def started_at(kit: Any, work: Any) -> str:
    return kit.engine("inspect", "--format", "{{.State.Status}} {{.State.StartedAt}}", work.name)


def test_a_driver_sends_no_start_to_a_container_that_has_been_started(kit: Any) -> None:
    runner = kit.runner(faults={"receipt.started.before": {"action": "hang"}})
    work = kit.work("true")
    runner.send(work)
    runner.drive(work)
    wait_until(lambda: work.starts() == 1, "the command ran")
    wait_until(lambda: started_at(kit, work).startswith("exited"), "the container ended")
    before = started_at(kit, work)
    (runner.root / "faults.json").unlink()
    for process in runner.drivers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until(lambda: not alive(runner), "every process is gone")
    runner.stop()
    runner.start()
    result = runner.wait(work)
    assert result.record is not None
    assert started_at(kit, work) == before
    runner.clean(work)
    runner.stop()


def test_driving_an_execution_that_has_ended_changes_nothing(kit: Any) -> None:
    runner = kit.runner()
    work = kit.work("echo new >new")
    runner.execute(work)
    for end in (lambda: None, lambda: runner.clean(work)):
        end()
        before = runner.look(work)["receipts"]
        for _ in range(2):
            runner.drive(work)
            time.sleep(0.3)
            wait_until(lambda: not runner.look(work)["driven"], "the driver has left")
        assert runner.look(work)["receipts"] == before
    runner.stop()


def test_the_record_of_another_execution_is_a_gap_and_no_result(kit: Any) -> None:
    runner = kit.runner()
    forged = '{"container":"another","uuid":"00000000-0000-4000-8000-000000000000"}'
    work = kit.work(f"echo '{forged}' >/xgent/identity")
    result = runner.execute(work)
    assert result.state == "gap"
    assert "another execution" in result.receipt("gap")["reason"]
    kit.engine("rm", "-f", work.name)
    runner.stop()
