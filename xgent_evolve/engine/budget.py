"""The frozen budget, asked before an intent is registered (invariant V12). Pure."""

from __future__ import annotations

from xgent_evolve.errors import BudgetError
from xgent_evolve.spec.models_v1 import Budget


def require_trial(budget: Budget, spent: int, slot: str) -> None:
    """Require that one more agent execution may start.

    `spent` counts every agent execution registered so far, retries included; what is reserved for
    confirmation cannot be spent here.

    Raises:
        BudgetError: E_BUDGET_TRIALS.

    """
    allowed = budget.max_trials - budget.confirmation_trials
    if spent >= allowed:
        raise BudgetError(
            "no further agent execution may start",
            code="E_BUDGET_TRIALS",
            where=f"budget.max_trials, at {slot}",
            expected=f"at most {allowed} ({budget.max_trials} less"
            f" {budget.confirmation_trials} reserved for confirmation)",
            found=f"{spent} registered",
            fix="what was measured is kept; a study with a larger budget is another protocol",
        )


def require_time(budget: Budget, elapsed_s: float, slot: str) -> None:
    """Require that the deadline of this command has not passed.

    Raises:
        BudgetError: E_BUDGET_DEADLINE.

    """
    if elapsed_s >= budget.deadline_s:
        raise BudgetError(
            "the deadline has passed; nothing new starts",
            code="E_BUDGET_DEADLINE",
            where=f"budget.deadline_s, at {slot}",
            expected=f"at most {budget.deadline_s} s",
            found=f"{elapsed_s:.0f} s",
            fix="xgent-evolve resume continues with a new deadline of the same length",
        )
