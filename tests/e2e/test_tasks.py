"""Tasks are tried before anything is paid for (SPEC-03), and graded by what they declare."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ALWAYS, NEVER = "release-notes", "greeting"


def facts(run: Path) -> list[dict[str, Any]]:
    lines = (run / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    return [json.loads(line)["fact"] for line in lines]


def kinds(run: Path) -> dict[str, int]:
    """Count the registered executions by kind."""
    found: dict[str, int] = {}
    for fact in facts(run):
        if fact["type"] == "intent":
            found[fact["kind"]] = found.get(fact["kind"], 0) + 1
    return found


def report(run: Path) -> dict[str, Any]:
    return json.loads((run / "report.json").read_text())


@pytest.mark.codex
def test_verifiers_that_pass_everybody_or_nobody_stop_a_study_before_a_model_is_called(
    make_study: Callable[..., Any],
) -> None:
    study = make_study()
    tasks = study.spec.parent / "tasks"
    verifier = "#!/bin/sh\necho {0} > /logs/verifier/reward.txt\n[ {0} -eq 1 ]\n"
    (tasks / ALWAYS / "tests" / "test.sh").write_text(verifier.format(1))
    missing = "#!/bin/sh\nno-such-tool --version\n" + verifier.format(0).partition("\n")[2]
    (tasks / NEVER / "tests" / "test.sh").write_text(missing)

    def keep_two(document: dict[str, Any]) -> None:
        document["cases"] = [case for case in document["cases"] if case["id"] in (ALWAYS, NEVER)]

    run = study.directory / "run"
    done = study.call("run", "--spec", study.edit(keep_two), "--output", run, "--json", check=2)
    error = json.loads(done.stdout.splitlines()[-1])
    assert (error["code"], error["exit_code"]) == ("E_SPEC_TASK_ORACLE", 2)
    found = {fault["where"]: fault for fault in error["faults"]}
    assert set(found) == {f"case {ALWAYS}", f"case {NEVER}"}
    assert "does not reject the untouched" in found[f"case {ALWAYS}"]["message"]
    assert "does not accept the reference" in found[f"case {NEVER}"]["message"]
    assert "no-such-tool: not found" in found[f"case {NEVER}"]["found"], "the verifier's own words"
    assert kinds(run) == {"probe": 1, "oracle": 2, "grade": 4}
    assert dict(study.model.requests_by_thread) == {}
    assert not (run / "report.json").exists()
    again = study.call("resume", "--run", run, check=2)
    assert "E_SPEC_TASK_ORACLE" in again.stderr
    assert kinds(run) == {"probe": 1, "oracle": 2, "grade": 4}, "nothing is tried a second time"


@pytest.mark.codex
def test_a_check_that_passed_is_not_repeated_and_the_report_does_not_depend_on_it(
    make_study: Callable[..., Any], without_times: Callable[[Any], Any], tmp_path: Path
) -> None:
    study = make_study(cases=1)
    study.cache = tmp_path / "own-cache"
    first, second = study.directory / "first", study.directory / "second"
    study.call("run", "--spec", study.spec, "--output", first)
    trials = kinds(first)["agent"]
    assert kinds(first) == {"probe": 1, "oracle": 1, "grade": 2 + trials, "agent": trials}
    assert [fact for fact in facts(first) if fact["type"] == "task_checked"] == []

    study.call("run", "--spec", study.spec, "--output", second)
    assert kinds(second) == {"probe": 1, "grade": trials, "agent": trials}
    (checked,) = [fact for fact in facts(second) if fact["type"] == "task_checked"]
    assert checked["run_id"] == json.loads((first / "run.json").read_text())["run_id"]
    assert without_times(report(first)) == without_times(report(second))

    # The cache is not asked again: what it said is a fact of the run.
    for entry in (study.cache / "xgent-evolve" / "task-checks").iterdir():
        entry.unlink()
    (second / "report.json").unlink()
    study.call("resume", "--run", second)
    assert kinds(second) == {"probe": 1, "grade": trials, "agent": trials}


@pytest.mark.codex
def test_a_solution_that_works_elsewhere_is_told_where(make_study: Callable[..., Any]) -> None:
    """What is installed outside of the working directory is not delivered (PAT-10)."""
    study = make_study(cases=1)
    task = study.spec.parent / "tasks" / ALWAYS
    (task / "solution" / "solve.sh").write_text(
        "#!/bin/sh\nprintf '#!/bin/sh\\n' >/usr/local/bin/new-tool\n"
        "chmod 755 /usr/local/bin/new-tool\nmkdir -p /opt/new/deep\necho x >/tmp/passing\n"
        "rm /etc/issue\necho inside >inside.txt\n"
    )
    (task / "tests" / "test.sh").write_text(
        "#!/bin/sh\nreward=0\n[ -s inside.txt ] && new-tool && reward=1\n"
        "echo $reward >/logs/verifier/reward.txt\n[ $reward -eq 1 ]\n"
    )
    run = study.directory / "run"
    done = study.call("run", "--spec", study.spec, "--output", run, "--json", check=2)
    [fault] = json.loads(done.stdout.splitlines()[-1])["faults"]
    assert fault["code"] == "E_SPEC_TASK_ORACLE"
    told = "W_TRIAL_CHANGES_OUTSIDE_WORKDIR: it changed files outside of /app"
    named = "/etc/issue, /opt/new/deep, /usr/local/bin/new-tool"
    assert fault["found"].endswith(f"{told}, which is not graded: {named}")
