"""Which trials of the incumbent are read closely in a round: one for each task at most.

A task keeps its representative trial whatever is asked of it, so that questions about other trials
have no answer and are not asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xgent_evolve.strategies.rrsi.aggregate import Trial, Trials, mean_reward
from xgent_evolve.strategies.tolerance import reaches


@dataclass(frozen=True, slots=True)
class Representative:
    """The trial that stands for a task."""

    task: str
    trial: int
    """Its number among the task's trials, counted from 0."""


def representatives(trials: Trials, n_fail: int, n_success: int) -> tuple[Representative, ...]:
    """Return the worst trial of the `n_fail` lowest tasks, the best of the `n_success` highest.

    Tasks are ordered by mean reward, equal ones as given; a task that is among the lowest is not
    taken again. Among equal trials the first is taken.
    """
    # Means that differ in the last bit alone are equal: they stay in the order of the tasks.
    ordered = sorted(trials, key=lambda task: round(mean_reward(trials[task]), 12))
    lowest = ordered[:n_fail]
    highest = ordered[max(len(ordered) - n_success, len(lowest)) :]
    return (
        *(Representative(task, _first_at(trials[task], worst=True)) for task in lowest),
        *(Representative(task, _first_at(trials[task], worst=False)) for task in highest),
    )


def enough_traces(available: int, tasks: int, n_fail: int, n_success: int) -> bool:
    """Say whether at least half of the traces that a round may read exist."""
    return 2 * available >= min(tasks, n_fail + n_success)


def _first_at(trials: Sequence[Trial], *, worst: bool) -> int:
    values = [-trial.counted if worst else trial.counted for trial in trials]
    return next(at for at, value in enumerate(values) if reaches(value, max(values)))
