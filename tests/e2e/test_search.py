"""A whole search on real parts: proposals by Codex, measurement, confirmation, adoption."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Harbor
from xgent_evolve.demo.search_study import CONVENTIONS, REPOSITORY, SKILL_ROOT
from xgent_evolve.store.journal import Journal

type Json = Any
SKILL = f"{SKILL_ROOT}/SKILL.md"


def report(run: Path) -> dict[str, Json]:
    return json.loads((run / "report.json").read_text())


def facts(run: Path) -> list[dict[str, Json]]:
    lines = (run / "journal.jsonl").read_bytes().splitlines()
    return [json.loads(line)["fact"] for line in lines]


def given_to_optimizers(run: Path, remote_root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of everything that was placed in an optimizer's container."""
    stored = {
        hashlib.sha256(content).hexdigest(): content
        for content in (path.read_bytes() for path in (run / "blobs").glob("??/*"))
    }
    for fact in facts(run):
        if fact["type"] != "intent" or fact["kind"] != "optimizer":
            continue
        request = json.loads(
            (remote_root / "executions" / fact["uuid"] / "request.json").read_text()
        )
        for entry in [*request["inputs"], *request["workspace"]["entries"]]:
            if entry["sha256"] is not None:
                yield entry["path"], stored[entry["sha256"]]


@pytest.mark.codex
@pytest.mark.timeout(900)
def test_a_search_finds_the_useful_change_and_its_candidate_is_applied(
    make_search_study: Callable[..., Any],
    containers: Callable[[Path], list[str]],
    remote_root: Path,
    harbor: Harbor,
) -> None:
    study = make_search_study()
    run = study.directory / "run"
    done = study.call("run", "--spec", study.spec, "--output", run)
    document = report(run)
    harmful, useful = document["search"]["candidates"]
    assert (harmful["decision"], useful["decision"]) == ("discard", "keep")
    assert (harmful["parent"], useful["parent"]) == ("baseline", "baseline")
    assert "-## Meeting minutes" in harmful["diff"]
    assert document["search"]["best"] == "candidate-2"
    assert document["confirmation"]["status"] == "passed"
    assert document["comparison"]["paired_groups"] == 8
    assert "confirmed: candidate-2 is better than baseline" in done.stdout
    assert document["counts"]["by_kind"]["optimizer"]["attempts"] == 2
    assert document["resources"]["optimizer"]["tokens"]["input"] > 0
    assert containers(run) == []
    # 12 cases under three texts, 8 under two, and two proposals.
    assert len(study.model.requests_by_thread) == 12 * 3 + 8 * 2 + 2

    # The optimizer saw search cases alone.
    closed = [item.id for item in CONVENTIONS if item.split != "search"]
    seen = dict(given_to_optimizers(run, remote_root))
    assert any("results/search/release-plan/1/stdout.jsonl" in path for path in seen)
    for path, content in seen.items():
        assert not any(name in path for name in closed), path
        assert not any(f"Topic: {name}".encode() in content for name in closed), path
        assert b"reward=0" not in content, path  # a verifier
        assert b"set -eu" not in content or path.endswith("supervisor.sh"), path
        assert study.key.encode() not in content, path

    assert document["evidence_gaps"] == []
    shown = [path.name for path in (study.directory / "state").glob("xgent-evolve/confirmed/*/*")]
    assert len(shown) == 8
    assert len(set(shown)) == 1, "the run's id"

    verified = study.call("verify", "--run", run)
    assert "verified: every number follows" in verified.stdout
    check_reading(study, run, harbor)

    repo = study.directory / "clone"
    shutil.copytree(study.directory / "study" / REPOSITORY, repo, symlinks=True)
    before = (repo / SKILL).read_bytes()
    shown = study.call("apply", "--run", run, "--repo", repo, "--dry-run")
    assert "+description: Conventions of the teams for the meeting minutes" in shown.stdout
    assert (repo / SKILL).read_bytes() == before

    edited = study.directory / "edited"
    shutil.copytree(repo, edited, symlinks=True)
    (edited / SKILL).write_bytes(before + b"A person's line.\n")
    refused = study.call("apply", "--run", run, "--repo", edited, check=3)
    assert "error[E_APPLY_CONFLICT]" in refused.stderr
    assert (edited / SKILL).read_bytes() == before + b"A person's line.\n"

    forged = study.directory / "forged"
    shutil.copytree(run, forged, symlinks=True)
    forge(forged)
    refused = study.call("apply", "--run", forged, "--repo", repo, check=3)
    assert "error[E_APPLY_EVIDENCE]" in refused.stderr
    assert (repo / SKILL).read_bytes() == before

    applied = study.call("apply", "--run", run, "--repo", repo)
    assert "changed 1 file (confirmed)" in applied.stdout
    after = (repo / SKILL).read_text()
    assert "the vendor register" in after.splitlines()[2]
    status = subprocess.run(
        ["git", "-C", repo, "status", "--porcelain"], capture_output=True, text=True, check=True
    )
    assert status.stdout == f" M {SKILL}\n"
    again = study.call("apply", "--run", run, "--repo", repo)
    assert "nothing to do" in again.stdout


def check_reading(study: Any, run: Path, harbor: Harbor) -> None:
    """A finished search is reported again, put beside another run, and read by Harbor."""
    for form in ("md", "html", "json"):
        found = study.call("report", "--run", run, "--format", form).stdout
        assert found == (run / f"report.{form}").read_text()

    answer = json.loads(study.call("compare-runs", run, run, "--json").stdout)
    assert answer["same_protocol"] is True
    # Two runs are put side by side on what their verdicts rest on: here the confirmation.
    shared = [(item["first_condition"], item["paired_cases"]) for item in answer["shared"]]
    assert shared == [("baseline", 8), ("candidate-2", 8)]
    assert all(item["mean_difference"] == 0 for item in answer["shared"])

    jobs = study.directory / "jobs"
    answer = json.loads(study.call("export", "--run", run, "--output", jobs, "--json").stdout)
    # What selected and what confirmed; proposals are no trials.
    assert [item["trials"] for item in answer["jobs"]] == [20, 12, 20]
    assert harbor.read(jobs) == {"jobs": 3, "trials": 52, "trajectories": 52}
    stored = [json.loads(path.read_text()) for path in jobs.glob("*/*/result.json")]
    rewards = [item["verifier_result"]["rewards"]["reward"] for item in stored]
    assert set(rewards) == {0.0, 1.0}


def forge(run: Path) -> None:
    """Let the facts say that the confirmation was opened for the harmful candidate."""
    document = report(run)
    known = facts(run)
    opened = next(fact for fact in known if fact["type"] == "confirmation_opened")
    opened["content"] = document["search"]["candidates"][0]["content"]
    path = run / "journal.jsonl"
    path.unlink()
    with Journal.create(path) as journal:
        for fact in known:
            journal.append(fact)


def length(run: Path) -> int:
    """Return how many facts a run has."""
    path = run / "journal.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def goes_on(run: Path, before: int, process: subprocess.Popen) -> bool:
    return length(run) > before or process.poll() is not None


@pytest.mark.codex
@pytest.mark.timeout(900)
def test_a_search_that_is_killed_ten_times_ends_like_one_that_was_not(
    make_search_study: Callable[..., Any],
    containers: Callable[[Path], list[str]],
    without_times: Callable[[Json], Json],
    wait_for: Callable[..., None],
) -> None:
    # Slow enough that ten kills fit into the run on any machine.
    study = make_search_study(delay_s=0.2)
    # Either run is the first that shows its confirmation cases, as far as it can know.
    unshown = {"XDG_STATE_HOME": str(study.directory / "unshown")}
    whole, killed = study.directory / "whole", study.directory / "killed"
    study.call("run", "--spec", study.spec, "--output", whole)
    calls = len(study.model.requests_by_thread)
    moments = random.Random(20261201)
    arguments: list[str | Path] = ["run", "--spec", study.spec, "--output", killed]
    for _ in range(10):
        before = length(killed)
        process = study.start(*arguments, environment=unshown)
        wait_for(partial(goes_on, killed, before, process), "the run goes on, or has ended")
        time.sleep(moments.uniform(0.0, 1.5))
        assert process.poll() is None, study.story.read_text()[-2000:]
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        arguments = ["resume", "--run", killed]
    study.environment = unshown
    study.call("resume", "--run", killed)
    assert without_times(report(killed)) == without_times(report(whole))
    assert len(study.model.requests_by_thread) - calls == calls, "every call was paid for once"
    assert containers(killed) == []


@pytest.mark.codex
@pytest.mark.timeout(600)
def test_a_search_over_agents_files_hands_them_out_as_text_and_not_as_instructions(
    make_search_study: Callable[..., Any],
) -> None:
    study = make_search_study()
    spec = study.edit(lambda document: as_agents_search(document, study.directory / "study"))
    run = study.directory / "run"
    study.call("run", "--spec", spec, "--output", run)
    document = report(run)
    (harmful,) = document["search"]["candidates"]
    assert harmful["id"] == "candidate-1", harmful["reasons"]
    assert harmful["changed_paths"] == ["text/AGENTS.md"]
    assert (harmful["estimate"], harmful["decision"]) == (-0.833333, "discard")
    assert document["confirmation"]["status"] == "not_run"
    assert document["verdict"]["sentence"].startswith("no change: no candidate was kept")


def as_agents_search(document: dict[str, Json], directory: Path) -> None:
    """Study the conventions in AGENTS.md itself, on tasks that start from the repository."""
    repo = directory / REPOSITORY
    skill = (repo / SKILL).read_text()
    sections = skill.partition("# Conventions")[2]
    (repo / "AGENTS.md").write_text(f"# Working here\n{sections}")
    (repo / "notes.txt").write_text("What the project is about.\n")
    commit = ["git", "-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam"]
    subprocess.run(["git", "-C", repo, "add", "--all"], check=True)
    subprocess.run([*commit, "Move the conventions"], check=True)
    head = subprocess.run(
        ["git", "-C", repo, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    document["target"].update(
        surface="agents", paths=["AGENTS.md"], base_commit=head, protected_rules=[]
    )
    document["source"]["paths"] = ["AGENTS.md", "notes.txt"]
    document["authority"].update(export_paths=["AGENTS.md", "notes.txt"], write_paths=["AGENTS.md"])
    document["conditions"] = [{"id": "baseline", "skill": "absent", "agents": "baseline"}]
    for case in document["cases"]:
        case["source"] = {"kind": "repo", "repo": REPOSITORY, "base": head}
    # One of these has a wrong section, so there is something left to gain.
    selecting = [case for case in document["cases"] if case["split"] == "search"][4:]
    closed = [case for case in document["cases"] if case["split"] == "confirmation"][:6]
    document["cases"] = selecting + closed
    document["budget"]["max_candidates"] = 1
