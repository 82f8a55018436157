"""How much the trials without a score could change the result.

Missing trials are first all taken as worst for the contrast, then all as best (Manski's bounds).
The interval moves along with the estimate, to either end; a decision must hold on the whole
stretch. Widths stay those of the observed pairs, because imputed values are not observations.
So a further unscored trial can only stretch the envelope, never sharpen a decision; filling in
the values and resampling them would not have that property.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from xgent_evolve.measure.comparison import Interval
from xgent_evolve.measure.outcomes import CAUSES, Cause, Row, Unscored
from xgent_evolve.measure.pairing import Contrast, Pairing, weighted_mean


def bounds(pairing: Pairing) -> Interval:
    """Return the estimate with all missing trials as worst and as best.

    Groups and cases without a pair take part here. The bounds include the estimate itself, also
    when the unpaired cases' known halves point away from it. Needs at least one case.
    """
    low = _mean_of_groups(pairing, [[case.low for case in g.cases] for g in pairing.groups])
    high = _mean_of_groups(pairing, [[case.high for case in g.cases] for g in pairing.groups])
    estimate = pairing.estimate
    if estimate is None:
        return Interval(low, high)
    return Interval(min(low, estimate), max(high, estimate))


def envelope(
    interval: Interval, estimate: float, limits: Interval, *, limit: float = 1.0
) -> Interval:
    """Return `interval` stretched by the distance from the estimate to its bounds."""
    return Interval(
        max(-limit, interval.low - (estimate - limits.low)),
        min(limit, interval.high + (limits.high - estimate)),
    )


def causes(rows: Iterable[Row], contrast: Contrast, missing: int) -> tuple[tuple[Cause, int], ...]:
    """Return the missing trials of the contrast's conditions by cause, absent causes left out.

    `missing` is their total; those without a row were not run.
    """
    names = {name for name, _ in contrast}
    counted: Counter[Cause] = Counter()
    for row in rows:
        if row.condition in names and isinstance(row.outcome, Unscored):
            counted[row.outcome.cause] += 1
    counted["not_run"] += missing - counted.total()
    return tuple((cause, counted[cause]) for cause in CAUSES if counted[cause])


def _mean_of_groups(pairing: Pairing, values: Sequence[Sequence[float]]) -> float:
    means = [weighted_mean([(value, 1.0) for value in group]) for group in values]
    return weighted_mean(
        [(mean, group.weight) for mean, group in zip(means, pairing.groups, strict=True)]
    )
