"""A finished run is reported again, put beside another, and opened by Harbor."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

import xgent_evolve
from tests.e2e.conftest import ROOT, Harbor


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.codex
def test_a_finished_run_is_reported_and_exported_from_its_evidence(
    make_study: Callable[..., Any], wait_for: Callable[..., None], harbor: Harbor
) -> None:
    study = make_study(cases=2)
    run = study.directory / "run"
    study.call("run", "--spec", study.spec, "--output", run)
    before = contents(run)

    check_formats(study, run)
    check_side_by_side(study, run)
    check_export(study, run, harbor, wait_for)
    check_examples(study, run)
    assert contents(run) == before, "looking changes nothing"


def check_formats(study: Any, run: Path) -> None:
    for form in ("md", "html", "json"):
        found = study.call("report", "--run", run, "--format", form).stdout
        assert found == (run / f"report.{form}").read_text()
    page = study.directory / "again.html"
    study.call("report", "--run", run, "--format", "html", "--output", page)
    assert page.read_bytes() == (run / "report.html").read_bytes()
    assert "Delivered patch" in page.read_text()
    refused = study.call("report", "--run", run, "--output", page, check=2)
    assert "error[E_OUTPUT_EXISTS]" in refused.stderr
    answer = json.loads(study.call("report", "--run", run, "--json").stdout)
    assert answer["report"] == json.loads((run / "report.json").read_text())
    assert "verdict" in study.call("report", "--run", run).stdout
    assert xgent_evolve.compute_report(run).document == answer["report"]


def check_side_by_side(study: Any, run: Path) -> None:
    answer = json.loads(study.call("compare-runs", run, run, "--json").stdout)
    assert answer["same_protocol"] is True
    assert [side["origin"] for side in (answer["first"], answer["second"])] == ["computed"] * 2
    assert all(shared["mean_difference"] == 0 for shared in answer["shared"])
    assert len(answer["shared"]) == 2
    assert "the same protocol" in study.call("compare-runs", run, run).stdout


def check_export(study: Any, run: Path, harbor: Harbor, wait_for: Callable[..., None]) -> None:
    jobs = study.directory / "jobs"
    answer = json.loads(study.call("export", "--run", run, "--output", jobs, "--json").stdout)
    written = {item["job"]: item["trials"] for item in answer["jobs"]}
    assert list(written.values()) == [2, 2]
    assert "E_OUTPUT_EXISTS" in study.call("export", "--run", run, "--output", jobs, check=2).stderr

    assert harbor.read(jobs) == {"jobs": 2, "trials": 4, "trajectories": 4}
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [harbor.programs / "harbor", "view", jobs, "--port", str(port), "--no-build", "--jobs"],
        env=harbor.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        wait_for(lambda: answers(f"{address}/api/health"), "harbor view answers")
        check_viewer(address, jobs, written)
    finally:
        process.terminate()
        process.wait(timeout=20)


def check_examples(study: Any, run: Path) -> None:
    """The examples of docs/python-api.md, on a real run."""
    text = (ROOT / "docs" / "python-api.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if "def publish" in block or "def drift" in block:
            exec(compile(block, "python-api.md", "exec"), names)
    page = study.directory / "published.html"
    report = json.loads((run / "report.json").read_text())
    assert names["publish"](run, page) == report["verdict"]["sentence"]
    assert page.read_bytes() == (run / "report.html").read_bytes()
    assert names["drift"](run, run) == {"absent": 0.0, "candidate": 0.0}
    assert list(names["hand_over"](run, study.directory / "handed").values()) == [2, 2]


def check_viewer(address: str, jobs: Path, written: dict[str, int]) -> None:
    listed = fetched(f"{address}/api/jobs")["items"]
    assert {item["name"]: item["n_completed_trials"] for item in listed} == written
    assert all(item["evals"] for item in listed)
    for job in written:
        trials = fetched(f"{address}/api/jobs/{job}/trials")["items"]
        assert len(trials) == written[job]
        assert all(trial["reward"] in (0.0, 1.0) for trial in trials)
        for trial in trials:
            place = f"{address}/api/jobs/{job}/trials/{trial['name']}"
            steps = fetched(f"{place}/trajectory")["steps"]
            assert steps[0]["source"] == "user"
            assert any("tool_calls" in step for step in steps)
            files = [item["path"] for item in fetched(f"{place}/artifacts")["files"]]
            assert any(path.startswith("workspace/") for path in files)
            reward = (jobs / job / trial["name"] / "verifier" / "reward.txt").read_text()
            assert float(reward) == trial["reward"]


def answers(address: str) -> bool:
    try:
        with urlopen(address, timeout=5) as response:
            return response.status == 200
    except (URLError, OSError):
        return False


def fetched(address: str) -> Any:
    with urlopen(address, timeout=20) as response:
        return json.loads(response.read())


def test_a_smoke_is_reported_and_has_nothing_to_export(smoke: Any) -> None:
    run = smoke.directory / "run"
    smoke.call("run", "--spec", smoke.spec, "--output", run)
    page = smoke.call("report", "--run", run, "--format", "html").stdout
    assert page == (run / "report.html").read_text()
    refused = smoke.call("export", "--run", run, "--output", smoke.directory / "jobs", check=2)
    assert "error[E_EXPORT]" in refused.stderr
    assert not (smoke.directory / "jobs").exists()
    assert "no condition was measured" in smoke.call("compare-runs", run, run).stdout
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (run / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
    for command in (("report", "--run"), ("compare-runs", run)):
        assert "E_RUN_UNFINISHED" in smoke.call(*command, run, check=3).stderr
