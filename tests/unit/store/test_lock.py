"""One writer at a time; the kernel decides, and the second comer learns who it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from xgent_evolve.errors import BusyError
from xgent_evolve.store.lock import RunLock, find_holder

HOLD = """
import sys, time
from pathlib import Path
from xgent_evolve.store.lock import RunLock
lock = RunLock.acquire(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lock"


@pytest.fixture
def other(path):
    """A process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_comer_is_told_who_and_since_when(path, other):
    with pytest.raises(BusyError) as caught:
        RunLock.acquire(path)
    assert caught.value.exit_code == 3
    assert f"process {other.pid} on " in caught.value.message
    assert " since 20" in caught.value.message


def test_a_second_try_in_the_same_process_is_refused_too(path):
    with RunLock.acquire(path), pytest.raises(BusyError, match=str(os.getpid())):
        RunLock.acquire(path)


def test_a_refused_try_does_not_erase_the_holders_name(path, other):
    for _ in range(2):
        with pytest.raises(BusyError, match=str(other.pid)):
            RunLock.acquire(path)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_dead_holder_leaves_nothing_behind(path, other, how):
    other.send_signal(how)
    other.wait()
    with RunLock.acquire(path):
        assert find_holder(path).pid == os.getpid()


def test_leaving_the_block_gives_the_lock_back(path):
    for _ in range(3):
        with RunLock.acquire(path):
            pass
    assert find_holder(path) is None


def test_asking_for_the_holder_takes_nothing(path, other):
    assert find_holder(path).pid == other.pid
    assert find_holder(path).pid == other.pid


def test_a_lock_that_never_was_has_no_holder(path):
    assert find_holder(path) is None
    assert not path.exists()


def test_of_many_at_once_exactly_one_gets_it(path):
    race = (
        "import sys\nfrom pathlib import Path\n"
        "from xgent_evolve.store.lock import RunLock\n"
        "from xgent_evolve.errors import BusyError\n"
        "sys.stdin.readline()\n"
        "try:\n    lock = RunLock.acquire(Path(sys.argv[1]))\n"
        "except BusyError:\n    print('busy')\n"
        "else:\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", race, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(6)
    ]
    for process in processes:
        process.stdin.write(b"go\n")
        process.stdin.flush()
    words = [process.stdout.readline() for process in processes]
    for process in processes:
        process.communicate(b"end\n")
    assert sorted(words) == [b"busy\n"] * 5 + [b"held\n"]
