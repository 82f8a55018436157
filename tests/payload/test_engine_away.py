"""An engine that is away says nothing: it is asked again, and nothing is concluded."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine


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
