"""What came back may not name files where they do not belong (PAT-07)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from xgent_evolve.execution.executor import artifacts_of
from xgent_evolve.harbor.causes import code_of
from xgent_evolve.harbor.outcome import Broken, command_end
from xgent_evolve.ids import Digest

SHA = "0" * 64
FILE = {"kind": "file", "mode": 0o644, "sha256": SHA, "size": 1, "target": None}
LINK = {"kind": "link", "mode": 0o777, "sha256": None, "size": 0, "target": "/tmp/out"}
DIRECTORY = {"kind": "dir", "mode": 0o755, "sha256": None, "size": 0, "target": None}
INTENT: Any = SimpleNamespace(uuid="u", slot="s", attempt=1, kind="agent")


def received(changes: dict[str, Any], *files: str) -> Any:
    record = {"uuid": "u", "container": "c", "status": "ended", "exit_code": 0, "expired": False}
    engine = {"exit_code": 0, "oom_killed": False, "started_at": "", "finished_at": ""}
    return {
        "exited": {"engine": engine, "forced": False},
        "exported": {
            "record": {**record, "started_cs": 1, "ended_cs": 2},
            "files": {name: {"sha256": SHA, "size": 1} for name in files},
            "delivery": {
                "changes": [
                    {"path": path, "before": None, "after": after}
                    for path, after in changes.items()
                ],
                "refused": [],
            },
            "redactions": 0,
        },
    }


@pytest.mark.parametrize(
    ("changes", "files", "name"),
    [
        ({"../x": FILE}, [], "../x"),
        ({"/abs": FILE}, [], "/abs"),
        ({"a/../../x": FILE}, [], "a/../../x"),
        ({"a//x": FILE}, [], "a//x"),
        ({"d": LINK, "d/pwn": FILE}, [], "d/pwn"),
        ({"d": LINK, "d/e/pwn": FILE}, [], "d/e/pwn"),
        ({"f": FILE, "f/pwn": FILE}, [], "f/pwn"),
        ({}, ["../stdout"], "../stdout"),
        ({}, ["sessions/../../x"], "sessions/../../x"),
    ],
)
def test_a_name_that_leads_out_is_refused_and_is_no_score(
    changes: dict[str, Any], files: list[str], name: str
) -> None:
    found = artifacts_of(INTENT, received(changes, *files), {SHA: Digest("blake3:" + SHA)})
    end = command_end(found)
    assert isinstance(end, Broken)
    assert code_of(end.cause) == "E_RECEIVE_UNSAFE_MEMBER"
    assert name in end.detail
    assert found.delivery is None


def test_names_inside_are_taken() -> None:
    changes = {"d": DIRECTORY, "d/x": FILE, "l": LINK, "gone": None, "gone/x": None, "%FF": FILE}
    changes["became-link"], changes["became-link/old"] = LINK, None
    receipts = received(changes, "stdout", "sessions/a/b.jsonl", "/logs/x")
    found = artifacts_of(INTENT, receipts, {SHA: Digest("blake3:" + SHA)})
    assert found.failure is None
    assert found.delivery is not None
    assert len(found.delivery.changes) == len(changes)
