"""Which failures are worth another attempt (requirement D4). Pure.

A failure that the same request would meet again is not tried again: that costs time and possibly
money, and says nothing new. What every other request would meet too is in `refusal`.
"""

from __future__ import annotations

from xgent_evolve.harbor.outcome import Broken

FINAL_CAUSES = frozenset(
    {
        "cancelled",
        "cancelled_before_start",
        "contaminated",
        "create_image_missing",
        "skill_not_visible",
    }
)
"""Causes that another attempt cannot change. Everything else may pass."""


def is_worth_another_attempt(broken: Broken) -> bool:
    """Say whether a further attempt could end differently."""
    return broken.cause not in FINAL_CAUSES
