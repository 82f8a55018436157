"""What the baseline's own trials say about the study before a candidate is paid for (H8). Pure.

A text that solves everything already leaves nothing to gain, and no candidate could be kept. How
much two measurements of one and the same text would differ by chance is told beside it: repeats of
a case under one text are an A/A comparison that was paid for anyway.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.measure.missing import bounds
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.measure.pairing import TINY, Cell, Pairing, pair
from xgent_evolve.measure.rounding import rounded
from xgent_evolve.spec.parts import Measurement

_FEWEST = 2
"""Scored repeats of every case that the noise can be told from."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What is known about a text from its own trials."""

    text: str
    """The condition."""
    mean: float | None
    """Weighted mean of the groups; None without a score."""
    headroom: float | None
    """The largest mean difference that a successor could show, unscored trials counted for it."""
    generation_noise: float | None
    """Standard deviation by which two measurements of this one text differ; None when a case has
    fewer than two scored repeats."""
    paired_groups: int
    """Groups with a score."""
    required_groups: int
    proceed: bool
    """Whether a candidate could be kept at all."""
    reason: Literal["headroom_absent", "baseline_unknown"] | None
    """Why not."""


def diagnose(
    rows: Sequence[Row], *, text: str, measurement: Measurement, required_groups: int
) -> Diagnosis:
    """Return what the rows of condition `text` say; rows of other conditions are ignored.

    Raises:
        ValueError: as `pairing.pair`.

    """
    own = [row for row in rows if row.condition == text]
    found = pair(own, ((text, 1),), weights=measurement.weights, repeats=measurement.repeats)
    mean = found.estimate
    headroom = None if mean is None else 1.0 - bounds(found).low
    reason: Literal["headroom_absent", "baseline_unknown"] | None = None
    if headroom is None:
        reason = "baseline_unknown"
    elif headroom <= float(measurement.min_gain) + TINY:
        reason = "headroom_absent"
    return Diagnosis(
        text=text,
        mean=rounded(mean),
        headroom=rounded(headroom),
        generation_noise=rounded(_noise(found)),
        paired_groups=len(found.paired_groups),
        required_groups=required_groups,
        proceed=reason is None,
        reason=reason,
    )


def _noise(found: Pairing) -> float | None:
    """Return the standard deviation of a difference between two measurements of one text."""
    total, variance = 0.0, 0.0
    for group in found.groups:
        parts = [_mean_variance(case.cells[0]) for case in group.cases]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        variance += group.weight**2 * math.fsum(known) / len(known) ** 2
        total += group.weight
    return math.sqrt(2 * variance) / total if total else None


def _mean_variance(cell: Cell) -> float | None:
    """Return the variance of a case's mean, from its repeats of 0 or 1."""
    if cell.known < _FEWEST:
        return None
    mean = cell.total / cell.known
    return mean * (1 - mean) / (cell.known - 1)
