"""How the published strategies compare: two numbers closer than 1e-12 are equal.

Scores are means of decimal fractions, and binary floats miss the boundaries of such rules:
0.8 - 0.1 is 0.7000000000000001. A rule that is meant to pass at equality passes here.
"""

from __future__ import annotations

from xgent_evolve.measure.pairing import TINY


def exceeds(value: float, limit: float) -> bool:
    """Say whether `value` is greater than `limit`, and not only by rounding."""
    return value > limit + TINY


def reaches(value: float, limit: float) -> bool:
    """Say whether `value` is at least `limit`, rounding aside."""
    return value >= limit - TINY
