"""What the caller says, and what is told back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xgent_evolve.errors import Fault

DEFAULT_ROOT = "/srv/xgent-evolve"
DEFAULT_DOCKER = "/usr/bin/docker"


@dataclass(frozen=True, slots=True)
class InitRequest:
    """The flags of `init`; None and False where the caller leaves it to us."""

    repo: Path
    """Any directory of the Git working tree."""
    spec: Path
    """The file to write."""
    tasks: Path | None = None
    """A task folder, or a directory of task folders."""
    unchecked: bool = False
    """Take tasks without a reference solution too, and say so in their cases."""
    mode: Literal["compare", "smoke"] = "compare"
    skill: str | None = None
    """Directory or name of the skill to study."""
    agents: bool = False
    """Study AGENTS.md although there are skills."""
    candidate: Path | None = None
    """The edited text: a file, or for a skill a whole directory."""
    host: str | None = None
    """`[user@]host[:port]`."""
    known_hosts: str | None = None
    identity: str | None = None
    ask_host: bool = False
    """Connect, and look at engine and images."""
    remote_root: str | None = None
    docker_path: str | None = None
    docker_version: str | None = None
    images: tuple[str, ...] = ()
    """`REFERENCE` for every task, or `TASK=REFERENCE` for one."""
    repo_path: str | None = None
    """Working directory in the container, where a task does not name one."""
    model: str = "gpt-6.1-sol"
    effort: str = "high"
    auth_file: str = "~/.codex/auth.json"
    """Credential file on the host."""
    auth_env: str | None = None
    """Variable of this process with the credential, instead of the file."""
    repeats: int = 2
    concurrency: int = 2


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A task folder that the study does not use."""

    task: str
    reason: str


@dataclass(frozen=True, slots=True)
class Assumed:
    """A setting that nobody said and nothing shows."""

    path: str
    """Where it stands in the JobSpec."""
    value: str
    reason: str


@dataclass(frozen=True, slots=True)
class Written:
    """What was written, and why it is as it is."""

    spec: Path
    studied: str
    """The text under study, in words."""
    cases: tuple[str, ...]
    conditions: tuple[str, ...]
    trials: int
    """Agent executions that are planned."""
    left_out: tuple[LeftOut, ...]
    assumed: tuple[Assumed, ...]

    def document(self) -> dict[str, object]:
        """Return the JSON form."""
        return {
            "type": "initialised",
            "schema": 1,
            "spec": str(self.spec),
            "studied": self.studied,
            "cases": list(self.cases),
            "conditions": list(self.conditions),
            "planned_trials": self.trials,
            "left_out": [{"task": item.task, "reason": item.reason} for item in self.left_out],
            "assumed": [
                {"path": item.path, "value": item.value, "reason": item.reason}
                for item in self.assumed
            ],
        }


def missing(what: str, *, flag: str, found: str = "", where: str = "init") -> Fault:
    """Return the fault of something that cannot be found out; `flag` is how to say it."""
    return Fault(
        code="E_INIT_MISSING",
        message=f"{what} cannot be found out",
        where=where,
        expected=flag,
        found=found or "nothing that says it",
        fix=f"give {flag}",
    )
