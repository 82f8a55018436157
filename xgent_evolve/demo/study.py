"""The demo study: whether the skill `house-style` helps, on ten tiny tasks of seven teams.

Six tasks need a convention that only the skill tells, three need no skill, and one fails even with
the skill, because its section tells only half of the convention. A group is the team that a task
comes from: tasks of one team stand on the same ground and are no independent evidence, so the
interval is taken over teams. Three teams ask for a convention alone, three ask for a convention and
for something plain, and one asks for what the skill gets wrong. So the paired differences are 1,
0.5 and 0: neither all equal nor all zero, and still enough to decide.

The material lies beside this module. `write_study` brings it to a directory of the caller's, as
a Git repository, task directories and a JobSpec; from there on it is a study like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from xgent_evolve.demo.repository import write_file, write_repository, write_tree
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh

SKILL_ROOT: Final = "skills/house-style"
"""The skill under study, relative to the repository."""

_REPOSITORY: Final = "house-style"
_WORKDIR: Final = "/app"
_CUTOFF: Final = "2026-01-01"


@dataclass(frozen=True, slots=True)
class DemoTask:
    """One task of the demo and the team that it comes from."""

    id: str
    group: str
    requirement: str


TASKS: Final = (
    DemoTask("release-notes", "release", "The release notes hold the change in the house style."),
    DemoTask("version-file", "packaging", "The version file holds 0.1.0 in the house style."),
    DemoTask("decision-record", "architecture", "The first decision record has the house style."),
    DemoTask("commit-template", "review", "The commit template has the house style."),
    DemoTask("settings", "backend", "The settings hold the three defaults in the house style."),
    DemoTask("licence-header", "tools", "The script runs and has the licence header."),
    DemoTask("greeting", "tools", "greeting.txt holds exactly the two lines."),
    DemoTask("announcement", "release", "announcement.txt holds exactly the three lines."),
    DemoTask("build-order", "packaging", "build-order.txt holds exactly the three names."),
    DemoTask("runbook", "operations", "ops/runbook.md names the severity first, then the steps."),
)
"""The tasks; each team's convention first, then what is plain."""


def write_study(
    directory: Path,
    *,
    ssh: Ssh,
    remote_root: str,
    image: str,
    docker_path: str,
    docker_version: str,
    base_url: str,
    architecture: str,
    key_env: str,
    candidate_text: str | None = None,
) -> Path:
    """Write the demo study below `directory` and return the path of its job.json.

    Doing it again changes nothing. `image` is a local image id or a reference by digest;
    `key_env` names the variable with the model key; `candidate_text` replaces the candidate's
    SKILL.md (the committed one when absent).

    Raises:
        DriftError: the repository below `directory` is no longer the demo's.
        InvalidError: Git cannot be run.

    """
    directory.mkdir(parents=True, exist_ok=True)
    repository = _walk(_material() / "repository")
    base = write_repository(directory, _REPOSITORY, repository, "Write the house style down")
    for task in TASKS:
        write_tree(_walk(_material() / "tasks" / task.id), directory / "tasks" / task.id)
    overrides = {f"{SKILL_ROOT}/SKILL.md": candidate_text} if candidate_text is not None else {}
    runtime = runtime_block(
        ssh=ssh,
        remote_root=remote_root,
        docker_path=docker_path,
        docker_version=docker_version,
        base_url=base_url,
        architecture=architecture,
        key_env=key_env,
    )
    text = json.dumps(_spec(base, runtime, image, overrides), indent=2) + "\n"
    job = directory / "job.json"
    write_file(job, text.encode(), 0o644)
    load_spec(job)
    return job


def runtime_block(
    *,
    ssh: Ssh,
    remote_root: str,
    docker_path: str,
    docker_version: str,
    base_url: str,
    architecture: str,
    key_env: str,
) -> dict[str, object]:
    """Return the JobSpec's runtime for a host and a model endpoint."""
    return {
        "ssh": ssh.given(),
        "remote_root": remote_root,
        "docker": {"path": docker_path, "version": docker_version},
        "codex": {"version": "0.162.1", "architecture": architecture},
        "model": "gpt-6.1-sol",
        "effort": "high",
        "tools": ["shell"],
        "authentication": {"source": "controller_env", "name": key_env},
        "base_url": base_url,
        "network": "host",
    }


def _spec(
    base: str, runtime: dict[str, object], image: str, overrides: dict[str, str]
) -> dict[str, object]:
    exported = ["AGENTS.md", SKILL_ROOT]
    rule = {"path": "AGENTS.md", "text": "- Work in the current directory only."}
    return {
        "schema_version": 1,
        "protocol_id": "house-style-demo",
        "question": "Do agents follow the house style more often with the skill than without it?",
        "mode": "compare",
        "target": {
            "repo": _REPOSITORY,
            "base_commit": base,
            "surface": "skill",
            "paths": [SKILL_ROOT],
            "protected_rules": [rule],
        },
        "source": {"paths": exported},
        "runtime": runtime,
        "authority": {
            "repo": _REPOSITORY,
            "export_paths": exported,
            "write_paths": [],
            "allow_apply": False,
        },
        "budget": {
            "max_trials": 40,
            "max_concurrency": 4,
            "trial_timeout_s": 120,
            "grade_timeout_s": 60,
            "deadline_s": 1800,
            "recovery_window_s": 60,
            "max_retries": 1,
        },
        "measurement": {
            "objective": "task_success",
            "min_gain": 0.2,
            "non_inferiority_margin": 0.1,
            "confidence": 0.95,
            "min_groups": 6,
            "repeats": 1,
        },
        "guardrails": [{"name": "task_contract", "floor": 0.5}],
        "cases": [_case(task, image) for task in TASKS],
        "conditions": [
            {"id": "absent", "skill": "absent", "agents": "baseline"},
            {
                "id": "candidate",
                "skill": "candidate",
                "agents": "baseline",
                "overrides": overrides,
            },
        ],
        "baseline_condition": "absent",
        "candidate_condition": "candidate",
    }


def _case(task: DemoTask, image: str) -> dict[str, object]:
    return {
        "id": task.id,
        "source": {"kind": "local", "origin": "written for the demo of xgent-evolve"},
        "group": task.group,
        "split": "validation",
        "information_cutoff": _CUTOFF,
        "observable_requirements": [task.requirement],
        "task_path": f"tasks/{task.id}",
        "repo_path": _WORKDIR,
        "image": image,
    }


def _walk(source: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(source.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def _material() -> Traversable:
    return files("xgent_evolve.demo") / "material"
