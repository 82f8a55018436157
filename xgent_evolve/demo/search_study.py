"""A demo study of mode search: the skill `team-conventions` can be made to work.

The skill knows what every team wants, but its description names only a few of the things, so
agents do not open it for the rest. One section is wrong. Shortening the skill does harm; a
description that names every section helps, also on tasks that no search has seen. One task is one
group, and the material is made from the table below.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from xgent_evolve.demo.repository import write_file, write_repository, write_tree
from xgent_evolve.demo.study import runtime_block
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh

SKILL_ROOT: Final = "skills/team-conventions"
"""The skill under study, relative to the repository."""
REPOSITORY: Final = "team-conventions"
"""The repository, below the study's directory."""

_WORKDIR: Final = "/app"
_CUTOFF: Final = "2026-01-01"


@dataclass(frozen=True, slots=True)
class Convention:
    """Something that teams write, and how they want it."""

    title: str
    split: Literal["search", "validation", "confirmation"]
    known: bool = False
    """Whether the description of the skill names it from the beginning."""
    wrong: bool = False
    """Whether the skill's section tells something else than the verifier wants."""

    @property
    def id(self) -> str:
        """Name of its task, and its topic."""
        return self.title.replace(" ", "-")

    @property
    def path(self) -> str:
        """Where the file belongs."""
        return f"team/{self.id}.txt"

    @property
    def lines(self) -> tuple[str, str]:
        """What the verifier wants in it."""
        return (f"[{self.title}]", f"owner = {self.title.split()[0]} team")


CONVENTIONS: Final = (
    Convention("meeting minutes", "search", known=True),
    Convention("status page", "search", known=True),
    Convention("change record", "search", known=True),
    Convention("release plan", "search"),
    Convention("error catalogue", "search"),
    Convention("test matrix", "search"),
    Convention("owner list", "search"),
    Convention("glossary terms", "search"),
    Convention("support roster", "search", wrong=True),
    Convention("backup schedule", "search"),
    Convention("incident summary", "validation"),
    Convention("access request", "validation"),
    Convention("upgrade notes", "confirmation", known=True),
    Convention("team charter", "confirmation", known=True),
    Convention("training agenda", "confirmation"),
    Convention("budget sheet", "confirmation"),
    Convention("vendor register", "confirmation"),
    Convention("metric definitions", "confirmation"),
    Convention("holiday calendar", "confirmation"),
    Convention("onboarding steps", "confirmation", wrong=True),
)
"""Every convention; each is a task of a team of its own."""

METHOD: Final = """\
# Method

Read the results before the text. Ask first whether the agents opened the skill at all: what is not
opened cannot help. Change one thing, and say what would refute you.
"""


def write_search_study(
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
) -> Path:
    """Write the search study below `directory` and return the path of its job.json.

    Doing it again changes nothing. `image` is a local image id or a reference by digest; `key_env`
    names the variable with the model key.

    Raises:
        DriftError: the repository below `directory` is no longer the demo's.
        InvalidError: Git cannot be run.

    """
    directory.mkdir(parents=True, exist_ok=True)
    base = write_repository(directory, REPOSITORY, _repository(), "Write the conventions down")
    for convention in CONVENTIONS:
        write_tree(_task(convention), directory / "tasks" / convention.id)
    write_file(directory / "method.md", METHOD.encode(), 0o644)
    runtime = runtime_block(
        ssh=ssh,
        remote_root=remote_root,
        docker_path=docker_path,
        docker_version=docker_version,
        base_url=base_url,
        architecture=architecture,
        key_env=key_env,
    )
    text = json.dumps(_spec(base, runtime, image), indent=2) + "\n"
    job = directory / "job.json"
    write_file(job, text.encode(), 0o644)
    load_spec(job)
    return job


def _spec(base: str, runtime: dict[str, object], image: str) -> dict[str, object]:
    exported = ["AGENTS.md", SKILL_ROOT]
    return {
        "schema_version": 1,
        "protocol_id": "team-conventions-search",
        "question": "Which text of the skill makes agents follow the conventions of their team?",
        "mode": "search",
        "target": {
            "repo": REPOSITORY,
            "base_commit": base,
            "surface": "skill",
            "paths": [SKILL_ROOT],
            "protected_rules": [
                {"path": f"{SKILL_ROOT}/SKILL.md", "text": "Work in the current directory only."}
            ],
        },
        "source": {"paths": exported},
        "runtime": runtime,
        "authority": {
            "repo": REPOSITORY,
            "export_paths": exported,
            "write_paths": [SKILL_ROOT],
            "allow_apply": True,
        },
        "budget": {
            "max_candidates": 2,
            "max_trials": 60,
            "max_concurrency": 4,
            "trial_timeout_s": 120,
            "grade_timeout_s": 60,
            "deadline_s": 1800,
            "recovery_window_s": 60,
            "max_retries": 1,
            "confirmation_trials": 20,
        },
        "measurement": {
            "objective": "task_success",
            "min_gain": 0.1,
            "non_inferiority_margin": 0.1,
            "confidence": 0.95,
            "min_groups": 6,
            "repeats": 1,
        },
        "guardrails": [],
        "cases": [
            {
                "id": convention.id,
                "source": {"kind": "local", "origin": "written for the demo of xgent-evolve"},
                "group": f"team-{convention.id}",
                "split": convention.split,
                "information_cutoff": _CUTOFF,
                "observable_requirements": [f"The {convention.title} has the team's form."],
                "task_path": f"tasks/{convention.id}",
                "repo_path": _WORKDIR,
                "image": image,
            }
            for convention in CONVENTIONS
        ],
        "conditions": [
            {"id": "baseline", "skill": "baseline", "agents": "baseline"},
            {"id": "absent", "skill": "absent", "agents": "baseline"},
        ],
        "baseline_condition": "baseline",
        "optimizer": {
            "strategy": "hillclimb",
            "model": "gpt-6.1-sol",
            "effort": "high",
            "method_path": "method.md",
            "method_sha256": hashlib.sha256(METHOD.encode()).hexdigest(),
        },
    }


def _repository() -> Iterator[tuple[str, bytes]]:
    yield "AGENTS.md", b"# Working here\n\n- If a skill fits the task, follow it.\n"
    named = [item.title for item in CONVENTIONS if item.known]
    lines = [
        "---",
        "name: team-conventions",
        f"description: Conventions of the teams for the {', the '.join(named)}.",
        "---",
        "",
        "# Conventions",
        "",
        "Work in the current directory only.",
        "",
    ]
    for item in CONVENTIONS:
        first, second = item.lines
        lines += [
            f"## {item.title.capitalize()}",
            "",
            f"Two lines in `{item.path}`: what it is, and who answers for it.",
            "",
            "```sh",
            "mkdir -p team",
            f"printf '%s\\n' '{first}' > {item.path}",
            f"printf '%s\\n' '{'owner unknown' if item.wrong else second}' >> {item.path}",
            "```",
            "",
        ]
    yield f"{SKILL_ROOT}/SKILL.md", "\n".join(lines).encode()


def _task(item: Convention) -> Iterator[tuple[str, bytes]]:
    first, second = item.lines
    wanted = f"{first}\n{second}"
    yield (
        "instruction.md",
        f"Prepare the {item.title} of this project as the people here want it.\n\n"
        f"Topic: {item.id}\n".encode(),
    )
    yield (
        "tests/test.sh",
        f"""#!/bin/sh
reward=0
if [ "$(cat {_WORKDIR}/{item.path} 2>/dev/null)" = '{wanted}' ]; then
    reward=1
fi
mkdir -p /logs/verifier
echo "$reward" > /logs/verifier/reward.txt
[ "$reward" -eq 1 ]
""".encode(),
    )
    yield (
        "solution/solve.sh",
        f"#!/bin/sh\nset -eu\ncd {_WORKDIR}\nmkdir -p team\n"
        f"printf '%s\\n' '{first}' '{second}' > {item.path}\n".encode(),
    )
