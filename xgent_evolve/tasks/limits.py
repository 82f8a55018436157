"""The limits under which a task runs: its own, never above what the JobSpec grants. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from xgent_evolve.spec.parts import Budget
from xgent_evolve.spec.runtime import Runtime
from xgent_evolve.tasks.findings import Findings
from xgent_evolve.tasks.settings import TaskSettings


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """What every execution of one task gets."""

    agent_timeout_s: int
    grade_timeout_s: int
    cpus: Decimal
    memory_mb: int


def effective_limits(settings: TaskSettings, runtime: Runtime, budget: Budget) -> TaskLimits:
    """Return the smaller of what the task asks for and what the JobSpec grants, one by one."""
    return TaskLimits(
        agent_timeout_s=_least(settings.agent_timeout_s, budget.trial_timeout_s),
        grade_timeout_s=_least(settings.verifier_timeout_s, budget.grade_timeout_s),
        cpus=runtime.cpus if settings.cpus is None else min(settings.cpus, runtime.cpus),
        memory_mb=_least(settings.memory_mb, runtime.memory_mb),
    )


def warn_of_lowered(
    settings: TaskSettings, limits: TaskLimits, where: str, findings: Findings
) -> None:
    """Say which limits are lower than the task's author meant them to be."""
    for key, asked, granted, field in _pairs(settings, limits):
        if asked is not None and asked > granted:
            message = f"the task asks for {key} {asked} and {field} grants {granted}"
            findings.warn("W_TASK_LIMIT", message, where)


def _pairs(
    settings: TaskSettings, limits: TaskLimits
) -> Iterator[tuple[str, Decimal | int | None, Decimal | int, str]]:
    yield (
        "agent.timeout_sec",
        settings.agent_timeout_s,
        limits.agent_timeout_s,
        "budget.trial_timeout_s",
    )
    yield (
        "verifier.timeout_sec",
        settings.verifier_timeout_s,
        limits.grade_timeout_s,
        "budget.grade_timeout_s",
    )
    yield "environment.cpus", settings.cpus, limits.cpus, "runtime.cpus"
    yield "environment.memory_mb", settings.memory_mb, limits.memory_mb, "runtime.memory_mb"


def _least(asked: int | None, granted: int) -> int:
    return granted if asked is None else min(asked, granted)
