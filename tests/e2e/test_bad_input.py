"""What cannot work ends with one clear message, the right exit status, and nothing left behind."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Change = Callable[[dict[str, Any]], None]


def set_in(path: str, value: object) -> Change:
    """Return a change of the JobSpec that sets one field, named by a dotted path."""

    def change(document: dict[str, Any]) -> None:
        *parents, last = path.split(".")
        part: Any = document
        for key in parents:
            part = part[int(key)] if key.isdigit() else part[key]
        part[int(last) if last.isdigit() else last] = value

    return change


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


INVALID = [
    pytest.param(set_in("budgett", {}), "E_SPEC_UNKNOWN_KEY", 2, id="unknown field"),
    pytest.param(set_in("budget.max_trials", "many"), "E_SPEC_TYPE", 2, id="wrong type"),
    pytest.param(set_in("cases.0.task_path", "tasks/gone"), "E_SPEC_", 2, id="no task"),
    pytest.param(set_in("target.base_commit", "0" * 40), "E_SPEC_COMMIT", 2, id="no commit"),
    pytest.param(
        set_in("cases.0.image", "sha256:" + "0" * 64), "E_REMOTE_IMAGE", 4, id="wrong digest"
    ),
    pytest.param(
        set_in("runtime.docker.socket", "/nonexistent.sock"), "E_REMOTE_ENGINE", 4, id="no engine"
    ),
    pytest.param(
        set_in("runtime.docker.path", "/nonexistent"), "E_REMOTE_NO_DOCKER", 4, id="no docker"
    ),
    pytest.param(
        set_in("runtime.docker.version", "1.2"), "E_REMOTE_ENGINE_VERSION", 4, id="other engine"
    ),
    pytest.param(set_in("runtime.ssh.port", free_port()), "E_SSH_UNREACHABLE", 4, id="no host"),
]


@pytest.mark.engine
@pytest.mark.parametrize(("change", "code", "status"), INVALID)
def test_a_run_that_cannot_work_is_refused_and_leaves_nothing(
    make_study: Callable[..., Any], tmp_path: Path, change: Change, code: str, status: int
) -> None:
    study = make_study(cases=1)
    root = tmp_path / "remote"

    def edit(document: dict[str, Any]) -> None:
        document["runtime"]["remote_root"] = str(root)
        change(document)

    spec, before = study.edit(edit), set(tmp_path.iterdir())
    done = study.call("run", "--spec", spec, "--output", tmp_path / "run", check=status)
    assert f"error[{code}" in done.stderr
    assert "Traceback" not in done.stderr
    assert "  at " in done.stderr
    assert "  fix " in done.stderr
    assert set(tmp_path.iterdir()) == before, "no output, no draft, no remote root"


@pytest.mark.engine
def test_an_unknown_host_key_is_told_from_a_changed_one(
    make_study: Callable[..., Any], tmp_path: Path
) -> None:
    study = make_study(cases=1)
    ssh = json.loads(study.spec.read_text())["runtime"]["ssh"]
    empty, other = tmp_path / "empty", tmp_path / "other"
    empty.write_text("")
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEH1uKZOeFBBVTw2lIIJzJpmRpeGNcPMGDjtA0YEIQ1R"
    other.write_text(f"[127.0.0.1]:{ssh['port']} {key}\n")
    for known_hosts, code in (
        (empty, "E_SSH_HOSTKEY_UNKNOWN"),
        (tmp_path / "missing", "E_SSH_HOSTKEY_UNKNOWN"),
        (other, "E_SSH_HOSTKEY_CHANGED"),
    ):
        spec = study.edit(set_in("runtime.ssh.known_hosts", str(known_hosts)))
        done = study.call("run", "--spec", spec, "--output", tmp_path / "run", check=4)
        assert f"error[{code}]" in done.stderr
        assert "SHA256:" in done.stderr, "the fingerprint can be compared"
        assert not (tmp_path / "run").exists()


@pytest.mark.engine
def test_an_existing_output_is_not_touched(make_study: Callable[..., Any], tmp_path: Path) -> None:
    study = make_study(cases=1)
    output = tmp_path / "run"
    output.mkdir()
    (output / "mine").write_text("keep")
    done = study.call("run", "--spec", study.spec, "--output", output, check=2)
    assert "error[E_OUTPUT_EXISTS]" in done.stderr
    assert [path.name for path in output.iterdir()] == ["mine"]


@pytest.mark.engine
def test_a_missing_task_file_names_case_and_file(make_study: Callable[..., Any]) -> None:
    study = make_study(cases=1)
    task = study.spec.parent / "tasks" / "release-notes" / "tests" / "test.sh"
    moved = task.with_name("gone")
    shutil.move(task, moved)
    done = study.call("run", "--spec", study.spec, "--output", study.directory / "run", check=2)
    shutil.move(moved, task)
    assert "test.sh" in done.stderr
    assert "release-notes" in done.stderr


@pytest.mark.engine
def test_a_missing_credential_is_told_before_anything_starts(
    make_study: Callable[..., Any],
) -> None:
    study = make_study(cases=1, key="")
    done = study.call("run", "--spec", study.spec, "--output", study.directory / "run", check=2)
    assert "error[E_AUTH_MISSING]" in done.stderr
    assert not (study.directory / "run").exists()


@pytest.mark.codex
def test_a_refused_credential_stops_the_run_and_a_renewed_one_finishes_it(
    make_study: Callable[..., Any], wait_for: Callable[..., None]
) -> None:
    """A key that is revoked while trials are under way costs those alone (CDX-03)."""
    study = make_study(cases=2, delay_s=0.2)
    run, first, renewed = study.directory / "run", study.key, "key-that-was-issued-later"

    def exact(document: dict[str, Any]) -> None:
        # Four trials, and the one that the model has answered once before it refuses.
        document["budget"].update(max_concurrency=1, max_retries=0, max_trials=4 + 1)

    spec = study.edit(exact)
    process = study.start("run", "--spec", spec, "--output", run)
    wait_for(lambda: len(study.model.requests_by_thread) == 2, "a second trial asks the model")
    study.model.change_key(renewed)
    assert process.wait(timeout=120) == 4
    story = study.story.read_text()
    assert "error[E_TRIAL_AUTH]" in story
    assert "XGENT_TEST_MODEL_KEY; then: xgent-evolve resume" in story.replace("\n            ", " ")
    assert first not in story
    rows = attempts(run)
    assert [row["status"] for row in rows] == ["valid", "invalid"], "no third trial was started"
    assert rows[1]["code"] == "E_TRIAL_AUTH"
    assert not (run / "report.json").exists()

    refused = study.call("resume", "--run", run, check=4)
    assert "error[E_TRIAL_AUTH]" in refused.stderr
    assert len(attempts(run)) == 3, "one attempt for each command that still has the old one"

    study.key = renewed
    study.call("resume", "--run", run)
    document = json.loads((run / "report.json").read_text())
    assert document["comparison"]["missing"]["missing_trials"] == 0
    spent = [row["status"] for row in attempts(run)]
    assert spent.count("invalid") == 2
    assert len(spent) == 6, "a refusal is no retry, and without an answer no trial of the budget"
    study.call("verify", "--run", run)


def attempts(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "results.jsonl").read_text().splitlines()]
    return [row for row in rows if row["kind"] == "agent"]
