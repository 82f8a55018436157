"""Who may become a parent: versions that are best on some case and not covered by others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from xgent_evolve.strategies.tolerance import exceeds, reaches

type Scores = Mapping[str, Sequence[float]]
"""Scores of every version by its id, in the order in which they joined the pool; one for each
validation case, in the same order."""
type Front = tuple[str, ...]
"""The versions with the best score on one case, in the order of the pool."""

_KEY_DIGITS = 12


def mean(scores: Sequence[float]) -> float:
    """Return the mean of scores, the same whatever their order."""
    return math.fsum(scores) / len(scores)


def best_version(pool: Scores) -> str:
    """Return the version with the highest mean, the earliest of equals."""
    names = iter(pool)
    best = next(names)
    for name in names:
        if exceeds(mean(pool[name]), mean(pool[best])):
            best = name
    return best


def fronts(pool: Scores) -> list[Front]:
    """Return the front of every case; where all fail, all are on it."""
    return [
        tuple(name for name, score in zip(pool, scores, strict=True) if reaches(score, max(scores)))
        for scores in zip(*pool.values(), strict=True)
    ]


def covered(pool: Scores) -> list[str]:
    """Return the versions that others cover, in the order in which they are taken out.

    From the lowest mean up, equals by id, the first one goes whose every front has another version
    left, not the same one everywhere; then the look begins anew, so that of versions that cover
    each other one stays.
    """
    order = sorted(pool, key=lambda name: (round(mean(pool[name]), _KEY_DIGITS), name))
    places = {name: [front for front in fronts(pool) if name in front] for name in order}
    removed: list[str] = []
    while True:
        gone = next(
            (
                name
                for name in order
                if name not in removed
                and places[name]
                and all(
                    any(other != name and other not in removed for other in front)
                    for front in places[name]
                )
            ),
            None,
        )
        if gone is None:
            return removed
        removed.append(gone)


def parent_list(pool: Scores) -> list[str]:
    """Return every version once for each front on which it is left: an even draw is weighted."""
    removed = covered(pool)
    return [name for front in fronts(pool) for name in front if name not in removed]
