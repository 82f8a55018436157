"""Whole search studies with known truth: no engine, no model, the product's own rules.

Trials are drawn, everything after them is real: the strategy, the comparison with its 10,000
resamples, the diagnosis that ends a search, and the rule of the confirmation. So what comes out is
how often the product would say `passed`, optional stopping included, and how often wrongly.

A case's chance of success under the baseline is drawn in two steps: a group's mean around the
cell's success rate (Beta, concentration 4), then each case's around its group's (Beta,
concentration 6). A gain of g points moves every case towards 1 (a loss: towards 0) by a share such
that the mean over the population moves by exactly g.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from xgent_evolve.ids import Digest
from xgent_evolve.measure import bootstrap
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.diagnosis import diagnose
from xgent_evolve.measure.outcomes import Outcome, Row, Scored, Unscored
from xgent_evolve.spec.parts import PROVEN_GROUPS, Measurement
from xgent_evolve.strategies.hillclimb import hillclimb
from xgent_evolve.strategies.strategy import Proposal, Proposed, Refused, Step, Version
from xgent_evolve.workflow.confirm import ConfirmationStatus, confirmation_status

type Split = Literal["search", "confirmation"]

BASELINE = "baseline"
STREAMS = 20
"""Seeds of the bootstrap that the studies take turns with, so that no one stream decides."""
GROUP_CONCENTRATION, CASE_CONCENTRATION = 4.0, 6.0


@dataclass(frozen=True, slots=True)
class Effect:
    """What a text does to the mean success rate, in fractions, against the baseline."""

    search: float = 0.0
    """On the cases that select."""
    confirmation: float = 0.0
    """On the cases that confirm. Less than `search` is an overfitted text."""
    scatter: float = 0.0
    """Groups gain or lose this share of what they can, by a fair coin: it moves no mean."""


type Optimizer = Callable[[np.random.Generator, int, Effect], Effect]
"""From the number of the proposal and the parent's effect to the proposal's."""


def idle(_rng: np.random.Generator, _number: int, parent: Effect) -> Effect:
    """Propose texts that change nothing: whatever is kept was lucky."""
    return parent


def careless(rng: np.random.Generator, _number: int, parent: Effect) -> Effect:
    """Propose texts that change nothing or harm, by a fair coin."""
    loss = 0.1 * float(rng.integers(2))
    return Effect(parent.search - loss, parent.confirmation - loss)


def uneven(_rng: np.random.Generator, _number: int, _parent: Effect) -> Effect:
    """Propose texts that help some groups and harm as many: no effect on the mean."""
    return Effect(scatter=0.5)


def overfitting(_rng: np.random.Generator, _number: int, _parent: Effect) -> Effect:
    """Propose texts that solve the cases that select, and change nothing elsewhere."""
    return Effect(search=1.0)


def planted(gain: float) -> Optimizer:
    """Propose one useful text, the second; the others change nothing."""

    def propose(_rng: np.random.Generator, number: int, parent: Effect) -> Effect:
        return Effect(gain, gain) if number == 2 else parent

    return propose


@dataclass(frozen=True, slots=True)
class Cell:
    """One set of circumstances, of which many studies are drawn."""

    optimizer: Optimizer
    groups: int
    """Independent groups that select, and as many that confirm."""
    success: float
    """Mean success rate of the baseline."""
    repeats: int = 1
    cases: int = 1
    """Cases of each group."""
    proposals: int = 5
    lost: float = 0.0
    """Share of trials without a result, whatever they would have been."""
    lost_failures: float = 0.0
    """Share of a candidate's failures that leave no result: an absence that flatters."""
    confidence: str = "0.95"

    def measurement(self, seed: int) -> Measurement:
        """Return the frozen measurement; the smallest gain is 0, which `keep` is easiest for."""
        return Measurement(
            objective="task_success",
            min_gain=Decimal(0),
            non_inferiority_margin=Decimal("0.05"),
            confidence=Decimal(self.confidence),
            min_groups=PROVEN_GROUPS,
            repeats=self.repeats,
            seed=seed,
        )


@dataclass(frozen=True, slots=True)
class CaseTruth:
    """A case and its chance of success under the baseline."""

    case: str
    group: str
    chance: float


@dataclass(slots=True)
class SimulatedStudy:
    """A drawn study as a strategy sees it (`strategies.strategy.SearchStudy`)."""

    cell: Cell
    rng: np.random.Generator
    settings: Measurement
    effects: dict[str, Effect] = field(default_factory=lambda: {BASELINE: Effect()})
    rows: list[Row] = field(default_factory=list[Row])
    measured: set[str] = field(default_factory=set[str])
    truths: dict[Split, list[CaseTruth]] = field(default_factory=dict[Split, list[CaseTruth]])

    def __post_init__(self) -> None:
        """Draw the cases; those that confirm come from groups of their own."""
        for split in ("search", "confirmation"):
            self.truths[split] = list(self._draw_cases(split))

    @property
    def baseline(self) -> Version:
        """The text that the search starts from."""
        return _version(BASELINE)

    @property
    def max_candidates(self) -> int:
        """How many proposals may be made."""
        return self.cell.proposals

    def has_room(self) -> bool:
        """Say that the budget covers every proposal."""
        return True

    def can_gain(self, version: Version) -> bool:
        """Say whether a perfect successor could show the smallest gain: the real rule."""
        return diagnose(
            self.rows,
            text=version.id,
            measurement=self.settings,
            required_groups=max(PROVEN_GROUPS, self.settings.min_groups),
        ).proceed

    async def measure(self, version: Version) -> None:
        """Draw a version's trials on every case that selects, once."""
        if version.id not in self.measured:
            self.rows += self.trials(version.id, "search")
            self.measured.add(version.id)

    async def propose(
        self,
        number: int,
        parent: Version,
        steps: Sequence[Step],  # noqa: ARG002
    ) -> Proposed | Refused:
        """Have the cell's optimizer propose."""
        version = _version(f"candidate-{number}")
        self.effects[version.id] = self.cell.optimizer(self.rng, number, self.effects[parent.id])
        return Proposed(Proposal(parent.content, "", "", "", ()), version)

    def compare(self, candidate: Version, parent: Version) -> Comparison:
        """Return what the measurements of both say: the real rule."""
        shown = [row for row in self.rows if row.condition in (candidate.id, parent.id)]
        return self._compared(shown, parent.id, candidate.id)

    def confirm(self, candidate: Version) -> ConfirmationStatus:
        """Draw fresh trials of baseline and candidate, and say what they mean: the real rule."""
        rows = [
            row for name in (BASELINE, candidate.id) for row in self.trials(name, "confirmation")
        ]
        return confirmation_status(self._compared(rows, BASELINE, candidate.id))

    def trials(self, name: str, split: Split) -> list[Row]:
        """Draw a text's trials on the cases of a split."""
        effect = self.effects[name]
        gain = effect.search if split == "search" else effect.confirmation
        luck = {truth.group: 0.0 for truth in self.truths[split]}
        if effect.scatter:
            luck = {group: effect.scatter * self.rng.choice((-1.0, 1.0)) for group in luck}
        rows: list[Row] = []
        for truth in self.truths[split]:
            chance = _moved(truth.chance, gain, self.cell.success)
            chance += luck[truth.group] * min(chance, 1 - chance)
            for repeat in range(1, self.cell.repeats + 1):
                outcome = self._outcome(chance, flattered=name != BASELINE)
                rows.append(Row(truth.case, truth.group, name, repeat, outcome))
        return rows

    def _outcome(self, chance: float, *, flattered: bool) -> Outcome:
        solved, lost, hidden = self.rng.random(3)
        score = float(solved < chance)
        if lost < self.cell.lost or (flattered and not score and hidden < self.cell.lost_failures):
            return Unscored("agent_infrastructure", "drawn")
        return Scored(score)

    def _compared(self, rows: Sequence[Row], baseline: str, candidate: str) -> Comparison:
        return compare(
            rows,
            baseline=baseline,
            candidate=candidate,
            measurement=self.settings,
            guardrails=(),
        )

    def _draw_cases(self, split: Split) -> list[CaseTruth]:
        found: list[CaseTruth] = []
        for group in range(self.cell.groups):
            middle = _beta(self.rng, self.cell.success, GROUP_CONCENTRATION)
            for case in range(self.cell.cases):
                chance = _beta(self.rng, middle, CASE_CONCENTRATION)
                found.append(CaseTruth(f"{split}-{group}-{case}", f"{split}-{group}", chance))
        return found


@dataclass(slots=True)
class Tally:
    """How many studies of a cell came to what."""

    studies: int = 0
    confirmed: int = 0
    """The confirmation was opened: in a search, because a candidate was kept."""
    passed: int = 0
    false_passed: int = 0
    """Passed although the text does not gain on the population that confirmation cases are from."""
    failed: int = 0
    inconclusive: int = 0
    proposals: int = 0
    """Proposals that were measured, in all studies."""


def simulate(cell: Cell, studies: int, seed: int) -> Tally:
    """Return what `studies` studies of a cell came to; equal arguments, equal result."""
    return asyncio.run(_simulate(cell, studies, seed))


def simulate_confirmations(cell: Cell, studies: int, seed: int) -> Tally:
    """Return what confirmations of a cell's first proposal come to, kept or not.

    A search opens few confirmations of texts without an effect, so few studies say how the last
    gate does alone. Here it is asked every time.
    """
    tally = Tally()
    for number in range(studies):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        study = SimulatedStudy(cell, rng, cell.measurement(seed=number % STREAMS))
        first = _version("candidate-1")
        study.effects[first.id] = cell.optimizer(rng, 1, study.effects[BASELINE])
        tally.studies += 1
        _confirm(study, first, tally)
    return tally


@contextmanager
def remembered_streams() -> Iterator[None]:
    """Draw each index stream once and use it again: the same numbers in half the time."""
    drawn = bootstrap.index_columns

    @lru_cache(maxsize=2 * STREAMS)
    def remembered(seed: int, groups: int, resamples: int) -> list[npt.NDArray[np.intp]]:
        return list(drawn(seed, groups, resamples))

    bootstrap.index_columns = lambda seed, groups, resamples: iter(
        remembered(seed, groups, resamples)
    )
    try:
        yield
    finally:
        bootstrap.index_columns = drawn


def _confirm(study: SimulatedStudy, best: Version, tally: Tally) -> None:
    status = study.confirm(best)
    tally.confirmed += 1
    tally.passed += status == "passed"
    tally.failed += status == "failed"
    tally.inconclusive += status == "inconclusive"
    if status == "passed" and study.effects[best.id].confirmation <= 0:
        tally.false_passed += 1


async def _simulate(cell: Cell, studies: int, seed: int) -> Tally:
    tally = Tally()
    for number in range(studies):
        rng = np.random.Generator(np.random.PCG64([seed, number]))
        study = SimulatedStudy(cell, rng, cell.measurement(seed=number % STREAMS))
        end = await hillclimb(study)
        tally.studies += 1
        tally.proposals += len(end.steps)
        if end.best != study.baseline:
            _confirm(study, end.best, tally)
    return tally


def _version(name: str) -> Version:
    return Version(name, Digest(name))


def _beta(rng: np.random.Generator, mean: float, concentration: float) -> float:
    mean = min(max(mean, 1e-6), 1 - 1e-6)
    return float(rng.beta(mean * concentration, (1 - mean) * concentration))


def _moved(chance: float, gain: float, mean: float) -> float:
    """Return a case's chance when the population's mean moves by `gain`, as far as it can."""
    if gain >= 0:
        return chance + (1 - chance) * min(1.0, gain / (1 - mean))
    return chance * (1 - min(1.0, -gain / mean))
