"""What one trial yields: a score, or the reason why there is none.

Absence is a value here. An unscored trial is counted and named, and it is never averaged as 0:
an infrastructure failure says nothing about the agent (requirement G1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

type Cause = Literal[
    "agent_infrastructure",
    "grade_infrastructure",
    "reward_missing",
    "reward_malformed",
    "reward_ambiguous",
    "reward_contradicts_exit",
    "grade_timeout",
    "not_run",
]
"""Why a trial has no score."""

CAUSES: tuple[Cause, ...] = (
    "agent_infrastructure",
    "grade_infrastructure",
    "reward_missing",
    "reward_malformed",
    "reward_ambiguous",
    "reward_contradicts_exit",
    "grade_timeout",
    "not_run",
)
"""Every cause, in the order in which reports list them."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A valid result. A behaviour failure of the agent is one too: its value is 0."""

    value: float
    """Score between 0 and 1."""

    def __post_init__(self) -> None:
        """Refuse NaN, infinities and values outside [0, 1]."""
        _require_fraction(self.value, "score")


@dataclass(frozen=True, slots=True)
class Unscored:
    """No score exists. Never averaged, always counted."""

    cause: Cause
    """What stood in the way."""
    detail: str
    """One line for the reader; may hold text of the agent or the grader."""


type Outcome = Scored | Unscored


@dataclass(frozen=True, slots=True)
class Row:
    """One trial: a case, under one condition, once."""

    case: str
    """The case's id."""
    group: str
    """The independent source group that the case belongs to."""
    condition: str
    """The condition's id."""
    repeat: int
    """Which repeat, counted from 0 or from 1 but always the same way."""
    outcome: Outcome
    """The result of the last attempt."""
    agent_timed_out: bool = False
    """The agent reached its wall-time limit; what it left was graded all the same."""
    checks: tuple[tuple[str, float | None], ...] = ()
    """Values of checks.json by guardrail name, between 0 and 1; None when unknown."""

    def __post_init__(self) -> None:
        """Refuse repeated check names and values outside [0, 1]."""
        names = [name for name, _ in self.checks]
        if len(set(names)) != len(names):
            raise ValueError(f"case {self.case}: a check appears twice in {names}")
        for name, value in self.checks:
            if value is not None:
                _require_fraction(value, f"check {name}")


def _require_fraction(value: float, what: str) -> None:
    if not (math.isfinite(value) and 0 <= value <= 1):
        raise ValueError(f"{what} must lie between 0 and 1, found {value!r}")
