"""Two-stage admission: a cheap screening that lets trades pass, a confirmation that does not.

A recombination is held against both of its parents: what either of them reached is the reference,
and what either lineage had solved must stay solved; its gain is counted from the primary.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.strategies.darwinx.scores import Difference, Means, difference, solved
from xgent_evolve.strategies.tolerance import exceeds, reaches

type Objection = Literal["no_gain", "regression_mass", "lost_solved"]
"""Why a candidate is not admitted: it gains nothing in sum; more was lost than is tolerated; a
task that its lineage had solved is not solved now."""


@dataclass(frozen=True, slots=True)
class Screening:
    """What the screening of a candidate says."""

    improved: tuple[str, ...]
    """Tasks on which it beats the version that it was made from."""
    gain: float
    """In sum against that version; it may be negative."""
    regression_mass: float
    passed: bool


@dataclass(frozen=True, slots=True)
class Admission:
    """What the confirmation of a candidate says."""

    gain: float
    """Against the version that it was made from."""
    regression_mass: float
    """Against the reference."""
    reference: dict[str, float]
    """What every task is held against."""
    invariant: frozenset[str]
    """Tasks that had to stay solved."""
    lost_solved: tuple[str, ...]
    """Those that did not, in order of their names."""
    objections: tuple[Objection, ...]
    solved: frozenset[str]
    """What the candidate solves itself."""

    @property
    def admitted(self) -> bool:
        """Say whether it becomes a member of the population."""
        return not self.objections

    @property
    def child_invariant(self) -> frozenset[str]:
        """Tasks that every descendant has to keep: the set only grows along a lineage."""
        return self.invariant | self.solved


def screen(
    primary: Means, candidate: Means, *, tolerance: float, donor: Means | None = None
) -> Screening:
    """Judge a candidate on the screening tasks; `donor` is a recombination's second parent.

    It passes when some task rises above the primary and no more than `tolerance` tasks' worth is
    lost. A net loss passes: what it can do may be recombined later.
    """
    own = difference(primary, candidate)
    mass = difference(_best_of(primary, donor), candidate).regression_mass
    passed = bool(own.improved) and not exceeds(mass, tolerance)
    return Screening(own.improved, own.gain, mass, passed)


def confirm(
    parent: Means,
    candidate: Means,
    *,
    invariant: AbstractSet[str],
    threshold: float,
    tolerance: float,
) -> Admission:
    """Judge a mutation on all tasks; both sides must be measured anew, with equal repeats.

    Args:
        parent: Means of the version that it was made from.
        candidate: Its own means.
        invariant: What the parent's lineage had solved, whatever the parent reaches today.
        threshold: Mean from which a task counts as solved.
        tolerance: Most that may be lost in sum, in tasks.

    """
    return _admission(
        difference(parent, candidate), parent, candidate, frozenset(invariant), threshold, tolerance
    )


def confirm_recombination(
    primary: Means,
    donor: Means,
    candidate: Means,
    *,
    invariants: tuple[AbstractSet[str], AbstractSet[str]],
    threshold: float,
    tolerance: float,
) -> Admission:
    """Judge a recombination on all tasks; all three must be measured anew, with equal repeats.

    Keeping the union of what both parents solve is enough: no further task needs to be solved.
    """
    kept = solved(primary, threshold) | solved(donor, threshold) | invariants[0] | invariants[1]
    reference = _best_of(primary, donor)
    own = difference(primary, candidate)
    return _admission(own, reference, candidate, kept, threshold, tolerance)


def _admission(
    own: Difference,
    reference: Means,
    candidate: Means,
    invariant: frozenset[str],
    threshold: float,
    tolerance: float,
) -> Admission:
    mass = difference(reference, candidate).regression_mass
    lost = tuple(task for task in sorted(invariant) if not reaches(candidate[task], threshold))
    objections: list[Objection] = []
    if not exceeds(own.gain, 0.0):
        objections.append("no_gain")
    if exceeds(mass, tolerance):
        objections.append("regression_mass")
    if lost:
        objections.append("lost_solved")
    return Admission(
        gain=own.gain,
        regression_mass=mass,
        reference=dict(reference),
        invariant=invariant,
        lost_solved=lost,
        objections=tuple(objections),
        solved=solved(candidate, threshold),
    )


def _best_of(primary: Means, donor: Means | None) -> Means:
    if donor is None:
        return primary
    difference(primary, donor)  # the same tasks, or ValueError
    return {task: max(mean, donor[task]) for task, mean in primary.items()}
