"""Quantiles of Student's t distribution for whole degrees of freedom.

The distribution function has a finite series in that case (Abramowitz and Stegun 1964, 26.7.3
and 26.7.4), so a few lines do instead of a large dependency; the tests hold them against scipy.
"""

from __future__ import annotations

import math
from functools import lru_cache

_LARGE = 10_000
"""From here on the quantile is that of the normal distribution to six digits."""


@lru_cache(maxsize=256)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the `probability` quantile, rounded to 9 decimals so that it is equal everywhere.

    Raises:
        ValueError: `probability` is not in [0.5, 1) or `degrees` is below 1.

    """
    if not (0.5 <= probability < 1 and degrees >= 1):
        raise ValueError(f"no quantile for probability {probability}, degrees {degrees}")
    degrees = min(degrees, _LARGE)
    low, high = 0.0, math.pi / 2
    # Bisection over the angle atan(t / sqrt(degrees)), in which the series is written.
    for _ in range(64):
        middle = (low + high) / 2
        if (1 + _central(middle, degrees)) / 2 < probability:
            low = middle
        else:
            high = middle
    return round(math.sqrt(degrees) * math.tan((low + high) / 2), 9)


def _central(angle: float, degrees: int) -> float:
    """Return P(|T| <= sqrt(degrees) * tan(angle))."""
    cosine = math.cos(angle)
    odd = degrees % 2
    term, total = (cosine if odd else 1.0), 0.0
    for step in range(1 + odd, degrees, 2):
        total += term
        term *= step / (step + 1) * cosine * cosine
        if term < 1e-18 * total:
            break
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total
