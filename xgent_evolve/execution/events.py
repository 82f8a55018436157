"""What happens during a run, for those who watch; nothing depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from xgent_evolve.harbor.request import Kind

type Phase = Literal["registered", "uploaded", "running", "captured", "adopted", "replayed"]


@dataclass(frozen=True, slots=True)
class Story:
    """A sentence about the run as a whole."""

    text: str


@dataclass(frozen=True, slots=True)
class ExecutionMoved:
    """An execution came to another phase."""

    uuid: str
    slot: str
    attempt: int
    kind: Kind
    phase: Phase


@dataclass(frozen=True, slots=True)
class SlotDone:
    """A slot has its result."""

    slot: str
    attempt: int
    kind: Kind
    result: str
    """A word: passed, failed, ended, timed_out, unscored, broken."""
    detail: str
    duration_ms: int | None


@dataclass(frozen=True, slots=True)
class Planned:
    """How many executions the workflow expects, if nothing has to be tried again."""

    executions: int


type Event = Story | ExecutionMoved | SlotDone | Planned


class Observer(Protocol):
    """Somebody who is told what happens."""

    def tell(self, event: Event) -> None:
        """Take note of one event; must be quick and must not raise."""
        ...


class Silent:
    """An observer that ignores everything."""

    def tell(self, event: Event) -> None:
        """Do nothing."""
