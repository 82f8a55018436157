"""Hillclimb over scripted facts: what moves, what stays, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xgent_evolve.measure.comparison import Decision, Verdict
from xgent_evolve.strategies.hillclimb import hillclimb
from xgent_evolve.strategies.strategy import Proposal, Proposed, Refused, Step, Version


def version(name: str) -> Version:
    return Version(name, f"blake3:{name}")


@dataclass(frozen=True)
class Compared:
    """A comparison as far as a strategy looks at it."""

    verdict: Verdict


@dataclass
class Scripted:
    """A study whose answers are written down."""

    decisions: Sequence[Decision]
    """What the comparison of each proposal decides; `invalid` is refused beforehand."""
    room: int = 100
    saturated: str = ""
    """The version that leaves nothing to gain."""
    max_candidates: int = 0
    told: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.max_candidates = self.max_candidates or len(self.decisions)

    @property
    def baseline(self) -> Version:
        return version("baseline")

    def has_room(self) -> bool:
        self.room -= 1
        return self.room >= 0

    def can_gain(self, version: Version) -> bool:
        return version.id != self.saturated

    async def measure(self, version: Version) -> None:
        self.told.append(("measure", version.id))

    async def propose(
        self, number: int, parent: Version, steps: Sequence[Step]
    ) -> Proposed | Refused:
        self.told.append(("propose", parent.id, *(step.decision for step in steps)))
        if self.decisions[number - 1] == "invalid":
            return Refused(("nonsense",))
        return Proposed(Proposal("", "", "", "", ()), version(f"candidate-{number}"))

    def compare(self, candidate: Version, parent: Version) -> Any:
        number = int(candidate.id.rpartition("-")[2])
        self.told.append(("compare", candidate.id, parent.id))
        return Compared(Verdict(self.decisions[number - 1], "no-decision", False, False, ()))


def climb(*decisions: Decision, **script: Any) -> tuple[Any, Scripted]:
    study = Scripted(decisions, **script)
    return asyncio.run(hillclimb(study)), study


def test_only_keep_moves_the_best_text_on() -> None:
    end, study = climb("discard", "keep", "inconclusive", "keep")
    assert end.best.id == "candidate-4"
    assert end.stop == "candidates"
    parents = [line[1] for line in study.told if line[0] == "propose"]
    assert parents == ["baseline", "baseline", "candidate-2", "candidate-2"]
    compared = [line[1:] for line in study.told if line[0] == "compare"]
    assert compared[-1] == ("candidate-4", "candidate-2")


def test_nonsense_counts_as_a_proposal_and_stops_nothing() -> None:
    end, study = climb("invalid", "keep", "invalid")
    assert [step.decision for step in end.steps] == ["invalid", "keep", "invalid"]
    assert end.best.id == "candidate-2"
    assert ("measure", "candidate-1") not in study.told


def test_every_proposal_knows_what_became_of_those_before() -> None:
    _, study = climb("discard", "invalid", "keep")
    assert [line for line in study.told if line[0] == "propose"][-1] == (
        "propose",
        "baseline",
        "discard",
        "invalid",
    )


def test_no_proposal_is_paid_for_without_room_to_measure_it() -> None:
    end, study = climb("keep", "keep", room=1)
    assert (end.stop, end.best.id) == ("budget", "candidate-1")
    assert sum(line[0] == "propose" for line in study.told) == 1


def test_no_proposal_is_paid_for_when_nothing_is_left_to_gain() -> None:
    end, study = climb("keep", saturated="baseline")
    assert (end.stop, end.steps) == ("headroom", ())
    assert study.told == [("measure", "baseline")]
    end, _ = climb("keep", "keep", saturated="candidate-1")
    assert (end.stop, end.best.id) == ("headroom", "candidate-1")


def test_without_a_kept_proposal_the_baseline_stays_the_best() -> None:
    end, _ = climb("discard", "inconclusive", "invalid")
    assert end.best.id == "baseline"
