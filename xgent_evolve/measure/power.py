"""How many more groups would decide, by a normal approximation.

It assumes that the estimate and the spread stay as they are, so it is an order of magnitude for
planning, not a promise; it never takes part in a decision.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from xgent_evolve.measure.pairing import TINY

_MOST = 10_000
"""Beyond this the honest answer is that the difference is too small to find."""


def more_groups(
    *,
    estimate: float,
    standard_error: float,
    groups: int,
    required: int,
    gain: float,
    confidence: float,
) -> int | None:
    """Return about how many further groups would put the interval on one side of `gain`.

    At least enough to reach `required`, and at least 1. None when it cannot be computed: no
    spread, an estimate on the threshold, or more than 10,000 groups.
    """
    distance = abs(estimate - gain)
    if standard_error <= TINY or distance <= TINY:
        return None
    reach = NormalDist().inv_cdf((1 + confidence) / 2) * standard_error * math.sqrt(groups)
    needed = (reach / distance) ** 2
    if needed > _MOST:
        return None
    return max(1, math.ceil(needed) - groups, required - groups)
