"""What every strategy works with: versions of the text, proposals, and what became of them.

A strategy asks a `SearchStudy` for proposals and measurements and gets recorded facts. It holds no
other state and draws no clock, so that a search which was killed goes on to the same end (I1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from xgent_evolve.ids import Digest
from xgent_evolve.measure.comparison import Comparison, Decision

type Stop = Literal["candidates", "budget", "headroom"]
"""Why a search ended: every proposal was made; the budget holds no further candidate; the baseline
leaves no room for the smallest gain worth having."""


@dataclass(frozen=True, slots=True)
class Version:
    """One version of the text under study, as a condition that can be measured."""

    id: str
    """The baseline condition's id, or `candidate-` and the number of the proposal."""
    content: Digest
    """Digest of everything that it shows to an agent."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an optimizer says about its change (requirement I2)."""

    parent_hash: str
    hypothesis: str
    expected_effect: str
    counterexample: str
    """What would refute the hypothesis."""
    changed_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposed:
    """A change that may be measured."""

    proposal: Proposal
    version: Version


@dataclass(frozen=True, slots=True)
class Refused:
    """A proposal that is not measured, and why."""

    reasons: tuple[str, ...]
    """Sentences; never empty."""
    proposal: Proposal | None = None
    """None when the answer could not be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """One proposal and what became of it."""

    number: int
    """Counted from 1."""
    parent: Version
    """What it started from."""
    answer: Proposed | Refused
    comparison: Comparison | None
    """Candidate against parent; None when nothing was measured."""

    @property
    def decision(self) -> Decision:
        """What follows: keep alone moves the best version on."""
        return "invalid" if self.comparison is None else self.comparison.verdict.decision


@dataclass(frozen=True, slots=True)
class SearchEnd:
    """What a search came to."""

    best: Version
    steps: tuple[Step, ...]
    stop: Stop


class SearchStudy(Protocol):
    """A study as a strategy sees it. Every answer is a recorded fact, or a function of such."""

    @property
    def baseline(self) -> Version:
        """The text that the search starts from."""
        ...

    @property
    def max_candidates(self) -> int:
        """How many proposals may be made."""
        ...

    def has_room(self) -> bool:
        """Say whether the budget covers the measurement of one more candidate."""
        ...

    def can_gain(self, version: Version) -> bool:
        """Say whether a perfect successor of a measured version could show the smallest gain."""
        ...

    async def measure(self, version: Version) -> None:
        """Measure a version on every search and validation case, once."""
        ...

    async def propose(
        self, number: int, parent: Version, steps: Sequence[Step]
    ) -> Proposed | Refused:
        """Have the optimizer change `parent`; it sees search evidence and the steps so far."""
        ...

    def compare(self, candidate: Version, parent: Version) -> Comparison:
        """Return what the measurements of both say."""
        ...
