"""What one measurement of a version says: score, cost, and whether it may be used at all.

The score counts a failed trial as 0 and keeps it in the denominator. That differs from a comparison
(`xgent_evolve.measure`), which leaves an unscored trial out and bounds what it could have been.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from xgent_evolve.strategies.tolerance import exceeds

type Fault = Literal[
    "too_many_missing", "incomplete_usage", "cost_not_positive", "metric_missing", "no_weight"
]
"""Why a measurement is invalid: more trials failed than allowed; the tokens of a trial are unknown;
the mean cost is not above 0; a trial lacks its weight; the weights sum to 0."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One run of one task."""

    reward: float | None
    """Between 0 and 1; None when the trial failed to yield one, which counts as 0."""
    tokens: float | None
    """All tokens of the run, cached ones and those of inner models included; None if unknown."""
    weight: float | None = 1.0
    """Weight in the score; None when the metric that weighs is missing."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Further measured values, which guards may bound."""

    def __post_init__(self) -> None:
        """Refuse what no measurement can be: NaN, infinities, values out of their range."""
        if self.reward is not None and not (math.isfinite(self.reward) and 0 <= self.reward <= 1):
            raise ValueError(f"reward must lie between 0 and 1, found {self.reward!r}")
        for name, value in (("tokens", self.tokens), ("weight", self.weight)):
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and at least 0, found {value!r}")
        for name, value in self.metrics.items():
            if not math.isfinite(value):
                raise ValueError(f"metric {name} must be finite, found {value!r}")

    @property
    def counted(self) -> float:
        """The reward, 0 for a failed trial."""
        return 0.0 if self.reward is None else self.reward


type Trials = Mapping[str, Sequence[Trial]]
"""Trials by task, in the order of the tasks; every task has the same number of them."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One measurement of one version on all tasks."""

    score: float
    """Weighted mean of the rewards; 0 when the fault leaves no weights."""
    cost: float | None
    """Mean tokens of a trial; None when a trial's are unknown."""
    expected: int
    """Trials that count."""
    missing: int
    """Failed ones among them."""
    fault: Fault | None
    """Why it must not be used; None when it is valid."""


def aggregate(trials: Trials, repeats: int, invalid_missing_frac: float) -> Aggregate:
    """Return score, cost and validity of a measurement.

    The share of failed trials may reach `invalid_missing_frac`; above, the measurement is invalid.
    Tokens that are unknown never become 0 and are never left out of the mean: the version would
    look cheap. Raises ValueError when a task does not have exactly `repeats` trials.
    """
    for task, runs in trials.items():
        if len(runs) != repeats:
            raise ValueError(f"task {task} has {len(runs)} trials, expected {repeats}")
    runs = [trial for task in trials.values() for trial in task]
    if not runs:
        raise ValueError("a measurement needs at least one trial")
    missing = sum(trial.reward is None for trial in runs)
    score = weighted_score(runs)
    cost = _cost(runs)
    fault: Fault | None = None
    if exceeds(missing / len(runs), invalid_missing_frac):
        fault = "too_many_missing"
    elif any(trial.weight is None for trial in runs):
        fault = "metric_missing"
    elif score is None:
        fault = "no_weight"
    elif cost is None:
        fault = "incomplete_usage"
    elif cost <= 0:
        fault = "cost_not_positive"
    return Aggregate(score or 0.0, cost, len(runs), missing, fault)


def weighted_score(trials: Sequence[Trial]) -> float | None:
    """Return the weighted mean of the rewards; None when weights are missing or sum to 0."""
    weights = [trial.weight for trial in trials]
    known = [weight for weight in weights if weight is not None]
    total = math.fsum(known)
    if len(known) < len(weights) or total <= 0:
        return None
    pairs = zip(trials, known, strict=True)
    return math.fsum(trial.counted * weight for trial, weight in pairs) / total


def mean_reward(trials: Sequence[Trial]) -> float:
    """Return the plain mean of one task's rewards; failed trials count as 0."""
    return math.fsum(trial.counted for trial in trials) / len(trials)


def mean_metric(trials: Trials, name: str) -> float | None:
    """Return the plain mean of a metric over all trials; None when a trial lacks it."""
    runs = [trial for task in trials.values() for trial in task]
    values = [trial.metrics[name] for trial in runs if name in trial.metrics]
    return math.fsum(values) / len(values) if values and len(values) == len(runs) else None


def _cost(trials: Sequence[Trial]) -> float | None:
    known = [trial.tokens for trial in trials if trial.tokens is not None]
    return math.fsum(known) / len(known) if len(known) == len(trials) else None
