"""A run: the frozen protocol, the recorded facts, and the means to obtain missing ones.

A workflow awaits `trial`, `probe` and so on. Each looks its slot up in the journal; what is
recorded is replayed without the host, the rest is obtained through the execution protocol. Resume
is therefore the same code as run.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xgent_evolve.engine.attempts import (
    attempt_document,
    attempt_row,
    recorded_attempts,
    result_word,
)
from xgent_evolve.engine.budget import Account, account_of, allowance, require_paid, require_time
from xgent_evolve.engine.gate import Gate
from xgent_evolve.engine.preflight import Preflighter
from xgent_evolve.engine.refusal import is_refusal, may_pass, refusal_error
from xgent_evolve.engine.retry import is_worth_another_attempt
from xgent_evolve.engine.slots import AttemptRow, Purpose, Slot, purpose_of
from xgent_evolve.errors import BudgetError, GapError, StoreError
from xgent_evolve.execution.events import Observer, SlotDone
from xgent_evolve.execution.executor import Executor, load_artifacts
from xgent_evolve.execution.facts import FactModel, Ledger, fact_document
from xgent_evolve.freeze.protocol import FrozenCondition, Protocol
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.delivery import find_refusal
from xgent_evolve.harbor.outcome import Broken, Done, Grade, agent_end, command_end, grade_end
from xgent_evolve.harbor.request import PAID
from xgent_evolve.harbor.requests import Planned, Planner
from xgent_evolve.ids import ExecutionId, execution_id
from xgent_evolve.measure.outcomes import Row, Scored, Unscored
from xgent_evolve.spec.cases import Case
from xgent_evolve.store.exposures import Exposures, no_exposures
from xgent_evolve.store.rundir import RunDir

type Plan = Callable[[Planner, ExecutionId], Planned]


@dataclass(frozen=True, slots=True)
class Filled[T]:
    """A slot's last attempt: what it left, and what that means."""

    artifacts: Artifacts
    meaning: T


@dataclass(frozen=True, slots=True)
class Graded:
    """What the verifier said; artifacts are None when it had nothing to look at."""

    meaning: Grade | Broken
    artifacts: Artifacts | None


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement that a workflow asks for: a case under a condition, once."""

    condition: str
    case: str
    repeat: int
    """Counted from 1."""
    purpose: Purpose = "measure"

    @property
    def slot(self) -> Slot:
        """The slot of the agent's work."""
        return Slot(self.purpose, self.condition, self.case, self.repeat, "agent")


@dataclass(slots=True)
class Run:
    """Everything a workflow needs, and nothing that it must not know."""

    protocol: Protocol
    rundir: RunDir
    executor: Executor
    preflight: Preflighter
    observer: Observer
    gate: Gate = field(default_factory=Gate)
    """Closed when nothing new may begin."""
    exposures: Exposures = field(default_factory=no_exposures)
    """Which confirmation cases other runs have shown."""
    replay_only: bool = False
    """Whether what is not recorded is an error instead of a reason to reach for the host."""
    attempts: list[AttemptRow] = field(default_factory=list[AttemptRow])
    """Every attempt that this process has seen the result of, replayed ones included."""
    candidates: dict[str, FrozenCondition] = field(default_factory=dict[str, FrozenCondition])
    """Conditions that a search has made, by id, besides those of the protocol."""
    _places: asyncio.Semaphore = field(init=False)
    _results: asyncio.Lock = field(default_factory=asyncio.Lock)
    _started: float = field(default_factory=time.monotonic)
    _paid: dict[Account, set[str]] = field(default_factory=dict[Account, set[str]])
    """Paid executions of each account that are registered or about to be."""
    _promised: dict[Account, set[str]] = field(default_factory=dict[Account, set[str]])
    """First attempts of the batches that were asked for."""
    _recorded: set[str] = field(default_factory=set[str])
    _latest: dict[Slot, str] = field(default_factory=dict[Slot, str])
    """Execution of the last attempt at each slot."""

    def __post_init__(self) -> None:
        """Prepare the places for concurrent executions."""
        self._places = asyncio.Semaphore(self.protocol.spec.budget.max_concurrency)
        rows = recorded_attempts(self.rundir)
        self._recorded = {str(row["execution"]) for row in rows}
        refused = {
            str(row["execution"])
            for row in rows
            if row["usage"] is None and is_refusal(str(row["cause"]))
        }
        for uuid, intent in self.ledger.intents.items():
            # A refusal before any answer costs nothing.
            if intent.kind in PAID and uuid not in refused:
                self._of(self._paid, account_of(purpose_of(intent.slot))).add(uuid)

    @property
    def ledger(self) -> Ledger:
        """What the journal says."""
        return self.executor.ledger

    def spec_case(self, case_id: str) -> Case:
        """Return a case of the JobSpec."""
        return next(item for item in self.protocol.spec.cases if item.id == case_id)

    def is_recorded(self, slot: Slot) -> bool:
        """Say whether a first attempt at the slot has been captured already."""
        uuid = execution_id(self.rundir.run_id, slot.key, 1)
        return uuid in self.ledger.captured and uuid in self.ledger.cleaned

    def condition(self, condition_id: str) -> FrozenCondition:
        """Return what a condition shows: one of the protocol, or a candidate of the search."""
        found = self.candidates.get(condition_id)
        return self.protocol.condition(condition_id) if found is None else found

    def spent(self, account: Account) -> int:
        """Return how many paid attempts of an account this process has seen the result of.

        Between two batches that is a function of the recorded facts, so a workflow may decide on
        it; what is registered may be more, since another process may have gone further.
        """
        return sum(
            row.slot.kind in PAID
            and account_of(row.slot.purpose) == account
            and not (row.usage is None and is_refusal(str(row.cause)))
            for row in self.attempts
        )

    def find_artifacts(self, trial: Trial) -> Artifacts | None:
        """Return what the last attempt at a trial's agent left, if this process has seen it."""
        uuid = self._latest.get(trial.slot)
        if uuid is None:
            return None
        return load_artifacts(self.rundir, self.ledger.captured[uuid].artifacts)

    async def record(self, fact: FactModel) -> None:
        """Make a fact of the workflow's own durable; a replay has it already.

        Raises:
            StoreError: E_STORE_MISSING: a replay lacks it.

        """
        if self.replay_only:
            raise StoreError(
                "the recorded facts do not hold one that the study needs",
                code="E_STORE_MISSING",
                where=f"{self.rundir.journal_path}: {fact.type}",
                fix="restore the run directory from a copy",
            )
        await self.executor.journal.append_soon(fact_document(fact))
        self.ledger.apply(fact)

    # What a workflow asks for.

    async def trials(self, trials: Sequence[Trial]) -> list[Row]:
        """Measure a batch; the rows come in its order, whatever ended first.

        No retry is paid for with what a first attempt of the batch needs.
        """
        for trial in trials:
            uuid = execution_id(self.rundir.run_id, trial.slot.key, 1)
            self._of(self._promised, account_of(trial.purpose)).add(uuid)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._placed(trial)) for trial in trials]
        return [task.result() for task in tasks]

    async def _placed(self, trial: Trial) -> Row:
        """Measure one case under one condition once: the agent's work, then its grade.

        Both use the same place, so that a trial that was begun is finished before the next one.
        """
        async with self._places:
            return await self._trial(trial)

    async def _trial(self, trial: Trial) -> Row:
        condition, case_id, repeat = trial.condition, trial.case, trial.repeat
        case, frozen = self.spec_case(case_id), self.protocol.case(case_id)
        arm, slot = self.condition(condition), trial.slot
        agent = await self._fill(
            slot,
            lambda planner, uuid: planner.agent(uuid, arm, frozen),
            lambda artifacts: agent_end(artifacts, self.rundir.blobs.get),
        )
        end = agent.meaning
        if isinstance(end, Broken):
            outcome = Unscored("agent_infrastructure", f"{end.cause}: {end.detail}")
            return Row(case_id, case.group, condition, repeat, outcome)
        grade = (await self._graded(slot, agent.artifacts)).meaning
        if isinstance(grade, Broken):
            outcome = Unscored("grade_infrastructure", f"{grade.cause}: {grade.detail}")
            return Row(case_id, case.group, condition, repeat, outcome, end.timed_out)
        return Row(
            case_id, case.group, condition, repeat, grade.outcome, end.timed_out, grade.checks
        )

    async def grade(self, slot: Slot, artifacts: Artifacts | None) -> Graded:
        """Grade a delivery in a new container; None stands for the untouched workspace."""
        async with self._places:
            return await self._graded(slot, artifacts)

    async def _graded(self, slot: Slot, artifacts: Artifacts | None) -> Graded:
        case = self.spec_case(slot.case)
        delivery = artifacts.delivery if artifacts is not None else None
        if delivery is not None and find_refusal(delivery, case) is not None:
            # What may not be delivered is the agent's failure; there is nothing to run tests on.
            return Graded(Grade(Scored(0.0), (), None), None)
        changes = delivery.changes if delivery is not None else []
        sources = artifacts.blobs if artifacts is not None else {}
        arm, frozen = self.condition(slot.condition), self.protocol.case(slot.case)
        filled = await self._fill(
            Slot(slot.purpose, slot.condition, slot.case, slot.repeat, "grade"),
            lambda planner, uuid: planner.grade(uuid, arm, frozen, changes, sources),
            lambda item: grade_end(item, self.rundir.blobs.get, case.verifier_exit),
        )
        return Graded(filled.meaning, filled.artifacts)

    async def command(self, slot: Slot, plan: Plan) -> Filled[Done | Broken]:
        """Carry out a probe, a login, a reference solution or the optimizer's work."""
        async with self._places:
            if slot.kind in PAID:
                return await self._fill(
                    slot, plan, lambda item: agent_end(item, self.rundir.blobs.get)
                )
            return await self._fill(slot, plan, command_end)

    # How it is obtained.

    async def _fill[T: Done | Broken | Grade](
        self, slot: Slot, plan: Plan, conclude: Callable[[Artifacts], T]
    ) -> Filled[T]:
        """Return the slot's result; infrastructure failures are tried again as new attempts (D4).

        A refusal that an earlier command stopped at is no answer: the credential may have been
        renewed since, so it is tried once more, whatever retries are left.

        Raises:
            GapError, BudgetError, RemoteError: the run stops here and can be resumed.

        """
        attempts = self.protocol.spec.budget.max_retries + 1
        for attempt in itertools.count(1):
            uuid = execution_id(self.rundir.run_id, slot.key, attempt)
            was_captured = uuid in self.ledger.captured
            artifacts = await self._attempt(slot, attempt, plan)
            meaning = conclude(artifacts)
            await self._keep(slot, attempt, artifacts, meaning)
            if isinstance(meaning, Broken) and is_refusal(meaning.cause):
                retries = may_pass(meaning.cause) and attempt < attempts
                if was_captured:
                    attempts += 1
                elif not retries or not self._can_retry(slot, attempt + 1):
                    await self._refuse(slot, attempt, meaning)
                continue
            again = isinstance(meaning, Broken) and is_worth_another_attempt(meaning)
            if not again or attempt >= attempts or not self._can_retry(slot, attempt + 1):
                return Filled(artifacts, meaning)
        raise AssertionError("a slot has at least one attempt")

    async def _refuse(self, slot: Slot, attempt: int, meaning: Broken) -> None:
        """Begin nothing more, since it would be refused like this one; never returns."""
        runtime, path = self.protocol.spec.runtime, self.rundir.path
        where, next_step = f"{slot.key} #{attempt}", f"xgent-evolve resume --run {path}"
        self.gate.close(refusal_error(meaning, runtime, where=where, next_step=next_step))
        await asyncio.Event().wait()

    async def _attempt(self, slot: Slot, attempt: int, plan: Plan) -> Artifacts:
        """Return one attempt's artifacts: replayed when they are complete, else obtained."""
        uuid = execution_id(self.rundir.run_id, slot.key, attempt)
        captured = self.ledger.captured.get(uuid)
        if captured is not None and uuid in self.ledger.cleaned:
            if self.replay_only:
                self._require_request(slot, attempt, plan)
            return load_artifacts(self.rundir, captured.artifacts)
        if self.replay_only:
            raise unrecorded(slot, attempt)
        await self.gate.enter()
        try:
            if uuid not in self.ledger.intents:
                self._require_budget(slot, uuid)
            planner = await self.preflight.planner()
            return await self.executor.execute(plan(planner, uuid), slot.key, attempt)
        except (BudgetError, GapError) as stop:
            # What is under way comes to its end; then the run stops with this reason.
            self.gate.close(stop)
        finally:
            self.gate.leave()
        await asyncio.Event().wait()
        raise AssertionError("nothing waits behind a closed gate")

    def _require_request(self, slot: Slot, attempt: int, plan: Plan) -> None:
        """Require that what was asked of the host is what the study asks, byte for byte."""
        uuid = execution_id(self.rundir.run_id, slot.key, attempt)
        wanted = plan(self.preflight.recorded(), uuid).request.sha256()
        registered = self.ledger.intents[uuid].request_sha256
        if registered != wanted:
            raise StoreError(
                "an execution was asked for something else than the study asks",
                code="E_STORE_REQUEST",
                where=f"{slot.key} #{attempt} ({uuid})",
                expected=wanted,
                found=registered,
                fix="the evidence is not that of this study: restore the run from a copy",
            )

    def _require_budget(self, slot: Slot, uuid: str) -> None:
        budget = self.protocol.spec.budget
        require_time(budget, time.monotonic() - self._started, slot.key)
        if slot.kind in PAID:
            account = account_of(slot.purpose)
            registered = self._of(self._paid, account)
            require_paid(budget, account, len(registered), slot.key)
            # Counted from here on, since the intent becomes durable only after a pause in which
            # others ask.
            registered.add(uuid)

    def _can_retry(self, slot: Slot, attempt: int) -> bool:
        """Say whether another attempt is affordable beside the first attempts of the batch.

        What is registered and what is promised grow together, so what was refused once is refused
        when the run is replayed, and what was registered is not asked again.
        """
        uuid = execution_id(self.rundir.run_id, slot.key, attempt)
        if slot.kind not in PAID or uuid in self.ledger.intents:
            return True
        account = account_of(slot.purpose)
        committed = self._of(self._paid, account) | self._of(self._promised, account)
        return len(committed) < allowance(self.protocol.spec.budget, account)

    @staticmethod
    def _of(sets: dict[Account, set[str]], account: Account) -> set[str]:
        return sets.setdefault(account, set())

    async def _keep(
        self, slot: Slot, attempt: int, artifacts: Artifacts, meaning: Done | Broken | Grade
    ) -> None:
        """Keep the attempt for the report and, once, in results.jsonl."""
        # What an optimizer leaves is a proposal, which nobody grades.
        case = None if slot.kind == "optimizer" else self.spec_case(slot.case)
        row = attempt_row(slot, attempt, artifacts, meaning, case)
        self.attempts.append(row)
        self._latest[slot] = row.uuid
        if row.uuid not in self._recorded and not self.replay_only:
            self._recorded.add(row.uuid)
            document = attempt_document(row)
            async with self._results:
                await asyncio.to_thread(self.rundir.append_results, [document])
        word = result_word(meaning)
        self.observer.tell(
            SlotDone(slot.key, attempt, slot.kind, word, row.detail, row.duration_ms)
        )


def unrecorded(slot: Slot, attempt: int) -> StoreError:
    """Return the refusal to obtain what a replay lacks."""
    return StoreError(
        "the recorded facts do not hold an execution that the study needs",
        code="E_STORE_MISSING",
        where=f"{slot.key} #{attempt}",
        expected="receipts of its capture and cleanup",
        found="none",
        fix="restore the run directory from a copy",
    )
