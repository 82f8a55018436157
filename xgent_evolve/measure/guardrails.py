"""Floors: what the candidate must not fall below, with the unknown kept apart.

A floor is held when it is held even if every unknown value were 0, and regressed when it is
missed even if every unknown value were 1. Anything else is unknown, and so is a check that was
never observed. `task_contract` alone may be read from the reward (requirement F2).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from xgent_evolve.measure.comparison import GuardrailResult, GuardrailStatus
from xgent_evolve.measure.missing import bounds
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.measure.pairing import TINY, pair, score
from xgent_evolve.measure.rounding import rounded
from xgent_evolve.spec.models_v1 import Guardrail

TASK_CONTRACT = "task_contract"
"""The guardrail that the reward itself answers."""


def check_guardrail(
    rows: Sequence[Row],
    guardrail: Guardrail,
    *,
    baseline: str,
    candidate: str,
    weights: Mapping[str, Decimal],
    repeats: int,
) -> GuardrailResult:
    """Return what is known about one floor; means are formed like the estimate."""
    value = _reader(guardrail.name)
    measured = pair(rows, ((candidate, 1),), weights=weights, repeats=repeats, value=value)
    before = pair(rows, ((baseline, 1),), weights=weights, repeats=repeats, value=value)
    known = sum(cell.known for case in measured.cases for cell in case.cells)
    limits = bounds(measured)
    floor = float(guardrail.floor)
    return GuardrailResult(
        name=guardrail.name,
        floor=rounded(floor),
        status=_status(known, limits.low, limits.high, floor),
        baseline=rounded(before.estimate),
        candidate=rounded(measured.estimate),
        low=rounded(limits.low),
        high=rounded(limits.high),
        known=known,
        unknown=sum(cell.missing for case in measured.cases for cell in case.cells),
    )


def _reader(name: str) -> Callable[[Row], float | None]:
    def read(row: Row) -> float | None:
        observed = dict(row.checks).get(name)
        return score(row) if observed is None and name == TASK_CONTRACT else observed

    return read


def _status(known: int, low: float, high: float, floor: float) -> GuardrailStatus:
    if known == 0:
        return "unknown"
    if low >= floor - TINY:
        return "held"
    return "regressed" if high < floor - TINY else "unknown"
