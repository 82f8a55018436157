"""A finished run is computed again from its evidence; whatever was changed afterwards is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.store.journal import Journal

type Json = Any


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    content = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(change(content))
    assert path.read_bytes() != content


def edit_report(run: Path, change: Callable[[Json], None]) -> None:
    document = json.loads((run / "report.json").read_bytes())
    change(document)
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False)
    (run / "report.json").write_text(f"{text}\n")


def a_blob(run: Path) -> Path:
    return max((run / "blobs").glob("??/*"), key=lambda path: path.stat().st_size)


def without_last_line(content: bytes) -> bytes:
    return b"".join(content.splitlines(keepends=True)[:-1])


def another_request(run: Path) -> None:
    """Write the journal anew, whole and chained, with another request for an agent."""
    path = run / "journal.jsonl"
    facts = [json.loads(line)["fact"] for line in path.read_bytes().splitlines()]
    intent = next(fact for fact in facts if fact.get("kind") == "agent")
    intent["request_sha256"] = "0" * 64
    path.unlink()
    with Journal.create(path) as journal:
        for fact in facts:
            journal.append(fact)


TAMPERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a better estimate": (
        lambda run: edit_report(run, lambda d: d["comparison"].update(estimate=0.99)),
        "report.json: $.comparison.estimate",
    ),
    "a failure less": (
        lambda run: edit_report(run, lambda d: d["attempts"][1].update(status="valid", cause="x")),
        "report.json: $.attempts[1].cause",
    ),
    "another layout": (
        lambda run: edit(run / "report.json", lambda content: content.replace(b"  ", b" ")),
        "report.json",
    ),
    "another verdict in the text": (
        lambda run: edit(
            run / "report.md", lambda content: content.replace(b"no-", b"yes-") + b"."
        ),
        "report.md",
    ),
    "another verdict in the page": (
        lambda run: edit(run / "report.html", lambda content: content + b"<!-- -->"),
        "report.html",
    ),
    "another request": (
        another_request,
        "/agent #1",
    ),
    "no report": (lambda run: (run / "report.json").unlink(), "report.json"),
    "a lost row": (lambda run: edit(run / "results.jsonl", without_last_line), "results.jsonl"),
    "a row twice": (
        lambda run: edit(
            run / "results.jsonl", lambda content: content + content.splitlines()[0] + b"\n"
        ),
        "results.jsonl",
    ),
    "a changed byte of evidence": (
        lambda run: edit(a_blob(run), lambda content: bytes([content[0] ^ 1]) + content[1:]),
        "blobs/",
    ),
    "evidence cut short": (lambda run: edit(a_blob(run), lambda content: content[:-1]), "blobs/"),
    "evidence lost": (lambda run: a_blob(run).unlink(), ""),
}


@pytest.mark.codex
def test_a_run_is_verified_and_every_change_afterwards_is_named(
    make_study: Callable[..., Any],
) -> None:
    study = make_study(cases=2)
    run = study.directory / "run"
    study.call("run", "--spec", study.spec, "--output", run)
    calls = len(study.model.requests_by_thread)
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    verified = study.call("verify", "--run", run)
    assert "verified: every number follows" in verified.stdout
    document = json.loads(study.call("verify", "--run", run, "--json").stdout)
    intents = [
        line for line in (run / "journal.jsonl").read_text().splitlines() if '"intent"' in line
    ]
    assert document["verified"]
    assert document["executions"] == len(intents) > 0
    assert document["values"] > 100

    for name, (tamper, place) in TAMPERS.items():
        copy = study.directory / name.replace(" ", "-")
        shutil.copytree(run, copy)
        tamper(copy)
        kept = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
        refused = study.call("verify", "--run", copy, check=3)
        assert "error[E_VERIFY]" in refused.stderr, (name, refused.stderr)
        assert place in refused.stdout, name
        found = json.loads(study.call("verify", "--run", copy, "--json", check=3).stdout)
        assert found["findings"], name
        # Looking changes nothing, and damaged bytes stay where they are.
        assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == kept

    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before
    assert len(study.model.requests_by_thread) == calls, "nothing was paid for"


def test_a_run_without_a_report_has_nothing_to_verify(tmp_path: Path, smoke: Any) -> None:
    run = smoke.directory / "run"
    smoke.call("run", "--spec", smoke.spec, "--output", run)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert b'"finished"' in lines[-1]
    (run / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
    assert "E_RUN_UNFINISHED" in smoke.call("verify", "--run", run, check=3).stderr
