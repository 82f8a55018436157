"""Whether two texts do more together than apart: the interaction of four crossed conditions.

It is an estimate with an interval and never a decision; a claim about it needs the four
conditions declared beforehand (requirement B10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xgent_evolve.measure.comparison import Interval
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.measure.pairing import Contrast, pair
from xgent_evolve.measure.rounding import rounded, rounded_interval
from xgent_evolve.spec.models_v1 import Measurement


@dataclass(frozen=True, slots=True)
class Crossing:
    """Four conditions that cross two factors: the skill and the AGENTS.md text."""

    neither: str
    skill: str
    agents: str
    both: str


@dataclass(frozen=True, slots=True)
class Interaction:
    """(both - agents) - (skill - neither), between -2 and 2."""

    crossing: Crossing
    estimate: float | None
    """None when no case is scored under all four conditions."""
    interval: Interval | None
    """None when it cannot be computed; see `Comparison.interval`."""
    groups: int
    """Groups with a case that is scored under all four conditions."""
    cases: int
    """Cases that are scored under all four conditions."""
    unpaired_cases: int
    """Cases that are not scored under at least one of the four."""


def interact(rows: Sequence[Row], crossing: Crossing, measurement: Measurement) -> Interaction:
    """Return the interaction of the crossed conditions over `rows` (see `compare`).

    Raises:
        ValueError: a trial appears twice, or a case belongs to two groups.

    """
    # numpy loads only when there is something to resample; reports import the record alone.
    from xgent_evolve.measure.bootstrap import resample

    contrast: Contrast = (
        (crossing.both, 1),
        (crossing.agents, -1),
        (crossing.skill, -1),
        (crossing.neither, 1),
    )
    pairing = pair(rows, contrast, weights=measurement.weights, repeats=measurement.repeats)
    paired = pairing.paired_groups
    found = resample(
        paired, confidence=float(measurement.confidence), seed=measurement.seed, limit=2.0
    )
    return Interaction(
        crossing=crossing,
        estimate=rounded(pairing.estimate),
        interval=rounded_interval(found.interval),
        groups=len(paired),
        cases=len(pairing.cases) - pairing.unpaired_cases,
        unpaired_cases=pairing.unpaired_cases,
    )
