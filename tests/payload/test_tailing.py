"""What a command has printed so far can be read at any time, and shows no secret."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.engine

KEY = b"sk-0123456789abcdef0123456789"
SECRET = b'{"OPENAI_API_KEY": "%s"}' % KEY


def tail(runner: Any, kit: Any, work: Any, body: bytes = b"", limit: int = 4096) -> Any:
    return runner.ask("tail", body, uuid=work.uuid, stream="stdout", limit=limit, socket=kit.socket)


def test_a_running_command_shows_what_it_printed_without_its_credential(
    host: Any, kit: Any, tmp_path: Any
) -> None:
    work = kit.work(
        "echo begun; cat /home/agent/auth.json; base64 /home/agent/auth.json; echo told >&2\n"
        "echo said; sleep 3",
        secret=SECRET,
        user=1000,
    )
    assert tail(host, kit, work)["state"] == "absent"
    host.send(work)
    assert tail(host, kit, work)["text"] is None
    host.drive(work)
    host.until(work, "started")
    assert tail(host, kit, work)["text"] is None, "without the credential nothing is shown"
    while "said" not in (found := tail(host, kit, work, SECRET)["text"] or ""):
        pass
    assert found.startswith("begun\n[REDACTED]")
    assert KEY.decode() not in found
    assert tail(host, kit, work, SECRET, limit=5)["text"] == "said\n"
    receipts = host.look(work)["receipts"]
    assert [item["kind"] for item in receipts][-1] == "started", "nothing was changed"
    host.wait(work)
    assert tail(host, kit, work)["text"].endswith("said\n")
    assert work.starts() == 1
