"""The noise band delta, from what the baseline's own repeats differ by.

With repeated evaluations of the baseline it is their sample standard deviation. With one, or when
the repeats agree, it is a bootstrap of the trials within each task. A band of 0 is legal when every
trial is deterministic; then any gain is above the band and "stalled" means "no gain".
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.measure.pairing import TINY
from xgent_evolve.measure.rounding import rounded
from xgent_evolve.strategies.rrsi.aggregate import Trial, Trials, weighted_score

BOOTSTRAP_REPETITIONS = 2000
"""Resamples of the baseline."""
BOOTSTRAP_SEED = 7
"""Seed of the one stream of draws; nothing else of RRSI draws."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How wide the band is, and why; every number has six decimals."""

    method: Literal["repeated", "bootstrap"]
    delta: float
    """Half width of the band."""
    sd_null: float
    """Standard deviation of the difference of two measurements of the same version."""
    se_bootstrap: float
    """Standard deviation of the bootstrapped scores of the pooled trials."""
    sd_null_bootstrap: float
    """The standard deviation of a difference that follows from it."""
    scores: tuple[float, ...]
    """Score of every evaluation, unrounded; the first is the baseline's, never the best."""


def calibrate(baselines: Sequence[Trials], delta_z: float) -> Calibration:
    """Return the band of `delta_z` standard deviations.

    `baselines` are the evaluations of the baseline, with the same tasks in the same order. Raises
    ValueError when they are one evaluation with one trial per task, which shows no noise at all, or
    when their tasks or numbers of trials differ, or weights are missing.
    """
    repeats = _repeats(baselines)
    if repeats < 2 and len(baselines) < 2:
        raise ValueError("calibration needs k >= 2 or at least two base evaluations")
    scores = tuple(_score([t for runs in one.values() for t in runs]) for one in baselines)
    pooled = [[t for one in baselines for t in one[task]] for task in baselines[0]]
    se = statistics.pstdev(_bootstrap(pooled))
    from_bootstrap = math.sqrt(2) * se * math.sqrt(len(baselines))
    from_repeats = math.sqrt(2) * statistics.stdev(scores) if len(scores) > 1 else 0.0
    repeated = from_repeats > TINY
    sd_null = from_repeats if repeated else from_bootstrap
    return Calibration(
        method="repeated" if repeated else "bootstrap",
        delta=rounded(delta_z * sd_null),
        sd_null=rounded(sd_null),
        se_bootstrap=rounded(se),
        sd_null_bootstrap=rounded(from_bootstrap),
        scores=scores,
    )


def _bootstrap(pooled: Sequence[Sequence[Trial]]) -> list[float]:
    """Score resamples: in each, every task draws as many of its own trials as it has."""
    draws = random.Random(BOOTSTRAP_SEED)  # noqa: S311
    return [
        _score([runs[draws.randrange(len(runs))] for runs in pooled for _ in runs])
        for _ in range(BOOTSTRAP_REPETITIONS)
    ]


def _score(trials: Sequence[Trial]) -> float:
    score = weighted_score(trials)
    if score is None:
        raise ValueError("calibration needs the weight of every trial, and one above 0 in a draw")
    return score


def _repeats(baselines: Sequence[Trials]) -> int:
    """Return the one number of trials per task; refuse evaluations that differ."""
    if not baselines or not baselines[0]:
        raise ValueError("calibration needs an evaluation of at least one task")
    numbers = {len(runs) for one in baselines for runs in one.values()}
    if len(numbers) != 1 or 0 in numbers:
        raise ValueError(f"every task needs the same number of trials, found {sorted(numbers)}")
    if any(set(one) != set(baselines[0]) for one in baselines):
        raise ValueError("the evaluations of the baseline differ in their tasks")
    return numbers.pop()
