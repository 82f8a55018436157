"""The one border at which results are rounded, so that reports are equal everywhere."""

from __future__ import annotations

from typing import overload

from xgent_evolve.measure.comparison import Interval

DECIMALS = 6
"""Decimals of every fraction in a report."""


@overload
def rounded(value: float) -> float: ...
@overload
def rounded(value: None) -> None: ...
@overload
def rounded(value: float | None) -> float | None: ...
def rounded(value: float | None) -> float | None:
    """Return `value` with six decimals and without a negative zero; None stays None."""
    # Adding 0.0 turns -0.0 into 0.0: the two print differently.
    return None if value is None else round(value, DECIMALS) + 0.0


def rounded_interval(interval: Interval | None) -> Interval | None:
    """Return `interval` with rounded ends; None stays None."""
    if interval is None:
        return None
    return Interval(rounded(interval.low), rounded(interval.high))
