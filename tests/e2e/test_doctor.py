"""A host is examined without a study, a model, or anything left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.conftest import listed
from tests.e2e.test_bad_input import set_in
from tests.e2e.test_red_team import image_with
from xgent_evolve.harbor import codex
from xgent_evolve.harbor.sandbox import probe_command, read_report
from xgent_evolve.spec.load import load_spec

GUARDS = {
    "credential_hidden",
    "configuration_hidden",
    "sessions_hidden",
    "control_hidden",
    "user_namespace",
    "process_namespace",
    "network_closed",
}
"""Checks that fail outside of a sandbox; the others say that ordinary work is possible."""


@pytest.fixture
def broken_npm(engine: Any, base_image: str) -> Iterator[str]:
    npm = "#!/bin/sh\necho no cafile >&2\nexit 1\n"
    make = "cat >/usr/local/bin/npm && chmod 755 /usr/local/bin/npm"
    with image_with(engine, base_image, make, npm) as image:
        yield image


@pytest.fixture
def own_root(remote_root: Path, checked_tasks: Path) -> Iterator[Path]:
    """A root that nobody else uses, with the install that is there already."""
    root = remote_root.with_name(f"doctor-{uuid4().hex[:12]}")
    root.mkdir(mode=0o700)
    shutil.copytree(remote_root / "tools", root / "tools", copy_function=os.link)
    yield root
    shutil.rmtree(root)


@pytest.mark.codex
def test_a_host_is_examined_as_a_whole_and_left_as_it_was(
    make_study: Callable[..., Any], engine: Any, own_root: Path
) -> None:
    study = make_study(cases=2)
    spec = study.edit(set_in("runtime.remote_root", str(own_root)))
    done = study.call("doctor", "--spec", spec, "--json")
    found = json.loads(done.stdout)
    assert [item["name"].split(" ")[0] for item in found["findings"]] == [
        *("connection", "engine", "host", "image", "image", "codex", "sandbox")
    ]
    assert all(item["ok"] for item in found["findings"])
    [sandbox] = found["sandboxes"].values()
    assert set(sandbox["checks"]) == GUARDS | {"input_read", "workspace_write"}
    assert set(sandbox["checks"].values()) == {True}
    facts = sandbox["facts"]
    assert facts["seccomp_mode"] == "2"
    assert facts["no_new_privileges"] == "1"
    assert int(facts["capabilities"], 16) == 0
    host = found["host"]
    assert host["architecture"] == host["codex"]["directory"].rsplit("-", 1)[1].split("/")[0]
    assert len(host["codex"]["binary_sha256"]) == 64
    assert abs(host["clock_skew_ms"]) < 10_000
    assert host["disk"]["inodes_free"] > 0
    assert host["kernel"]["release"]
    assert study.model.requests_by_thread == {}
    [execution] = (own_root / "executions").iterdir()
    receipts = (execution / "receipts.jsonl").read_text().splitlines()
    assert json.loads(receipts[-1])["kind"] == "cleaned"
    assert {path.name for path in execution.iterdir()} <= {"request.json", "receipts.jsonl", "lock"}
    assert listed(engine, f"label=xgent.execution={execution.name}") == []


@pytest.mark.codex
@pytest.mark.parametrize(
    ("change", "code"),
    [
        (set_in("runtime.network", "xgent-no-such-network"), "E_REMOTE_NETWORK"),
        (set_in("runtime.apparmor_profile", "xgent-no-such-profile"), "E_REMOTE_APPARMOR"),
    ],
)
def test_what_the_host_cannot_do_is_told_before_a_run(
    make_study: Callable[..., Any], change: Callable[[dict[str, Any]], None], code: str
) -> None:
    study = make_study(cases=1)
    run = study.directory / "run"
    done = study.call("run", "--spec", study.edit(change), "--output", run, check=4)
    assert f"error[{code}]" in done.stderr
    assert not run.exists()


@pytest.mark.codex
def test_an_npm_that_does_not_run_stops_doctor_and_smoke_with_its_name(
    smoke: Any, broken_npm: str
) -> None:
    spec = smoke.edit(set_in("cases.0.image", broken_npm), "broken.json")
    document = json.loads(smoke.spec.read_text())
    document["cases"][0]["image"] = broken_npm
    spec.write_text(json.dumps(document))
    done = smoke.call("doctor", "--spec", spec, check=4)
    assert "error[E_REMOTE_SANDBOX]" in done.stderr
    assert "npm_runs failed" in done.stdout
    run = smoke.directory / "run"
    done = smoke.call("run", "--spec", spec, "--output", run, check=4)
    assert "error[E_REMOTE_SANDBOX]" in done.stderr
    assert "npm_runs failed" in done.stderr
    assert "1 of 1 cases" in done.stderr
    case = json.loads((run / "report.json").read_text())["smoke"][0]
    assert case["probe"]["status"] == "failed", "the report is written all the same"
    host = json.loads((run / "host.json").read_text())
    status = json.loads(smoke.call("status", "--run", run, "--json").stdout)
    assert status["host"] == host
    [sandbox] = status["sandboxes"].values()
    assert [name for name, held in sandbox["checks"].items() if not held] == ["npm_runs"]
    said = smoke.call("status", "--run", run).stdout
    assert host["codex"]["binary_sha256"][:12] in said
    assert "9 of 10 checks hold: not npm_runs" in said
    assert smoke.call("resume", "--run", run, check=4).stderr.count("E_REMOTE_SANDBOX") == 1


@pytest.mark.engine
def test_outside_of_a_sandbox_every_guard_of_the_check_fails(
    make_study: Callable[..., Any], engine: Any, base_image: str
) -> None:
    """The control: a check that could not fail would prove nothing."""
    runtime = load_spec(make_study(cases=1).spec).spec.runtime
    command = probe_command(runtime, "/", "p", path="/usr/bin:/bin").decode()
    start = command.index("env -i")
    unprotected = command[:start] + "/bin/sh" + command[command.index(" -c ", start) :]
    home = codex.CODEX_HOME
    before = f"mkdir -p /xgent {home} && touch /xgent/plan.sh {home}/config.toml\n"
    done = subprocess.run(
        [engine.path, "run", "--rm", "-i", "--network", "host", base_image, "sh"],
        input=before + unprotected,
        text=True,
        capture_output=True,
    )
    report = read_report(done.stdout.encode())
    assert {name for name in GUARDS if report.checks[name]} == set(), done.stderr
    assert report.checks["input_read"] is False, "and there is no task to read"
    assert done.returncode != 0
