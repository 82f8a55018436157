"""The JobSpec as a document: what was found, put where it belongs, with a budget that fits."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

from xgent_evolve.api.init.material import Material
from xgent_evolve.api.init.request import InitRequest
from xgent_evolve.api.init.tasks import DEFAULT_PLACE, FoundTask
from xgent_evolve.spec.runtime import Ssh

DEFAULT_TRIAL_S = 1800
DEFAULT_GRADE_S = 600
DEFAULT_CPUS = 2
DEFAULT_MEMORY_MB = 2048
RETRIES = 1
MIN_GROUPS = 6
WORKSPACE = "/workspace"
"""Where the repository is placed for tasks that start from it."""


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that a JobSpec is made of."""

    request: InitRequest
    top: Path
    """Of the repository."""
    head: str
    material: Material
    tasks: Sequence[FoundTask]
    ssh: Ssh
    images: Mapping[str, str]
    """Pinned image of each task, by its name."""
    places: Mapping[str, str]
    """Working directory of each task, by its name."""
    remote_root: str
    docker_path: str
    docker_version: str
    architecture: str


def spec_document(found: Found) -> dict[str, object]:
    """Return the JobSpec. Pure."""
    material, request = found.material, found.request
    repo = written_path(found.top, request.spec)
    compare = request.mode == "compare"
    conditions, baseline, candidate = _conditions(material)
    return {
        "schema_version": 1,
        "protocol_id": _name(material),
        "question": _question(material, request.mode),
        "mode": request.mode,
        "target": {
            "repo": repo,
            "base_commit": found.head,
            "surface": material.surface,
            "paths": list(material.target),
        },
        "source": {"paths": list(material.source)},
        "runtime": _runtime(found),
        "authority": {
            "repo": repo,
            "export_paths": list(material.source),
            "write_paths": [],
            "allow_apply": False,
            **({"auth_path": request.auth_file} if compare and not request.auth_env else {}),
        },
        "budget": _budget(found, trials=planned_trials(found)),
        "measurement": {
            "objective": "task_success",
            "min_gain": 0.1,
            "non_inferiority_margin": 0.05,
            "confidence": 0.95,
            "min_groups": MIN_GROUPS,
            "repeats": request.repeats,
        },
        "guardrails": [{"name": "task_contract", "floor": 0}],
        "cases": [_case(found, task, repo) for task in found.tasks],
        "conditions": conditions,
        "baseline_condition": baseline,
        **({"candidate_condition": candidate} if compare else {}),
    }


def planned_trials(found: Found) -> int:
    """Return how many agent executions the study plans. Pure."""
    if found.request.mode == "smoke":
        return 1
    conditions, _, _ = _conditions(found.material)
    return len(conditions) * len(found.tasks) * found.request.repeats


def written_path(path: Path, spec: Path) -> str:
    """Return a path as the JobSpec should name it: relative where the two lie together."""
    home = spec.absolute().parent.resolve()
    relative = os.path.relpath(path, home)
    return relative if relative.count("..") <= 1 else str(path)


def _conditions(material: Material) -> tuple[list[object], str, str]:
    """Return the arms, the baseline's id and the candidate's."""
    without: dict[str, object]
    present: dict[str, object]
    if material.surface == "skill":
        without = {"id": "absent", "skill": "absent", "agents": "fixed"}
        present = {"id": "present", "skill": "baseline", "agents": "fixed"}
        edited: dict[str, object] = {"id": "edited", "skill": "candidate", "agents": "fixed"}
    else:
        without = {"id": "minimal", "skill": "absent", "agents": "minimal"}
        present = {"id": "present", "skill": "absent", "agents": "baseline"}
        edited = {"id": "edited", "skill": "absent", "agents": "candidate"}
    if not material.overrides:
        return [without, present], str(without["id"]), "present"
    overrides: dict[str, object] = dict(material.overrides)
    arms: list[object] = [present, edited | {"overrides": overrides}]
    # A skill study declares the control without the skill; AGENTS.md text needs none.
    return [without, *arms] if material.surface == "skill" else arms, "present", "edited"


def _question(material: Material, mode: str) -> str:
    if mode == "smoke":
        return "Do host, images, sandbox and graders work?"
    if material.overrides:
        return f"Does the edit of {material.name} solve more tasks?"
    return f"Does {material.name} solve more tasks than none?"


def _name(material: Material) -> str:
    text = material.target[0].rpartition("/")[2] if material.surface == "skill" else "agents-text"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:60] or "study"


def _runtime(found: Found) -> dict[str, object]:
    request = found.request
    ssh = found.ssh.given()
    agent: dict[str, object] = {}
    if request.mode == "compare":
        credential: dict[str, object] = (
            {"source": "controller_env", "name": request.auth_env}
            if request.auth_env
            else {"source": "host_file", "path": request.auth_file}
        )
        agent = {
            "model": request.model,
            "effort": request.effort,
            "tools": ["shell"],
            "authentication": credential,
        }
    return {
        "ssh": ssh,
        "remote_root": found.remote_root,
        "docker": {"path": found.docker_path, "version": found.docker_version},
        "codex": {"version": "0.162.1", "architecture": found.architecture},
        **agent,
        "cpus": _most(DEFAULT_CPUS, [task.settings.cpus for task in found.tasks]),
        "memory_mb": _most(DEFAULT_MEMORY_MB, [task.settings.memory_mb for task in found.tasks]),
    }


def _budget(found: Found, *, trials: int) -> dict[str, object]:
    settings = [task.settings for task in found.tasks]
    trial_s = _most(DEFAULT_TRIAL_S, [item.agent_timeout_s for item in settings])
    grade_s = _most(DEFAULT_GRADE_S, [item.verifier_timeout_s for item in settings])
    # A quarter on top, so that a host's bad hour does not end the study.
    bound = trials + max(2, math.ceil(trials / 4))
    rounds = math.ceil(bound / found.request.concurrency)
    return {
        "max_trials": bound,
        "max_concurrency": found.request.concurrency,
        "trial_timeout_s": trial_s,
        "grade_timeout_s": grade_s,
        "deadline_s": max(3600, rounds * (trial_s + grade_s)),
        "recovery_window_s": 1800,
        "max_retries": RETRIES,
    }


def _most(least: int, values: Sequence[Decimal | int | None]) -> int:
    """Return the largest of the tasks' wishes, at least `least`, as a whole number."""
    wishes = [Decimal(value) for value in values if value is not None]
    return int(max([Decimal(least), *wishes]).to_integral_value(ROUND_CEILING))


def _case(found: Found, task: FoundTask, repo: str) -> dict[str, object]:
    path = written_path(task.path, found.request.spec)
    source: dict[str, object] = (
        {"kind": "repo", "repo": repo, "base": found.head}
        if found.material.surface == "agents"
        else {"kind": "local", "origin": f"the task folder {task.path.name}"}
    )
    return {
        "id": task.name,
        "source": source,
        "group": task.name,
        "split": "search",
        "information_cutoff": task.known_until,
        "observable_requirements": [task.requirement],
        "task_path": path,
        "repo_path": found.places[task.name],
        "image": found.images[task.name],
        **({} if task.solved else {"oracle_paths": [], "oracle_check": "unchecked"}),
    }


def place_of(request: InitRequest, material: Material, task: FoundTask, image: str) -> str:
    """Return the working directory of a task: its own, the caller's, the image's, a default."""
    default = WORKSPACE if material.surface == "agents" else DEFAULT_PLACE
    return task.settings.workdir or request.repo_path or task.place or image or default
