"""When a change joins the pool, when a step may still be paid, and when the best is promoted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from xgent_evolve.strategies.gepa.pareto import mean
from xgent_evolve.strategies.tolerance import exceeds, reaches

COMPONENTS = ("steps", "pitfalls", "when_to_use", "description")
"""Components of a skill in the order in which they are changed."""


def improves(parent: Sequence[float], child: Sequence[float]) -> bool:
    """Say whether a child is better in sum on the same cases; single cases may get worse."""
    return exceeds(math.fsum(child), math.fsum(parent))


@dataclass(frozen=True, slots=True)
class CallBudget:
    """Evaluated cases that a search may pay; both sides of the held-out cases are set aside."""

    most: int
    """0 for no limit."""
    batch: int
    """Cases of one reflection."""
    validation: int
    holdout: int

    @property
    def reserve(self) -> int:
        """What the held-out cases cost when a candidate is measured on them too."""
        return 2 * self.holdout

    def can_start(self) -> bool:
        """Say whether the first measurement fits."""
        return self._fits(self.validation)

    def can_step(self, used: int) -> bool:
        """Say whether a whole step fits, with a child that joins the pool."""
        return self._fits(used + 2 * self.batch + self.validation)

    def _fits(self, calls: int) -> bool:
        return not self.most or calls + self.reserve <= self.most


@dataclass(frozen=True, slots=True)
class Promotion:
    """Whether the best version may be put forward, and why."""

    eligible: bool
    reason: str


def promotion(
    baseline: Mapping[str, float],
    candidate: Mapping[str, float] | None,
    *,
    minimum: float,
    critical: Collection[str],
) -> Promotion:
    """Judge by the held-out cases; the first reason against it counts.

    Args:
        baseline: Scores of the first version by case; empty when no cases are held out.
        candidate: Scores of the best one; None when that is the first version itself.
        minimum: Smallest gain of the mean; a tie with it passes.
        critical: Cases on which nothing may be lost.

    """
    if candidate is None:
        return Promotion(False, "no accepted candidate improved validation")
    if not baseline:
        return Promotion(False, "no holdout split configured")
    gain = mean(list(candidate.values())) - mean(list(baseline.values()))
    if not reaches(gain, minimum):
        return Promotion(False, "holdout delta below minimum")
    for case in baseline:
        if case in critical and not reaches(candidate[case], baseline[case]):
            return Promotion(False, f"critical case regressed: {case}")
    return Promotion(True, "holdout requirements satisfied")
