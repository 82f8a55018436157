"""From rows to group differences: repeats, then cases, then independent source groups.

Repeats are averaged per case and condition, conditions are contrasted within a case, and cases
are averaged within their group; the groups are what the bootstrap resamples (requirement G1).
Repeats of one case and cases of one origin are never taken for independent facts.

A contrast is a sum of conditions with coefficients +1 or -1. Candidate minus baseline is one;
an interaction is another; a single condition with +1 is its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from xgent_evolve.measure.outcomes import Row, Scored

type Contrast = tuple[tuple[str, int], ...]
"""Conditions with their coefficients, +1 or -1."""

TINY = 1e-12
"""Two numbers closer than this are equal."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One case under one condition."""

    total: float
    """Sum of the known values."""
    known: int
    missing: int
    """Trials that the protocol asks for and that have no value."""

    @property
    def mean(self) -> float | None:
        """Mean of the known values; None when there is none."""
        return self.total / self.known if self.known else None

    def filled(self, value: float) -> float:
        """Return the mean if every missing trial had `value`."""
        return (self.total + value * self.missing) / (self.known + self.missing)


@dataclass(frozen=True, slots=True)
class PairedCase:
    """One case and its contrast."""

    case: str
    cells: tuple[Cell, ...]
    """In the order of the contrast."""
    difference: float | None
    """None when a cell has no known value."""
    low: float
    """The contrast if every missing trial counted against it."""
    high: float
    """The contrast if every missing trial counted for it."""


@dataclass(frozen=True, slots=True)
class PairedGroup:
    """One independent source group."""

    group: str
    weight: float
    cases: tuple[PairedCase, ...]
    """By name; paired or not."""

    @property
    def paired(self) -> int:
        """Number of cases with a difference."""
        return sum(case.difference is not None for case in self.cases)

    @property
    def difference(self) -> float | None:
        """Mean difference of the paired cases; None without one."""
        known = [case.difference for case in self.cases if case.difference is not None]
        return math.fsum(known) / len(known) if known else None


@dataclass(frozen=True, slots=True)
class Pairing:
    """All groups, by name."""

    groups: tuple[PairedGroup, ...]

    @property
    def paired_groups(self) -> tuple[tuple[float, float], ...]:
        """Difference and weight of every group that has a difference."""
        return tuple(
            (group.difference, group.weight)
            for group in self.groups
            if group.difference is not None
        )

    @property
    def estimate(self) -> float | None:
        """Weighted mean of the group differences; None without one."""
        pairs = self.paired_groups
        return weighted_mean(pairs) if pairs else None

    @property
    def cases(self) -> tuple[PairedCase, ...]:
        """Every case, by group and name."""
        return tuple(case for group in self.groups for case in group.cases)

    @property
    def unpaired_cases(self) -> int:
        """Number of cases without a difference."""
        return sum(case.difference is None for case in self.cases)


def weighted_mean(pairs: Sequence[tuple[float, float]]) -> float:
    """Return the mean of (value, weight) pairs; at least one, weights positive."""
    return math.fsum(value * weight for value, weight in pairs) / math.fsum(
        weight for _, weight in pairs
    )


def score(row: Row) -> float | None:
    """Return the row's score; None when it is unscored."""
    return row.outcome.value if isinstance(row.outcome, Scored) else None


def pair(
    rows: Sequence[Row],
    contrast: Contrast,
    *,
    weights: Mapping[str, Decimal],
    repeats: int,
    value: Callable[[Row], float | None] = score,
) -> Pairing:
    """Average repeats, contrast the conditions within each case, and collect cases in groups.

    Every case of `rows` takes part, whatever its condition: a case without a row under one of
    the contrast's conditions is unpaired, its trials there are missing. `repeats` is how many
    trials each case and condition should have; a group without a weight weighs 1.

    Raises:
        ValueError: a trial appears twice, or a case belongs to two groups.

    """
    _require_consistent(rows)
    values: dict[tuple[str, str], list[float | None]] = {}
    for row in rows:
        values.setdefault((row.case, row.condition), []).append(value(row))
    members = sorted({(row.group, row.case) for row in rows})
    groups: dict[str, list[PairedCase]] = {}
    for group, case in members:
        cells = tuple(_cell(values.get((case, name), []), repeats) for name, _ in contrast)
        groups.setdefault(group, []).append(_paired_case(case, cells, contrast))
    return Pairing(
        tuple(
            PairedGroup(group, float(weights.get(group, 1)), tuple(cases))
            for group, cases in groups.items()
        )
    )


def _cell(values: Sequence[float | None], repeats: int) -> Cell:
    known = [value for value in values if value is not None]
    return Cell(math.fsum(known), len(known), max(repeats, len(values)) - len(known))


def _paired_case(case: str, cells: tuple[Cell, ...], contrast: Contrast) -> PairedCase:
    signs = [sign for _, sign in contrast]
    means = [cell.mean for cell in cells]
    known = [sign * mean for sign, mean in zip(signs, means, strict=True) if mean is not None]
    return PairedCase(
        case=case,
        cells=cells,
        difference=math.fsum(known) if len(known) == len(cells) else None,
        low=_filled(cells, signs, worst=True),
        high=_filled(cells, signs, worst=False),
    )


def _filled(cells: Sequence[Cell], signs: Sequence[int], *, worst: bool) -> float:
    return math.fsum(
        sign * cell.filled(0.0 if (sign > 0) is worst else 1.0)
        for cell, sign in zip(cells, signs, strict=True)
    )


def _require_consistent(rows: Sequence[Row]) -> None:
    seen: set[tuple[str, str, int]] = set()
    group_of: dict[str, str] = {}
    for row in rows:
        trial = (row.case, row.condition, row.repeat)
        if trial in seen:
            raise ValueError(f"trial appears twice: case, condition, repeat = {trial}")
        seen.add(trial)
        if group_of.setdefault(row.case, row.group) != row.group:
            raise ValueError(f"case {row.case} is in groups {group_of[row.case]} and {row.group}")
