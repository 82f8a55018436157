"""The ledger of edits, the only feedback of RRSI: what was tried, what it yielded, what to remove.

An edit of a candidate that was never measured keeps its reason in the ledger, and enters neither
the tried components nor the yields. The edits of one candidate share its measurement, so neither a
yield nor an attribution is a causal claim about one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xgent_evolve.strategies.rrsi.aggregate import Trials, mean_reward
from xgent_evolve.strategies.rrsi.labels import COMPONENTS, Component
from xgent_evolve.strategies.rrsi.selection import Outcome
from xgent_evolve.strategies.tolerance import exceeds, reaches

LISTED_REGRESSIONS = 12
"""Most unpredicted regressions that one edit's record lists."""


@dataclass(frozen=True, slots=True)
class EditRecord:
    """One edit of one candidate, once its round is decided."""

    round: int
    """Counted from 0."""
    id: str
    """The edit's id within its candidate."""
    component: Component
    """Normalised label."""
    outcome: Outcome
    """Of the candidate."""
    delta_score: float | None
    """Candidate less incumbent; None when the candidate was not measured."""

    @property
    def accepted(self) -> bool:
        """Whether the candidate became the incumbent."""
        return self.outcome == "ACCEPTED"


@dataclass(frozen=True, slots=True)
class PruneAdvice:
    """A component without a recent gain. Advice: removing it is a proposal like any other."""

    component: Component
    accepted: tuple[EditRecord, ...]
    """Its accepted edits, oldest first: what could be removed; empty when it only ever lost."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one edit claims to move."""

    edit: str
    predicted_affected: tuple[str, ...]
    """Ids of tasks."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """How one edit's prediction came out."""

    edit: str
    known: int
    """Predicted tasks that were measured on both sides."""
    hits: tuple[str, ...]
    """Those whose mean rose."""
    hit_rate: float | None
    """Hits per known task, two decimals; None when no predicted task is known."""
    unpredicted_regressions: tuple[str, ...]
    """Other tasks that lost at least one trial's worth, at most LISTED_REGRESSIONS."""


def tried(records: Iterable[EditRecord]) -> frozenset[Component]:
    """Return the components with at least one measured edit."""
    return frozenset(record.component for record in records if record.delta_score is not None)


def untried(records: Iterable[EditRecord]) -> tuple[Component, ...]:
    """Return the other components, in the order of COMPONENTS."""
    known = tried(records)
    return tuple(component for component in COMPONENTS if component not in known)


def won_before(records: Iterable[EditRecord], t: int) -> frozenset[Component]:
    """Return the components of edits that won in rounds before `t`, never in `t` itself."""
    return frozenset(record.component for record in records if record.accepted and record.round < t)


def recent_yield(
    records: Iterable[EditRecord], component: Component, t: int, n_prune: int
) -> float:
    """Return the best change of score of a component's measured edits in the last rounds.

    Rounds `t` - `n_prune` to `t` count, both included; minus infinity when there are none.
    """
    gains = (
        record.delta_score
        for record in records
        if record.component == component
        and record.delta_score is not None
        and 0 <= t - record.round <= n_prune
    )
    return max(gains, default=-math.inf)


def prune_advice(records: Sequence[EditRecord], t: int, n_prune: int) -> tuple[PruneAdvice, ...]:
    """Return the tried components without a gain in the last rounds, sorted by name."""
    return tuple(
        PruneAdvice(component, tuple(r for r in records if r.component == component and r.accepted))
        for component in sorted(tried(records))
        if not exceeds(recent_yield(records, component, t, n_prune), 0)
    )


def attribute(
    predictions: Iterable[Prediction], incumbent: Trials, candidate: Trials, repeats: int
) -> tuple[Attribution, ...]:
    """Hold the predictions of a candidate's edits against the means of every task.

    A regression is a loss of at least 1 / `repeats`, one trial's worth. Tasks that were not
    measured on both sides are no part of a hit rate.
    """
    change = {
        task: mean_reward(candidate[task]) - mean_reward(incumbent[task])
        for task in incumbent
        if task in candidate
    }
    fallen = [task for task, by in change.items() if reaches(-by, 1 / repeats)]
    return tuple(_attributed(prediction, change, fallen) for prediction in predictions)


def _attributed(
    prediction: Prediction, change: dict[str, float], fallen: Sequence[str]
) -> Attribution:
    known = [task for task in dict.fromkeys(prediction.predicted_affected) if task in change]
    hits = tuple(task for task in known if exceeds(change[task], 0))
    unpredicted = [task for task in fallen if task not in known]
    return Attribution(
        edit=prediction.edit,
        known=len(known),
        hits=hits,
        hit_rate=round(len(hits) / len(known), 2) if known else None,
        unpredicted_regressions=tuple(unpredicted[:LISTED_REGRESSIONS]),
    )
