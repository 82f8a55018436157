"""Which candidate of a round becomes the incumbent.

All candidates are judged against the same incumbent and the same best score, after all of them are
measured. A candidate passes the floor, then the price of its cost, then the guards. Among those
that pass the highest score wins, and the earliest of equals; cost never breaks a tie.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from xgent_evolve.spec.strategies import Rrsi
from xgent_evolve.strategies.rrsi.labels import STRUCTURAL
from xgent_evolve.strategies.tolerance import exceeds, reaches

type Unmeasured = Literal["no_proposal", "critic_reject", "smoke_fail", "eval_invalid"]
"""Why a candidate has no measurement: nothing usable was proposed; the critic refused it; it failed
the smoke; its measurement is invalid."""
type FailedCheck = Literal["floor", "cost_rule", "guard"] | Unmeasured
type Branch = Literal["gate", "floor", "above_noise", "within_band"]
"""Which rule was asked last: none, for want of a measurement; the floor; the price of a gain above
the band; the weighted rule inside of it."""
type Outcome = Literal["ACCEPTED", "LOST", "REJECTED"] | Unmeasured
"""LOST passed every rule and was beaten by another candidate."""


@dataclass(frozen=True, slots=True)
class Guard:
    """How far a metric's mean may move from the incumbent's. Reaching a limit is allowed."""

    metric: str
    max_drop: float | None = None
    """Absolute; None bounds no drop."""
    max_rise: float | None = None
    """Absolute; None bounds no rise."""


@dataclass(frozen=True, slots=True)
class SelectionRule:
    """The numbers of the rule."""

    delta: float
    """Noise band of the score, given or calibrated."""
    beta0: float
    beta1: float
    w_s: float
    w_c: float
    w_n: float
    guards: tuple[Guard, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that turn the rule around."""
        for name in ("delta", "beta0", "beta1", "w_s", "w_c", "w_n"):
            value: float = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and at least 0, found {value!r}")

    @classmethod
    def of(cls, settings: Rrsi, delta: float, guards: Iterable[Guard] = ()) -> Self:
        """Return the rule of a JobSpec's settings and the band in force."""
        return cls(
            delta=delta,
            beta0=float(settings.beta0),
            beta1=float(settings.beta1),
            w_s=float(settings.w_s),
            w_c=float(settings.w_c),
            w_n=float(settings.w_n),
            guards=tuple(guards),
        )


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the search stands. Its scores and costs are stored ones: nothing is measured anew."""

    score: float
    """Of the incumbent."""
    cost: float
    """Of the incumbent: mean tokens of a trial, above 0."""
    best_score: float
    """Highest score among accepted versions, the baseline included."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Means of the incumbent's metrics, for the guards."""

    def __post_init__(self) -> None:
        """Refuse an incumbent whose relative cost would be undefined."""
        if not (math.isfinite(self.cost) and self.cost > 0):
            raise ValueError(f"the incumbent's cost must be above 0, found {self.cost!r}")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A measured candidate."""

    variant: str
    score: float
    cost: float | None
    """Mean tokens of a trial; None when usage is incomplete, which makes it invalid."""
    components: tuple[str, ...]
    """Normalised labels of its edits."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True, slots=True)
class Gated:
    """A candidate without a measurement that counts."""

    variant: str
    reason: Unmeasured


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the rule says of one candidate. Numbers are None where they were not needed or known."""

    variant: str
    branch: Branch
    outcome: Outcome
    failed_check: FailedCheck | None
    """None when the candidate passed."""
    delta_score: float | None = None
    delta_cost: float | None = None
    """Relative to the incumbent's cost."""
    novelty: int | None = None
    cost_allowance: float | None = None
    """Relative cost that the gain buys (above the band)."""
    shaped_gain: float | None = None
    """Weighted gain, which must be above 0 (inside the band)."""
    violated: tuple[str, ...] = ()
    """Metrics whose guard failed."""

    @property
    def admissible(self) -> bool:
        """Whether it may become the incumbent."""
        return self.failed_check is None


@dataclass(frozen=True, slots=True)
class Selection:
    """What a round came to."""

    winner: str | None
    """Variant of the new incumbent; None keeps the present one."""
    standing: Standing
    judgements: tuple[Judgement, ...]
    """In the order of the candidates."""


def select(
    rule: SelectionRule,
    standing: Standing,
    candidates: Sequence[Candidate | Gated],
    won: Collection[str] = (),
) -> Selection:
    """Judge a round's candidates and return the next standing.

    `won` are the components of edits that won in earlier rounds. The best score never falls; the
    incumbent's score may, inside the band. Raises ValueError when a variant occurs twice, or when
    the incumbent lacks a guarded metric.
    """
    variants = [candidate.variant for candidate in candidates]
    if len(set(variants)) < len(variants):
        raise ValueError(f"variants of a round must differ, found {variants}")
    for guard in rule.guards:
        if guard.metric not in standing.metrics:
            raise ValueError(f"the incumbent has no metric {guard.metric}")
    judgements = [judge(rule, standing, candidate, won) for candidate in candidates]
    admissible = [
        candidate
        for candidate, judgement in zip(candidates, judgements, strict=True)
        if isinstance(candidate, Candidate) and judgement.admissible
    ]
    if not admissible:
        return Selection(None, standing, tuple(judgements))
    top = max(candidate.score for candidate in admissible)
    winner = next(candidate for candidate in admissible if reaches(candidate.score, top))
    return Selection(
        winner.variant,
        Standing(
            score=winner.score,
            cost=_known(winner.cost),
            best_score=max(standing.best_score, winner.score),
            metrics=winner.metrics,
        ),
        tuple(_placed(judgement, winner.variant) for judgement in judgements),
    )


def judge(
    rule: SelectionRule,
    standing: Standing,
    candidate: Candidate | Gated,
    won: Collection[str] = (),
) -> Judgement:
    """Judge one candidate by itself; one that passes has the outcome ACCEPTED.

    Order: floor, price, guards. At equality the floor, the cost allowance and a guard pass, and a
    gain of exactly delta is inside the band, where a weighted gain of exactly 0 fails.
    """
    if isinstance(candidate, Gated):
        return _gated(candidate.variant, candidate.reason)
    if not _measured(rule, candidate):
        return _gated(candidate.variant, "eval_invalid")
    gain = candidate.score - standing.score
    rise = (_known(candidate.cost) - standing.cost) / standing.cost
    new = novelty(candidate.components, won)
    branch: Branch
    failed: FailedCheck | None = None
    allowance: float | None = None
    shaped: float | None = None
    violated: tuple[str, ...] = ()
    if not reaches(candidate.score, standing.best_score - rule.delta):
        branch, failed = "floor", "floor"
    elif exceeds(gain, rule.delta):
        branch = "above_noise"
        allowance = rule.beta0 + rule.beta1 * gain
        failed = None if reaches(allowance, rise) else "cost_rule"
    else:
        branch = "within_band"
        shaped = math.fsum((rule.w_s * gain, -rule.w_c * rise, rule.w_n * new))
        failed = None if exceeds(shaped, 0) else "cost_rule"
    if failed is None:
        violated = _violated(rule.guards, standing.metrics, candidate.metrics)
        failed = "guard" if violated else None
    return Judgement(
        variant=candidate.variant,
        branch=branch,
        outcome="REJECTED" if failed else "ACCEPTED",
        failed_check=failed,
        delta_score=gain,
        delta_cost=rise,
        novelty=new,
        cost_allowance=allowance,
        shaped_gain=shaped,
        violated=violated,
    )


def novelty(components: Iterable[str], won: Collection[str]) -> int:
    """Count the structural types among `components` that no earlier winning edit had."""
    return len((set(components) & STRUCTURAL) - set(won))


def _measured(rule: SelectionRule, candidate: Candidate) -> bool:
    """Say whether the candidate has everything that the rule reads."""
    known = candidate.cost is not None and math.isfinite(candidate.cost) and candidate.cost > 0
    return known and all(guard.metric in candidate.metrics for guard in rule.guards)


def _violated(
    guards: Iterable[Guard], before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[str, ...]:
    def holds(guard: Guard) -> bool:
        change = after[guard.metric] - before[guard.metric]
        drop = guard.max_drop is None or not exceeds(-change, guard.max_drop)
        return drop and (guard.max_rise is None or not exceeds(change, guard.max_rise))

    return tuple(guard.metric for guard in guards if not holds(guard))


def _gated(variant: str, reason: Unmeasured) -> Judgement:
    return Judgement(variant, "gate", reason, reason)


def _placed(judgement: Judgement, winner: str) -> Judgement:
    if not judgement.admissible or judgement.variant == winner:
        return judgement
    return replace(judgement, outcome="LOST")


def _known(cost: float | None) -> float:
    if cost is None:
        raise ValueError("a candidate without a cost cannot be judged")
    return cost
