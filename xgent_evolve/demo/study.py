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
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from xgent_evolve.errors import DriftError, InvalidError
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh

SKILL_ROOT: Final = "skills/house-style"
"""The skill under study, relative to the repository."""

_REPOSITORY: Final = "house-style"
_WORKDIR: Final = "/app"
_CUTOFF: Final = "2026-01-01"
_MOMENT: Final = "2026-01-01T09:00:00+00:00"
_AUTHOR: Final = "The House"
_EMAIL: Final = "house@example.invalid"


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
    base = _write_repository(directory)
    for task in TASKS:
        _write_tree(_material() / "tasks" / task.id, directory / "tasks" / task.id)
    overrides = {f"{SKILL_ROOT}/SKILL.md": candidate_text} if candidate_text is not None else {}
    runtime: dict[str, object] = {
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
    text = json.dumps(_spec(base, runtime, image, overrides), indent=2) + "\n"
    job = directory / "job.json"
    _write_file(job, text.encode(), 0o644)
    load_spec(job)
    return job


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


def _write_repository(directory: Path) -> str:
    """Make the repository and return its one commit; the same bytes give the same commit."""
    repository = directory / _REPOSITORY
    fresh = directory / f".{_REPOSITORY}.partial"
    shutil.rmtree(fresh, ignore_errors=True)
    _write_tree(_material() / "repository", fresh)
    _git(fresh, "init", "--quiet")
    _git(fresh, "add", "--all")
    _git(fresh, "commit", "--quiet", "--message", "Write the house style down")
    commit = _git(fresh, "rev-parse", "HEAD")
    if not repository.exists():
        fresh.rename(repository)
        return commit
    shutil.rmtree(fresh)
    changes = _git(repository, "status", "--porcelain")
    if changes or _git(repository, "rev-parse", "HEAD") != commit:
        raise DriftError(
            "the demo's repository was changed",
            where=str(repository),
            expected=f"commit {commit[:12]} and a clean working tree",
            found=changes.splitlines()[0].strip() if changes else "another commit",
            fix="undo the change, or start the demo in another directory",
        )
    return commit


def _git(repository: Path, *arguments: str) -> str:
    """Run Git without the user's and the system's configuration."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_AUTHOR_NAME": _AUTHOR,
        "GIT_AUTHOR_EMAIL": _EMAIL,
        "GIT_AUTHOR_DATE": _MOMENT,
        "GIT_COMMITTER_NAME": _AUTHOR,
        "GIT_COMMITTER_EMAIL": _EMAIL,
        "GIT_COMMITTER_DATE": _MOMENT,
        "LC_ALL": "C",
    }
    options = ("-c", "init.defaultBranch=main", "-c", "init.templateDir=")
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *options, *arguments],
            env=quiet | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError as error:
        raise InvalidError("git is not installed", fix="install git") from error
    except subprocess.CalledProcessError as error:
        raise InvalidError(
            f"git {arguments[0]} failed",
            where=str(repository),
            found=str(error.stderr).strip(),
            fix="check that the directory is yours and that git works there",
        ) from error
    return done.stdout.strip()


def _write_tree(source: Traversable, target: Path) -> None:
    for path, content in _walk(source):
        # Packaging may lose mode bits, so they follow from what the file is.
        mode = 0o755 if content.startswith(b"#!") else 0o644
        _write_file(target / path, content, mode)


def _walk(source: Traversable, prefix: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in sorted(source.iterdir(), key=lambda item: item.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry.read_bytes()


def _write_file(path: Path, content: bytes, mode: int) -> None:
    if not (path.is_file() and path.read_bytes() == content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    path.chmod(mode)


def _material() -> Traversable:
    return files("xgent_evolve.demo") / "material"
