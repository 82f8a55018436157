"""Small pictures made of characters, at most 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.report.words import points

_HALF = 30
"""Columns on each side of zero; one column is 100 / _HALF points."""


def interval_plot(
    estimate: float, low: float, high: float, *, min_gain: float, limit: float = 1.0
) -> list[str]:
    """Draw an interval on the scale from -limit to +limit.

    `[` and `]` are the interval's ends, `o` the estimate, `|` zero and `:` the smallest gain
    worth having. The ends win where two marks fall together, so an interval that touches zero
    hides the zero rather than itself.
    """
    marks = ["."] * (2 * _HALF + 1)
    for column in range(_column(low, limit), _column(high, limit) + 1):
        marks[column] = "="
    for value, mark in ((min_gain, ":"), (0.0, "|"), (estimate, "o"), (low, "["), (high, "]")):
        marks[_column(value, limit)] = mark
    edge = f"{limit * 100:.0f}"
    scale = f"{'-' + edge:<{_HALF}}0{'+' + edge:>{_HALF}}"
    return [scale, "".join(marks)]


def difference_bars(rows: Sequence[tuple[str, float | None]]) -> list[str]:
    """Draw one bar for each (name, difference), to the left or to the right of zero.

    A difference that is not 0 gets at least one mark; one that is unknown says `unpaired`.
    """
    width = min(24, max((len(name) for name, _ in rows), default=0))
    return [f"{_clip(name, width):<{width}} {_bar(difference)}" for name, difference in rows]


def _bar(difference: float | None) -> str:
    half = _HALF // 2 + 5
    if difference is None:
        return f"{'':>7} {'':>{half}}| unpaired"
    length = min(half, round(abs(difference) * half))
    if difference:
        length = max(1, length)
    bar = "█" * length
    value = points(difference)
    if difference < 0:
        return f"{value:>7} {bar:>{half}}|"
    return f"{value:>7} {'':>{half}}|{bar}"


def _column(value: float, limit: float) -> int:
    share = max(-1.0, min(1.0, value / limit))
    return _HALF + round(share * _HALF)


def _clip(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"
