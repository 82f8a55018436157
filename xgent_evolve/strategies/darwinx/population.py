"""Whom a search starts from: members, the archive, parents, pairs to recombine, the best."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, Protocol

from xgent_evolve.strategies.streams import stream
from xgent_evolve.strategies.tolerance import exceeds

type StepKind = Literal["mutation", "recombination"]
type Status = Literal["admitted", "screen_rejected", "confirm_rejected"]


class Draws(Protocol):
    """What is drawn from a `random.Random`."""

    def random(self) -> float:
        """Return a number from 0 to below 1."""
        ...

    def randrange(self, stop: int, /) -> int:
        """Return a whole number from 0 to below `stop`."""
        ...

    def sample(self, population: Sequence[int], k: int) -> list[int]:
        """Return `k` of the population in random order, each once."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One version that was measured, admitted or not."""

    id: str
    parent: str | None
    """The version whose text was edited; None for the first one."""
    status: Status = "admitted"
    gain: float = 0.0
    """Against the parent, as confirmed; in tasks."""
    mean: float = 0.0
    """Mean over all tasks, as confirmed."""
    solved: frozenset[str] = field(default_factory=frozenset[str])
    """What it solved when it was confirmed."""
    donor: str | None = None
    """Where a recombination took its changes from; no ancestor."""

    @property
    def confirmed(self) -> bool:
        """Say whether it was measured on all tasks."""
        return self.status != "screen_rejected"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two versions, each of which solves what the other does not."""

    primary: Entry
    donor: Entry
    union: frozenset[str]
    """What both together solve."""


def members(archive: Sequence[Entry]) -> list[Entry]:
    """Return those that may become parents, in the order of their admission."""
    return [entry for entry in archive if entry.status == "admitted"]


def lineage_gains(archive: Sequence[Entry]) -> dict[str, float]:
    """Return each version's gain over the first one, added up along its parents."""
    gains: dict[str, float] = {}
    for entry in archive:
        gains[entry.id] = 0.0 if entry.parent is None else gains[entry.parent] + entry.gain
    return gains


def best_lineage(population: Sequence[Entry], gains: Mapping[str, float]) -> Entry:
    """Return the member with the greatest lineage gain, the earliest of equals."""
    return _first_best(population, gains)


def parent_draws(seed: int, step: int) -> Draws:
    """Return the draws of a step's parent."""
    return stream(seed, step, "parent")


def screening_draws(seed: int, step: int) -> Draws:
    """Return the draws of a step's screening tasks."""
    return stream(seed, step, "screen")


def choose_parent(
    population: Sequence[Entry],
    gains: Mapping[str, float],
    exploration: float,
    draws: Draws,
) -> Entry:
    """Return whom a step edits: with the chance `exploration` any member, else the best lineage.

    A step draws from its own stream (`parent_draws`); the best lineage needs no second draw.
    """
    if draws.random() < exploration:
        return population[draws.randrange(len(population))]
    return best_lineage(population, gains)


def screening_tasks(tasks: Sequence[str], size: int, draws: Draws) -> list[str]:
    """Return the tasks of one screening, at most all of them, each once."""
    chosen = draws.sample(range(len(tasks)), min(size, len(tasks)))
    return [tasks[index] for index in chosen]


def pairs(archive: Sequence[Entry], tried: Collection[AbstractSet[str]] = ()) -> list[Pair]:
    """Return what could be recombined, the most promising pair first.

    Both are confirmed, also those that were not admitted; neither descends from the other; the
    pair was not tried before, whatever came of it. The larger union goes first, then the higher
    mean of the better one, then the order in the archive. The better one is the primary.
    """
    parents = {entry.id: entry.parent for entry in archive}
    found: list[Pair] = []
    for one, other in combinations([entry for entry in archive if entry.confirmed], 2):
        complementary = one.solved - other.solved and other.solved - one.solved
        related = one.id in _line(other.id, parents) or other.id in _line(one.id, parents)
        if complementary and not related and {one.id, other.id} not in tried:
            primary, donor = (other, one) if exceeds(other.mean, one.mean) else (one, other)
            found.append(Pair(primary, donor, one.solved | other.solved))
    # Sorting is stable, so equals stay in the order of the archive.
    return sorted(found, key=lambda pair: (-len(pair.union), -pair.primary.mean))


def common_ancestor(archive: Sequence[Entry], one: str, other: str) -> str:
    """Return the last version from which both were made by edits; donors do not count."""
    parents = {entry.id: entry.parent for entry in archive}
    line = set(_line(one, parents))
    return next(name for name in _line(other, parents) if name in line)


def step_kind(step: int, merge_every: int, *, has_pair: bool) -> StepKind:
    """Return what a step does, counted from 1; without a pair every step is a mutation."""
    due = merge_every > 0 and step % merge_every == 0
    return "recombination" if due and has_pair else "mutation"


def promoted(population: Sequence[Entry]) -> Entry:
    """Return the member with the highest mean, the earliest of equals."""
    return _first_best(population, {entry.id: entry.mean for entry in population})


def _first_best(population: Sequence[Entry], values: Mapping[str, float]) -> Entry:
    best = population[0]
    for entry in population[1:]:
        if exceeds(values[entry.id], values[best.id]):
            best = entry
    return best


def _line(name: str | None, parents: Mapping[str, str | None]) -> Iterator[str]:
    while name is not None:
        yield name
        name = parents[name]
