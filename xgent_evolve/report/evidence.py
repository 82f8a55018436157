"""What a page shows of the executions behind a report: what was said, done, delivered, graded.

The report itself names no execution; the page does, so that a reader finds the bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xgent_evolve.harbor.patch import PathPatch
from xgent_evolve.harbor.transcript import Transcript
from xgent_evolve.report.inputs import AttemptStatus


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Captured bytes and where the run directory has them."""

    name: str
    """What they are, such as `stdout`."""
    place: str
    """Path relative to the run directory."""
    size: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class Stream:
    """What a command printed on one stream."""

    name: str
    text: str
    """The beginning, then the end."""
    dropped_bytes: int = 0
    """How much between them was not captured."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What one execution left."""

    transcript: Transcript | None = None
    """None when no agent took part."""
    streams: Sequence[Stream] = ()
    """Other output; empty streams are left out."""
    patch: Sequence[PathPatch] | None = None
    """The delivery; None when there is none, empty when nothing was changed."""
    stored: Sequence[StoredBytes] = ()


@dataclass(frozen=True, slots=True)
class AttemptEvidence:
    """One attempt at a slot, and the way to what it left."""

    purpose: str
    condition: str
    case: str
    repeat: int
    kind: str
    attempt: int
    status: AttemptStatus
    cause: str | None
    detail: str
    """What was found, for people; empty when there is nothing to say."""
    execution: str
    load: Callable[[], Contents]
    """Read the stored bytes; called for what is shown, one attempt at a time."""

    @property
    def key(self) -> tuple[str, str, int, str, int]:
        """Which row of the report's attempts it is, when it measures."""
        return (self.case, self.condition, self.repeat, self.kind, self.attempt)
