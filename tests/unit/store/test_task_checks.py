"""The cache of task checks: found by its whole key or not at all, and never in the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.store.task_checks import TaskChecks

KEY, OTHER = digest_bytes(b"one"), digest_bytes(b"two")


def test_a_check_is_found_under_its_key_alone(tmp_path: Path) -> None:
    checks = TaskChecks(tmp_path / "deep" / "cache")
    assert checks.find(KEY) is None
    checks.keep(KEY, "run-1")
    assert checks.find(KEY) == "run-1"
    assert checks.find(OTHER) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\0" * 90, b'{"type": "other"}', json.dumps({
        "type": "xgent-evolve/task-check/1", "key": OTHER, "run_id": "r"}).encode(), json.dumps({
        "type": "xgent-evolve/task-check/1", "key": KEY, "run_id": 3}).encode()],
    ids=range(7),
)  # fmt: skip
def test_an_entry_that_says_something_else_is_absent(tmp_path: Path, content: bytes) -> None:
    checks = TaskChecks(tmp_path)
    checks.keep(KEY, "run-1")
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(content)
    assert checks.find(KEY) is None
    checks.keep(KEY, "run-2")
    assert checks.find(KEY) == "run-2"


def test_a_cache_that_cannot_be_used_is_no_failure(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    for checks in (TaskChecks(None), TaskChecks(blocked / "below")):
        checks.keep(KEY, "run-1")
        assert checks.find(KEY) is None


def test_the_place_follows_the_users_environment() -> None:
    def place(**environment: str) -> str | None:
        directory = TaskChecks.of(environment).directory
        return None if directory is None else str(directory)

    assert place(XDG_CACHE_HOME="/cache", HOME="/h") == "/cache/xgent-evolve/task-checks"
    assert place(HOME="/h") == "/h/.cache/xgent-evolve/task-checks"
    assert place(XDG_CACHE_HOME="relative") is None
    assert place() is None
