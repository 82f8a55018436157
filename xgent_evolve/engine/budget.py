"""The frozen budget, asked before an intent is registered (invariant V12). Pure.

Paid executions have three accounts, and none can be spent for another: trials that select, trials
that confirm, and proposals. Retries count like first attempts.
"""

from __future__ import annotations

from typing import Literal

from xgent_evolve.errors import BudgetError
from xgent_evolve.spec.models_v1 import Budget

type Account = Literal["selection", "confirmation", "proposals"]


def account_of(purpose: str) -> Account:
    """Return the account that a slot of that purpose is paid from."""
    if purpose == "confirm":
        return "confirmation"
    return "proposals" if purpose == "propose" else "selection"


def allowance(budget: Budget, account: Account) -> int:
    """Return how many paid executions may be registered on an account, retries included."""
    match account:
        case "selection":
            return budget.max_trials - budget.confirmation_trials
        case "confirmation":
            return budget.confirmation_trials
        case "proposals":
            return budget.max_candidates * (1 + budget.max_retries)


def require_paid(budget: Budget, account: Account, spent: int, slot: str) -> None:
    """Require that one more paid execution may start.

    `spent` counts those of the account that were registered so far, retries included.

    Raises:
        BudgetError: E_BUDGET_TRIALS.

    """
    allowed = allowance(budget, account)
    if spent < allowed:
        return
    field, expected = {
        "selection": (
            "budget.max_trials",
            f"at most {allowed} ({budget.max_trials} less"
            f" {budget.confirmation_trials} reserved for confirmation)",
        ),
        "confirmation": ("budget.confirmation_trials", f"at most {allowed} to confirm"),
        "proposals": ("budget.max_candidates", f"at most {allowed} proposals, retries included"),
    }[account]
    raise BudgetError(
        "no further agent execution may start",
        code="E_BUDGET_TRIALS",
        where=f"{field}, at {slot}",
        expected=expected,
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
