"""`logs --follow` shows everything once, while it is printed, and ends when nothing runs."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.codex
def test_what_is_followed_is_what_was_captured(
    make_study: Callable[..., Any], wait_for: Callable[..., None]
) -> None:
    study = make_study(cases=1, delay_s=3)
    run = study.directory / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    wait_for((run / "journal.jsonl").exists, "the run begins")
    followed = subprocess.Popen(
        study.command("logs", "--run", run, "--execution", "measure/", "--follow", "--json"),
        env=study.all_variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, errors = followed.communicate(timeout=180)
    assert followed.returncode == 0, errors
    assert process.wait(timeout=60) == 0
    parts = [json.loads(line) for line in output.splitlines()]
    together: dict[str, str] = defaultdict(str)
    for part in parts:
        together[part["execution"]] += part["text"]
    done = study.call("logs", "--run", run, "--execution", "measure/", "--json")
    captured = [json.loads(line) for line in done.stdout.splitlines()]
    assert dict(together) == {log["execution"]: log["text"] for log in captured}
    assert len(captured) == 4
    assert [part["slot"] for part in parts if part["text"] and not part["captured"]], "and early"
    ends = [part["execution"] for part in parts if part["captured"]]
    assert sorted(ends) == sorted(together), "each ends once"

    again = study.call("logs", "--run", run, "--execution", "measure/candidate", "--follow")
    assert again.stdout.count("has ended") == 2
    assert "thread.started" in again.stdout
    nothing = study.call("logs", "--run", run, "--execution", "no", "--follow", check=2)
    assert "error[E_LOGS]" in nothing.stderr
