"""Search: better text from proposals, and its confirmation on cases that nobody has seen.

1. The tasks and the sandbox are proven, and the baseline is measured.
2. The strategy asks for proposals and measurements until it has no reason to go on.
3. The best candidate, if there is one, is confirmed against the baseline by fresh executions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xgent_evolve.engine.budget import allowance
from xgent_evolve.engine.run import Run, Trial
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.execution.events import Planned, Story
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.diagnosis import Diagnosis, diagnose
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.search.projection import Observation
from xgent_evolve.spec.bounds import compared_cases, planned
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.parts import PROVEN_GROUPS
from xgent_evolve.strategies.hillclimb import hillclimb
from xgent_evolve.strategies.strategy import Proposed, Refused, SearchEnd, Step, Version
from xgent_evolve.workflow.compare import prove_sandboxes
from xgent_evolve.workflow.confirm import (
    Confirmation,
    case_keys,
    confirm,
    not_run,
)
from xgent_evolve.workflow.propose import propose
from xgent_evolve.workflow.task_check import EXECUTIONS, find_unknown, require_sound_tasks


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found, and what its confirmation says."""

    diagnosis: Diagnosis
    """What the baseline's own trials say."""
    end: SearchEnd
    confirmation: Confirmation


async def search(run: Run, memory: TaskMemory) -> SearchResult:
    """Search for better text and confirm the best.

    Raises:
        TaskCheckError, HostError, TrialError: as the checks before anything is paid.
        GapError, BudgetError, RemoteError: the run stops here and can be resumed.

    """
    study = Study(run)
    unknown = await find_unknown(run, memory, run.protocol.spec.cases)
    run.observer.tell(Planned(executions=study.most_executions(len(unknown))))
    tell_exposed(run)
    await prove_sandboxes(run)
    await require_sound_tasks(run, memory, unknown)
    await study.measure(study.baseline)
    diagnosis = study.diagnosis(study.baseline)
    end = await hillclimb(study)
    return SearchResult(diagnosis, end, await confirm_best(run, study, end))


def tell_exposed(run: Run) -> None:
    """Say before anything is paid that confirmation cases have been shown by another run."""
    exposed = run.exposures.count(case_keys(run), run.rundir.run_id)
    if exposed and run.ledger.confirmation is None:
        run.observer.tell(
            Story(
                f"warning: another run has shown {exposed} of the confirmation cases; what they"
                " confirm now may have been selected by them"
            )
        )


async def confirm_best(run: Run, study: Study, end: SearchEnd) -> Confirmation:
    """Confirm the best version of a search, unless it is the baseline itself."""
    if end.best == study.baseline:
        return not_run("no candidate was kept")
    if not planned(run.protocol.spec).confirmation:
        return not_run("the JobSpec reserves no confirmation")
    run.observer.tell(Story(f"confirming {end.best.id} on cases that nobody has seen"))
    return await confirm(run, end.best.id)


@dataclass(slots=True)
class Study:
    """A run as a strategy sees it (`strategies.strategy.SearchStudy`)."""

    run: Run
    rows: list[Row] = field(default_factory=list[Row])
    """Every trial that was measured to select, in the order in which the strategy asked."""
    measured: set[str] = field(default_factory=set[str])

    @property
    def baseline(self) -> Version:
        """The frozen text."""
        name = self.run.protocol.spec.baseline_condition
        return Version(name, self.run.condition(name).content)

    @property
    def max_candidates(self) -> int:
        """How many proposals may be made."""
        return self.run.protocol.spec.budget.max_candidates

    @property
    def cases(self) -> list[Case]:
        """The cases that may select."""
        return compared_cases(self.run.protocol.spec)

    def has_room(self) -> bool:
        """Say whether the budget covers the measurement of one more candidate."""
        spec = self.run.protocol.spec
        needed = len(self.cases) * spec.measurement.repeats
        return self.run.spent("selection") + needed <= allowance(spec.budget, "selection")

    def can_gain(self, version: Version) -> bool:
        """Say whether a perfect successor of a measured version could show the smallest gain."""
        return self.diagnosis(version).proceed

    def diagnosis(self, version: Version) -> Diagnosis:
        """Return what a version's own trials say."""
        measurement = self.run.protocol.spec.measurement
        return diagnose(
            self.rows,
            text=version.id,
            measurement=measurement,
            required_groups=max(PROVEN_GROUPS, measurement.min_groups),
        )

    async def measure(self, version: Version) -> None:
        """Measure a version on every search and validation case, once."""
        if version.id in self.measured:
            return
        repeats = range(1, self.run.protocol.spec.measurement.repeats + 1)
        self.run.observer.tell(Story(f"measuring {version.id}"))
        self.rows += await self.run.trials(
            [Trial(version.id, case.id, repeat) for repeat in repeats for case in self.cases]
        )
        self.measured.add(version.id)

    async def propose(
        self, number: int, parent: Version, steps: Sequence[Step]
    ) -> Proposed | Refused:
        """Have the optimizer change `parent`; it sees search evidence and the steps so far."""
        self.run.observer.tell(Story(f"asking for proposal {number}, from {parent.id}"))
        seen = [
            Observation(row, self.run.find_artifacts(Trial(row.condition, row.case, row.repeat)))
            for row in self.rows
            if row.condition == parent.id
        ]
        return await propose(self.run, number, parent, seen, steps)

    def compare(self, candidate: Version, parent: Version) -> Comparison:
        """Return what the measurements of both say."""
        spec = self.run.protocol.spec
        return compare(
            [row for row in self.rows if row.condition in (candidate.id, parent.id)],
            baseline=parent.id,
            candidate=candidate.id,
            measurement=spec.measurement,
            guardrails=spec.guardrails,
        )

    def most_executions(self, unknown_tasks: int) -> int:
        """Return how many executions there are if every proposal is measured and none fails."""
        spec = self.run.protocol.spec
        plan = planned(spec)
        images = len({case.image for case in spec.cases})
        trials = plan.agent + plan.confirmation
        return images + EXECUTIONS * unknown_tasks + plan.optimizer + 2 * trials
