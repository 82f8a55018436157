"""What repeated measurements of a version say, task by task, and how two versions differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xgent_evolve.strategies.tolerance import exceeds, reaches

type Means = Mapping[str, float]
"""Mean score of every task, between 0 and 1."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How one version's means differ from a reference, over the same tasks."""

    gain: float
    """Sum of all differences, in tasks."""
    regression_mass: float
    """Sum of what was lost, in tasks; what was gained elsewhere makes up for none of it."""
    improved: tuple[str, ...]
    """Tasks that rose by more than rounding, in order of their names."""
    regressed: tuple[str, ...]
    """Tasks that fell by more than rounding, in order of their names."""


def task_means(trials: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the mean of every task over its repeats, never the best of them.

    Args:
        trials: Scores of every task, one for each repeat; a failed one is 0.

    Raises:
        ValueError: there is no task, a task without a repeat, or a score that is not between 0
            and 1.

    """
    if not trials:
        raise ValueError("no task was measured")
    means: dict[str, float] = {}
    for task, scores in trials.items():
        if not scores:
            raise ValueError(f"task {task!r} has no trial")
        for score in scores:
            if not (math.isfinite(score) and 0 <= score <= 1):
                raise ValueError(f"a score of task {task!r} is not between 0 and 1: {score!r}")
        means[task] = math.fsum(scores) / len(scores)
    return means


def overall(means: Means) -> float:
    """Return the mean over all tasks."""
    return math.fsum(means.values()) / len(means)


def solved(means: Means, threshold: float) -> frozenset[str]:
    """Return the tasks whose mean reaches the threshold."""
    return frozenset(task for task, mean in means.items() if reaches(mean, threshold))


def difference(reference: Means, candidate: Means) -> Difference:
    """Return how the candidate differs from a reference.

    Raises:
        ValueError: the two were not measured on the same tasks.

    """
    if reference.keys() != candidate.keys():
        odd = ", ".join(sorted(reference.keys() ^ candidate.keys()))
        raise ValueError(f"not measured on both sides: {odd}")
    return Difference(
        gain=math.fsum(candidate[task] - reference[task] for task in reference),
        regression_mass=math.fsum(max(reference[t] - candidate[t], 0.0) for t in reference),
        improved=tuple(t for t in sorted(reference) if exceeds(candidate[t], reference[t])),
        regressed=tuple(t for t in sorted(reference) if exceeds(reference[t], candidate[t])),
    )
