"""An engine that is away says nothing: it is asked again, and nothing is concluded."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.payload.test_matrix import LOST, STEPS, WHOLE, end_processes, outcome_of, wait_until

pytestmark = pytest.mark.engine


RESTARTS = {
    "engine restart": {"start sent": LOST, "running": LOST},
    "with live restore": {},
}
"""Outcomes that differ from `whole`, as in the matrix: the engine is killed and started again."""
LASTING = ("start sent", "running")
"""Steps at which the command runs."""


class PrivateEngine:
    """An engine of our own, in a network of its own, that may be killed."""

    def __init__(self, directory: Path, *, live_restore: bool) -> None:
        self.directory = directory
        self.socket = str(directory / "engine.sock")
        self.live_restore = live_restore
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["--data-root", self.directory / "data", "--exec-root", self.directory / "exec"]
        words += ["--pidfile", self.directory / "pid", "-H", f"unix://{self.socket}"]
        words += ["--iptables=false", "--ip6tables=false", "--storage-driver", "overlay2"]
        words += [f"--live-restore={str(self.live_restore).lower()}"]
        binary = shutil.which("dockerd", path=f"{os.environ['PATH']}:/usr/sbin")
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--net", binary, *words], stdout=log, stderr=log
            )
        end = time.monotonic() + 60
        while self.docker("version", check=False).returncode != 0:
            assert self.process.poll() is None, (self.directory / "log").read_text()[-2000:]
            assert time.monotonic() < end
            time.sleep(0.1)

    def docker(self, *words: str, check: bool = True, **given: Any) -> Any:
        command = ["docker", "-H", f"unix://{self.socket}", *words]
        return subprocess.run(command, check=check, capture_output=True, **given)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        # Its containerd dies with it. Until init has reaped that, a new engine believes it alive.
        path = self.directory / "exec" / "containerd" / "containerd.pid"
        pid = path.read_text() if path.exists() else "none"
        wait_until(lambda: state_of(pid) in "ZX", "its containerd is dead")
        path.unlink(missing_ok=True)

    def forget(self, container: str) -> None:
        """Leave it, dead, as it is when it dies just after a container has come up.

        Its own state was not written yet, while the container runs without it.
        """
        path = self.directory / "data" / "containers" / container / "config.v2.json"
        document = json.loads(path.read_text())
        state = document["State"]
        state.update(Running=False, Pid=0, StartedAt="0001-01-01T00:00:00Z")
        path.write_text(json.dumps(document))

    def stop(self) -> None:
        """End it with all that it started."""
        containers = self.docker("ps", "-aq", check=False).stdout.decode().split()
        if containers:
            self.docker("rm", "-f", "-v", *containers, check=False)
        self.process.terminate()
        self.process.wait(timeout=60)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for line in reversed(Path("/proc/mounts").read_text().splitlines()):
            place = line.split()[1]
            if place.startswith(str(self.directory)):
                subprocess.run(["umount", "-l", place], check=False)

    def processes(self) -> list[int]:
        """What the engine left running: each names a file of its directory."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if f"{self.directory}/exec".encode() in path.read_bytes():
                    found.append(int(path.parent.name))
        return found


def state_of(pid: str) -> str:
    """Return the letter of a process's state; X when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


@pytest.fixture(scope="module")
def image_archive(kit: Any) -> Path:
    path = kit.directory / "image.tar"
    kit.engine("save", "-o", str(path), kit.image)
    return path


@pytest.fixture(scope="module", params=[False, True], ids=["restarts kill", "live restore"])
def engine(
    request: pytest.FixtureRequest, kit: Any, image_archive: Path
) -> Iterator[PrivateEngine]:
    directory = kit.directory / f"engine-{int(request.param)}"
    directory.mkdir()
    engine = PrivateEngine(directory, live_restore=request.param)
    engine.start()
    try:
        engine.docker("load", "-i", str(image_archive))
        yield engine
    finally:
        engine.stop()
        shutil.rmtree(directory, ignore_errors=True)


def test_an_engine_that_dies_and_comes_back_is_waited_for(kit: Any, engine: PrivateEngine) -> None:
    runner = kit.runner()
    long = kit.work("echo partial; sleep 8; exit 5", socket=engine.socket)
    short = kit.work("sleep 2; exit 7", socket=engine.socket)
    unwanted = kit.work("echo partial; sleep 60", socket=engine.socket)
    for work in (long, short, unwanted):
        runner.send(work)
        runner.drive(work)
    for work in (long, short, unwanted):
        runner.until(work, "started")
        while not work.starts():
            time.sleep(0.02)
    engine.kill()
    time.sleep(3)
    states = [runner.look(work) for work in (long, short)]
    assert [(item["state"], item["driven"]) for item in states] == [("started", True)] * 2
    late = kit.work("exit 9", socket=engine.socket)
    runner.send(late)
    runner.drive(late)
    time.sleep(0.5)
    assert runner.look(late)["state"] == "accepted"
    asked = runner.ask("cancel", uuids=[unwanted.uuid], socket=engine.socket)
    assert asked == {unwanted.uuid: "cancel_requested"}
    engine.start()

    ended = runner.wait(short)
    assert ended.record["exit_code"] == 7, "it ended while nobody could see it"
    assert runner.wait(late).record["exit_code"] == 9
    result = runner.wait(long)
    if engine.live_restore:
        assert result.record["exit_code"] == 5
    else:
        assert result.record is None, "the returning engine ended it"
        assert result.receipt("exported")["command_started"] is True
    assert runner.content(long, result, "stdout") == b"partial\n"
    cancelled = runner.wait(unwanted)
    assert cancelled.record["status"] == "cancelled"
    assert runner.content(unwanted, cancelled, "stdout") == b"partial\n"
    works = (long, short, late, unwanted)
    assert [work.starts() for work in works] == [1, 1, 1, 1]
    for work in works:
        runner.insist("cleanup", uuids=[work.uuid], socket=engine.socket)
    assert engine.docker("ps", "-aq").stdout == b""
    assert engine.docker("volume", "ls", "-q").stdout == b""


def hold(kit: Any, engine: PrivateEngine, step: str) -> tuple[Any, Any]:
    """Bring an execution to a step and keep it there."""
    point = STEPS[step]
    runner = kit.runner(faults={point: {"action": "hang"}} if point else {})
    lasting = "sleep 10; " if step in LASTING else ""
    work = kit.work(f"echo new >new; {lasting}exit 3", socket=engine.socket)
    runner.send(work)
    runner.drive(work)
    log = runner.root / "faults.log"
    if point:
        wait_until(lambda: log.exists() and log.read_text(), f"it hangs at {point}")
    if lasting:
        wait_until(lambda: work.starts() == 1, "the command runs")
    if step == "exported":
        runner.wait(work)
    (runner.root / "faults.json").unlink(missing_ok=True)
    return runner, work


def drive_on(engine: PrivateEngine, runner: Any, work: Any) -> tuple[str, int]:
    """End what holds it, drive it to its end and clean; return outcome and starts."""
    end_processes(runner)
    end = (outcome_of(runner.wait(work)), work.starts())
    runner.insist("cleanup", uuids=[work.uuid], socket=engine.socket)
    runner.stop()
    return end


@pytest.fixture(scope="module")
def restarted(kit: Any, engine: PrivateEngine) -> dict[str, tuple[str, int]]:
    """Hold an execution at every step, kill the engine and start it; outcome and starts of each."""
    with ThreadPoolExecutor(4) as pool:
        # What runs comes last, so that it still runs.
        steps = sorted(STEPS, key=LASTING.__contains__)
        held = list(pool.map(lambda step: hold(kit, engine, step), steps))
        engine.kill()
        engine.start()
        ends = dict(zip(steps, pool.map(lambda item: drive_on(engine, *item), held), strict=True))
    assert engine.docker("ps", "-aq").stdout == b""
    return ends


@pytest.mark.parametrize("step", STEPS)
def test_an_engine_that_restarts_at_a_step_costs_at_most_what_runs(
    engine: PrivateEngine, restarted: dict[str, tuple[str, int]], step: str
) -> None:
    outcomes = RESTARTS["with live restore" if engine.live_restore else "engine restart"]
    assert restarted[step] == (outcomes.get(step, WHOLE), 1)


@pytest.mark.parametrize("trouble", ["driven again", "cancelled", "its driver goes on"])
def test_a_start_that_the_engine_has_forgotten_is_not_sent_again(
    kit: Any, engine: PrivateEngine, trouble: str
) -> None:
    """The engine holds that it was never started, while the command runs and nobody can end it."""
    goes_on = trouble == "its driver goes on"
    runner = kit.runner(faults={} if goes_on else {"start.after": {"action": "hang"}})
    work = kit.work("echo new >new; sleep 4; exit 3", socket=engine.socket)
    runner.send(work)
    runner.drive(work)
    wait_until(lambda: work.starts() == 1, "the command runs")
    if goes_on:
        runner.until(work, "started")
    container = engine.docker("inspect", "-f", "{{.Id}}", work.name).stdout.decode().strip()
    (runner.root / "faults.json").unlink(missing_ok=True)
    engine.kill()
    engine.forget(container)
    engine.start()
    state = engine.docker("inspect", "-f", "{{.State.Status}}", container).stdout.decode().strip()
    assert state == "created"
    if trouble == "cancelled":
        runner.insist("cancel", uuids=[work.uuid], socket=engine.socket)
    if not goes_on:
        end_processes(runner)
    assert outcome_of(runner.wait(work)) == WHOLE
    assert work.starts() == 1
    runner.insist("cleanup", uuids=[work.uuid], socket=engine.socket)
    runner.stop()
