"""Whoever is killed, a credential ends with its container, and a receipt says so (E4)."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

pytestmark = pytest.mark.engine

KEY = b"sk-0123456789abcdef0123456789"
SECRET = b'{"OPENAI_API_KEY": "%s"}' % KEY


def require_gone(runner: Any, work: Any) -> None:
    """Require that the cleanup has a receipt, and that the key is in no file of the host."""
    assert runner.clean(work)["credential_destroyed"] is True
    for path in runner.root.rglob("*"):
        assert not path.is_file() or KEY not in path.read_bytes(), path
        assert not path.is_fifo(), path


@pytest.mark.parametrize("killed", ["host runner", "controller", "supervisor"])
def test_a_kill_leaves_no_credential_and_a_receipt(kit: Any, killed: str) -> None:
    runner = kit.runner()
    work = kit.work("cat /home/agent/auth.json; sleep 2", secret=SECRET, user=1000)
    runner.send(work)
    runner.drive(work)
    runner.until(work, "started")
    match killed:
        case "host runner":
            for process in runner.drivers():
                os.kill(process, signal.SIGKILL)
            runner.stop()
            runner.start()
        case "controller":
            runner.stop()
            runner.start()
        case _:
            kit.engine("kill", work.name)
    result = runner.wait(work)
    assert result.kinds.count("credential_destroyed") == 1
    assert result.kinds.index("credential_destroyed") < result.kinds.index("exported")
    assert KEY not in kit.engine("inspect", work.name).encode()
    require_gone(runner, work)


def test_one_that_never_began_has_the_receipt_of_its_cleanup(kit: Any) -> None:
    runner = kit.runner()
    work = kit.work("true", secret=SECRET, user=1000)
    runner.send(work)
    state = runner.ask("cancel", uuids=[work.uuid], socket=kit.socket)[work.uuid]
    assert state == "cancelled"
    require_gone(runner, work)
    plain = kit.work("true")
    assert runner.execute(plain).state == "exported"
    assert "credential_destroyed" not in runner.clean(plain)
