"""A slot: one logical unit of work, identified by what it measures.

The key is part of the execution's identity, so its form never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xgent_evolve.harbor.events import Usage
from xgent_evolve.harbor.request import Kind

type Purpose = Literal["smoke", "untouched", "oracle", "preflight", "measure", "propose", "confirm"]
"""What the work is for; a grade carries the purpose of what it grades. measure: a trial that may
select a candidate. propose: the optimizer's work; its condition is the text that it starts from.
confirm: a trial on cases that selected nothing."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One unit of work."""

    purpose: Purpose
    condition: str
    case: str
    repeat: int
    """Counted from 1."""
    kind: Kind

    @property
    def key(self) -> str:
        """The slot's name in journals, receipts and messages."""
        return f"{self.purpose}/{self.condition}/{self.case}/{self.repeat}/{self.kind}"


def purpose_of(key: str) -> str:
    """Return the purpose of the slot with that key."""
    return key.partition("/")[0]


type AttemptStatus = Literal["valid", "behaviour_failure", "invalid"]


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt at one slot, as it is kept in results.jsonl; failures stay (requirement C1)."""

    slot: Slot
    attempt: int
    uuid: str
    status: AttemptStatus
    """valid: it did its work (a grade: reward 1); behaviour_failure: a valid observation of a
    failing agent; invalid: there is no observation."""
    cause: str | None
    detail: str
    exit_code: int | None
    duration_ms: int | None
    usage: Usage | None
    redactions: int
    """How often a secret was replaced in what came back."""
    hooks: tuple[str, ...] = ()
    """Delivered files that a verifier may carry out without naming them."""
