"""However an execution ends, what is on record is what happened."""

from __future__ import annotations

import hashlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine


def paths(result: Any) -> list[str]:
    return [change["path"] for change in result.delivery["changes"]]


def running(kit: Any, work: Any, started: Any) -> None:
    """Wait until the command has reported its start."""
    started.send(work)
    started.drive(work)
    end = time.monotonic() + 30
    while not work.starts():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_at_the_time_limit_the_whole_tree_is_dead_and_its_work_is_kept(host: Any, kit: Any) -> None:
    command = """\
trap '' TERM
setsid sh -c 'trap "" TERM; while :; do echo more >>/account/ticks; sleep 0.1; done' &
echo partial >partial
while :; do sleep 0.1; done"""
    work = kit.work(command, limit_s=2)
    result = host.execute(work)
    ticks = work.counter.with_name("ticks")
    seen = len(ticks.read_text())
    assert result.record["expired"] is True
    assert result.record["exit_code"] == 137
    assert paths(result) == ["partial"]
    assert 200 <= result.record["ended_cs"] - result.record["started_cs"] < 600
    time.sleep(0.5)
    assert len(ticks.read_text()) == seen
    assert work.starts() == 1


def test_a_command_that_ends_when_told_keeps_its_own_exit_code(host: Any, kit: Any) -> None:
    work = kit.work("trap 'exit 9' TERM; while :; do sleep 0.05; done", limit_s=1)
    record = host.execute(work).record
    assert (record["expired"], record["exit_code"]) == (True, 9)


def test_a_child_that_holds_the_output_is_waited_for_only_a_moment(host: Any, kit: Any) -> None:
    work = kit.work("(sleep 100; echo late) & echo done; exit 4")
    began = time.monotonic()
    result = host.execute(work)
    assert time.monotonic() - began < 15
    assert (result.record["status"], result.record["exit_code"]) == ("ended", 4)
    assert host.content(work, result, "stdout") == b"done\n"


def test_running_out_of_memory_is_told_by_the_engine_and_the_exit_by_the_record(
    host: Any, kit: Any
) -> None:
    grow = """perl -e '$x = "a" x 500000000; print length $x'"""
    whole = host.execute(kit.work(f"exec {grow}", memory_mb=64))
    child = host.execute(kit.work(f"{grow}; exit 0", memory_mb=64))
    assert whole.receipt("exited")["engine"]["oom_killed"] is True
    assert whole.record["exit_code"] == 137
    assert child.receipt("exited")["engine"]["oom_killed"] is True
    assert child.record["exit_code"] == 0


def test_a_container_that_somebody_kills_has_no_result(host: Any, kit: Any) -> None:
    work = kit.work("echo partial; sleep 60")
    running(kit, work, host)
    kit.engine("kill", work.name)
    result = host.wait(work)
    assert result.record is None
    assert result.receipt("exported")["command_started"] is True
    engine = result.receipt("exited")["engine"]
    assert (engine["exit_code"], engine["oom_killed"]) == (137, False)
    assert result.receipt("exited")["forced"] is False
    assert host.content(work, result, "stdout") == b"partial\n"


def test_a_container_that_somebody_stops_has_no_result_but_what_it_said(
    host: Any, kit: Any
) -> None:
    work = kit.work("echo partial; sleep 60")
    running(kit, work, host)
    kit.engine("stop", work.name)
    result = host.wait(work)
    assert result.record is None, "nobody cancelled it"
    exported = result.receipt("exported")
    assert exported["command_started"] is True
    assert exported["stopped"]["status"] == "cancelled"
    assert host.content(work, result, "stdout") == b"partial\n"


def test_a_container_that_is_removed_by_hand_is_a_gap(host: Any, kit: Any) -> None:
    work = kit.work("sleep 60")
    running(kit, work, host)
    kit.engine("rm", "-f", work.name)
    result = host.wait(work)
    assert result.state == "gap"
    assert "is gone" in result.receipt("gap")["reason"]


def test_a_foreign_container_with_our_name_is_a_gap_and_stays(host: Any, kit: Any) -> None:
    work = kit.work("true")
    foreign = kit.engine("create", "--name", work.name, kit.image, "true")
    result = host.execute(work)
    assert result.state == "gap"
    assert "not ours" in result.receipt("gap")["reason"]
    assert host.clean(work)["foreign"] == [work.name]
    assert kit.engine("inspect", "--format", "{{.Id}}", work.name) == foreign
    kit.engine("rm", foreign)


def test_a_paused_container_is_ended_by_force_after_the_limit(host: Any, kit: Any) -> None:
    work = kit.work("sleep 60", limit_s=1)
    work.request["grace_s"] = 2
    running(kit, work, host)
    kit.engine("pause", work.name)
    result = host.wait(work)
    assert result.receipt("exited")["forced"] is True
    assert result.record is None


def test_after_a_reboot_what_ran_is_lost_and_what_had_ended_is_not(kit: Any) -> None:
    runner = kit.runner()
    lost, done = kit.work("sleep 60"), kit.work("exit 6")
    running(kit, lost, runner)
    runner.execute(done)
    for pid in runner.drivers():
        os.kill(pid, signal.SIGKILL)
    kit.engine("kill", lost.name)
    runner.stop()
    after = kit.runner(runner.root)
    after.drive(lost)
    result = after.wait(lost)
    assert result.record is None
    assert result.receipt("exported")["command_started"] is True
    assert after.wait(done).record["exit_code"] == 6
    assert (lost.starts(), done.starts()) == (1, 1)


def test_a_container_that_somebody_starts_again_runs_nothing(host: Any, kit: Any) -> None:
    work = kit.work("exit 3")
    assert host.execute(work).record["exit_code"] == 3
    kit.engine("start", work.name)
    assert kit.engine("wait", work.name) == "87"
    assert work.starts() == 1


def test_two_executions_run_at_once_and_do_not_meet(host: Any, kit: Any) -> None:
    command = "echo {name} >{name}; sleep 1; cat /work/*"
    works = [kit.work(command.format(name=name)) for name in ("one", "two")]
    for work in works:
        running(kit, work, host)
    for work, name in zip(works, ("one", "two"), strict=True):
        result = host.wait(work)
        assert paths(result) == [name]
        assert host.content(work, result, "stdout") == f"{name}\n".encode()


def test_no_process_and_no_zombie_outlives_the_executions(kit: Any) -> None:
    runner = kit.runner()
    for _ in range(2):
        runner.execute(kit.work("true"))
    children = [runner.process.pid]
    end = time.monotonic() + 5
    while len(runner.drivers()) > 2 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(runner.drivers()) == 2, "the server and its forking child"
    runner.stop()
    while runner.drivers() and time.monotonic() < end:
        time.sleep(0.02)
    assert runner.drivers() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in children)


def with_first_output(work: Any, seconds: int) -> Any:
    """Have a command stopped that has written nothing after so many seconds."""
    [plan] = [item for item in work.request["inputs"] if item["path"] == "xgent/plan.sh"]
    content = work.blobs.pop(plan["sha256"]) + f"first_output_s={seconds}\n".encode()
    plan.update(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    work.blobs[plan["sha256"]] = content
    return work


def test_a_command_that_says_nothing_is_stopped_long_before_its_limit(host: Any, kit: Any) -> None:
    """CDX-02: waiting for an input that does not come."""
    result = host.execute(with_first_output(kit.work("sleep 60"), 1))
    assert (result.record["status"], result.record["expired"]) == ("silent", False)
    assert result.record["ended_cs"] - result.record["started_cs"] < 1500


def test_a_command_that_has_spoken_keeps_the_rest_of_its_time(host: Any, kit: Any) -> None:
    result = host.execute(with_first_output(kit.work("echo here; sleep 2; exit 5"), 1))
    assert (result.record["status"], result.record["exit_code"]) == ("ended", 5)
    late = host.execute(with_first_output(kit.work("echo here; sleep 60", limit_s=3), 1))
    assert (late.record["status"], late.record["expired"]) == ("ended", True)
    assert late.record["ended_cs"] - late.record["started_cs"] >= 290


def test_a_command_that_ends_without_a_word_has_ended(host: Any, kit: Any) -> None:
    result = host.execute(with_first_output(kit.work("exit 4"), 20))
    assert (result.record["status"], result.record["exit_code"]) == ("ended", 4)
