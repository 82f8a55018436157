"""How many edits a round allows, when the search has stalled, and who must explore then."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from xgent_evolve.strategies.tolerance import exceeds


def edit_budget(t: int, *, rounds: int, b_min: int, b_max: int) -> int:
    """Return how many independent mechanisms a candidate of round `t` may change.

    ceil(b_min + (b_max - b_min) * (1 + cos(pi * t / rounds)) / 2) with t clamped to [0, rounds].
    Rounds count from 0 to `rounds` - 1, so that `b_min` itself is reached only behind the last one,
    unless it equals `b_max`. Without rounds it is `b_max`.
    """
    if rounds <= 0:
        return b_max
    progress = min(max(t, 0), rounds) / rounds
    budget = b_min + (b_max - b_min) * (1 + math.cos(math.pi * progress)) / 2
    # A cosine that misses -0.5 by one bit must not buy a further edit.
    return math.ceil(round(budget, 9))


def stalled(trajectory: Sequence[float], t: int, *, window: int, delta: float) -> bool:
    """Say whether the incumbent gained no more than `delta` in the `window` rounds before `t`.

    `trajectory` has the incumbent's score at the start of every round. False in the first `window`
    rounds, and for a round that has not begun.
    """
    if t < window or t >= len(trajectory):
        return False
    return not exceeds(trajectory[t] - trajectory[t - window], delta)


def reserved_slots(
    candidates: int, m_draft: int, *, stalled: bool, untried: Collection[str]
) -> tuple[int, ...]:
    """Return which candidates of a round, counted from 0, must touch an untried component.

    The last `m_draft` ones of a stalled round; none when every component was tried.
    """
    if not (stalled and untried):
        return ()
    return tuple(range(max(candidates - m_draft, 0), candidates))


def explores(components: Collection[str], untried: Collection[str]) -> bool:
    """Say whether a reserved candidate does what it must: touch an untried component.

    To be asked of labels that its edits were given by `labels.normalise`, not of those it claims.
    """
    return not set(components).isdisjoint(untried)
