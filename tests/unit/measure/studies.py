"""Rows that the tests of the comparison share."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.outcomes import Row, Scored, Unscored
from xgent_evolve.spec.models_v1 import Guardrail, Measurement


def measurement(
    *,
    min_gain: str = "0",
    margin: str = "0.05",
    confidence: str = "0.95",
    min_groups: int = 6,
    repeats: int = 1,
    weights: dict[str, Decimal] | None = None,
) -> Measurement:
    """A frozen measurement with the given thresholds."""
    return Measurement(
        objective="task_success",
        weights=weights or {},
        min_gain=Decimal(min_gain),
        non_inferiority_margin=Decimal(margin),
        confidence=Decimal(confidence),
        min_groups=min_groups,
        repeats=repeats,
    )


def trials(case: str, condition: str, *scores: float | None, group: str | None = None) -> list[Row]:
    """Rows of one case and condition; None is an infrastructure failure."""
    return [
        Row(
            case,
            group or f"group-of-{case}",
            condition,
            repeat,
            Unscored("agent_infrastructure", "engine gone") if score is None else Scored(score),
        )
        for repeat, score in enumerate(scores, 1)
    ]


def paired(*scores: tuple[float | None, float | None]) -> list[Row]:
    """One group, case and repeat for each (baseline, candidate) pair."""
    rows: list[Row] = []
    for number, (before, after) in enumerate(scores):
        rows += trials(f"c{number:02d}", "base", before)
        rows += trials(f"c{number:02d}", "cand", after)
    return rows


def compared(
    rows: Sequence[Row],
    frozen: Measurement | None = None,
    guardrails: Sequence[Guardrail] = (),
) -> Comparison:
    """The candidate against the baseline."""
    return compare(
        rows,
        baseline="base",
        candidate="cand",
        measurement=frozen or measurement(),
        guardrails=guardrails,
    )


CLEAR_GAIN = paired(*[(0.0, 1.0)] * 9, (0.0, 0.0))
CLEAR_LOSS = paired(*[(1.0, 0.0)] * 9, (0.0, 0.0))
