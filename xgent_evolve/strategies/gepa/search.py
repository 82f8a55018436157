"""GEPA from top to bottom: reflect on a few cases, change one component, keep what is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from xgent_evolve.strategies.gepa.draws import Draws
from xgent_evolve.strategies.gepa.pareto import best_version, parent_list
from xgent_evolve.strategies.gepa.rules import COMPONENTS, CallBudget, improves, promotion
from xgent_evolve.strategies.strategy import Version

type Outcome = Literal[
    "reflection_rejected", "candidate_duplicate", "candidate_rejected", "candidate_accepted"
]
type Stop = Literal["max_iterations", "metric_budget"]


class BudgetTooSmallError(ValueError):
    """The budget covers not even the first measurement and the held-out cases."""


class HoldoutError(Exception):
    """A held-out case could not be evaluated; the search before it stands."""


class GepaStudy(Protocol):
    """A study as GEPA sees it; every answer is a recorded fact."""

    @property
    def baseline(self) -> Version:
        """The text that the search starts from."""
        ...

    async def evaluate(self, version: Version, cases: Sequence[str], seed: int) -> list[float]:
        """Return one score from 0 to 1 for each of the cases, in their order."""
        ...

    async def evaluate_holdout(
        self, version: Version, cases: Sequence[str], seed: int
    ) -> list[float]:
        """Return the scores of held-out cases. Raises HoldoutError."""
        ...

    async def reflect(
        self, iteration: int, parent: Version, component: str, cases: Sequence[str]
    ) -> Version | None:
        """Have one component changed; None when the answer may not be measured."""
        ...


@dataclass(frozen=True, slots=True)
class Splits:
    """Ids of the cases: what is reflected on, what chooses parents, what is held out."""

    feedback: tuple[str, ...]
    validation: tuple[str, ...]
    holdout: tuple[str, ...]
    """May be empty; then nothing is promoted."""

    def __post_init__(self) -> None:
        """Refuse empty splits, blank ids, and ids that are there twice."""
        if not self.feedback or not self.validation:
            raise ValueError("feedback and validation need a case each")
        names = [name.strip() for name in (*self.feedback, *self.validation, *self.holdout)]
        if not all(names) or len(set(names)) != len(names):
            raise ValueError("every case needs an id of its own")


@dataclass(frozen=True, slots=True)
class Rule:
    """Settings of the search; `spec.strategies.Gepa` has their meanings."""

    max_iterations: int
    max_metric_calls: int
    reflection_batch: int
    minimum_holdout_improvement: float = 0.0
    critical: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Member:
    """One version of the pool."""

    version: Version
    scores: tuple[float, ...]
    """On the validation cases."""
    next_component: int = 0


@dataclass(frozen=True, slots=True)
class Iteration:
    """One step and what became of it."""

    parent: Version
    component: str
    outcome: Outcome
    child: Version | None


@dataclass(frozen=True, slots=True)
class GepaEnd:
    """What a search came to."""

    best: Version
    pool: tuple[Member, ...]
    iterations: tuple[Iteration, ...]
    stop: Stop
    calls: int
    """Evaluated cases."""
    eligible: bool
    reason: str
    holdout_failed: bool = False


def checked(scores: Sequence[float], cases: Sequence[str]) -> tuple[float, ...]:
    """Return scores; ValueError unless there is one from 0 to 1 for each of the cases."""
    if len(scores) != len(cases):
        raise ValueError(f"{len(scores)} scores for {len(cases)} cases")
    for case, score in zip(cases, scores, strict=True):
        if not (math.isfinite(score) and 0 <= score <= 1):
            raise ValueError(f"the score of {case} is not between 0 and 1: {score!r}")
    return tuple(scores)


@dataclass(slots=True)
class _Pool:
    members: dict[str, Member] = field(default_factory=dict[str, Member])

    def add(self, member: Member) -> None:
        # Names of one length sort in the order of the pool.
        self.members[f"{len(self.members):06d}"] = member

    def scores(self) -> dict[str, tuple[float, ...]]:
        return {name: member.scores for name, member in self.members.items()}

    def holds(self, version: Version) -> bool:
        return any(item.version.content == version.content for item in self.members.values())


async def gepa(study: GepaStudy, splits: Splits, rule: Rule, draws: Draws) -> GepaEnd:
    """Search for a better text, one component at a time.

    Raises:
        BudgetTooSmallError: nothing was evaluated.
        Exception: whatever an evaluation or a reflection raises; there is no result then, and a
            replay goes on from the recorded facts.

    """
    feedback, validation = list(splits.feedback), splits.validation
    batch = min(rule.reflection_batch, len(feedback))
    budget = CallBudget(rule.max_metric_calls, batch, len(validation), len(splits.holdout))
    if not budget.can_start():
        raise BudgetTooSmallError("metric budget cannot cover validation and holdout")

    validation_seed = draws.validation_seed()
    pool, steps = _Pool(), list[Iteration]()
    first = await study.evaluate(study.baseline, validation, validation_seed)
    pool.add(Member(study.baseline, checked(first, validation)))
    used = len(validation)
    stop: Stop = "max_iterations"

    for iteration in range(rule.max_iterations):
        if not budget.can_step(used):
            stop = "metric_budget"
            break
        name = draws.parent(iteration, parent_list(pool.scores()))
        parent = pool.members[name]
        cases = draws.minibatch(iteration, feedback, batch)
        seed = draws.paired_seed(iteration)
        before = checked(await study.evaluate(parent.version, cases, seed), cases)
        used += batch

        # The pointer moves on whatever comes of it, so that no component starves the others.
        component = COMPONENTS[parent.next_component]
        advanced = (parent.next_component + 1) % len(COMPONENTS)
        pool.members[name] = replace(parent, next_component=advanced)

        child = await study.reflect(iteration, parent.version, component, cases)
        if child is None:
            outcome: Outcome = "reflection_rejected"
        elif pool.holds(child):
            outcome = "candidate_duplicate"
        else:
            after = checked(await study.evaluate(child, cases, seed), cases)
            used += batch
            outcome = "candidate_accepted" if improves(before, after) else "candidate_rejected"
        if child is not None and outcome == "candidate_accepted":
            scores = await study.evaluate(child, validation, validation_seed)
            used += len(validation)
            pool.add(Member(child, checked(scores, validation), advanced))
        steps.append(Iteration(parent.version, component, outcome, child))

    best = pool.members[best_version(pool.scores())].version
    end = GepaEnd(
        best, tuple(pool.members.values()), tuple(steps), stop, used, eligible=False, reason=""
    )
    return await _judged(study, splits.holdout, rule, draws, end)


async def _judged(
    study: GepaStudy, cases: tuple[str, ...], rule: Rule, draws: Draws, end: GepaEnd
) -> GepaEnd:
    """Return the end with its promotion; held-out cases are evaluated once, both with one seed."""
    changed = end.best != study.baseline
    sides: list[dict[str, float]] = []
    calls = end.calls
    if cases:
        seed = draws.holdout_seed()
        for version in [study.baseline, *([end.best] if changed else [])]:
            calls += len(cases)
            try:
                scores = await study.evaluate_holdout(version, cases, seed)
            except HoldoutError as error:
                return replace(end, calls=calls, reason=str(error), holdout_failed=True)
            sides.append(dict(zip(cases, checked(scores, cases), strict=True)))
    verdict = promotion(
        sides[0] if sides else {},
        (sides[-1] if sides else {}) if changed else None,
        minimum=rule.minimum_holdout_improvement,
        critical=rule.critical,
    )
    return replace(end, calls=calls, eligible=verdict.eligible, reason=verdict.reason)
