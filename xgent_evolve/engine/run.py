"""A run: the frozen protocol, the recorded facts, and the means to obtain missing ones.

A workflow awaits `trial`, `probe` and so on. Each looks its slot up in the journal; what is
recorded is replayed without the host, the rest is obtained through the execution protocol. Resume
is therefore the same code as run.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from xgent_evolve.canonical import Json
from xgent_evolve.engine.budget import require_time, require_trial
from xgent_evolve.engine.gate import Gate
from xgent_evolve.engine.preflight import Preflighter
from xgent_evolve.engine.refusal import is_refusal, may_pass, refusal_error
from xgent_evolve.engine.retry import is_worth_another_attempt
from xgent_evolve.engine.slots import AttemptRow, AttemptStatus, Slot
from xgent_evolve.errors import BudgetError, GapError, StoreError
from xgent_evolve.execution.events import Observer, SlotDone
from xgent_evolve.execution.executor import Executor, load_artifacts
from xgent_evolve.execution.facts import Ledger
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.causes import code_of
from xgent_evolve.harbor.delivery import find_refusal
from xgent_evolve.harbor.outcome import Broken, Done, Grade, agent_end, command_end, grade_end
from xgent_evolve.harbor.requests import Planned, Planner
from xgent_evolve.ids import ExecutionId, execution_id
from xgent_evolve.measure.outcomes import Row, Scored, Unscored
from xgent_evolve.spec.cases import Case
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
    replay_only: bool = False
    """Whether what is not recorded is an error instead of a reason to reach for the host."""
    attempts: list[AttemptRow] = field(default_factory=list[AttemptRow])
    """Every attempt that this process has seen the result of, replayed ones included."""
    _places: asyncio.Semaphore = field(init=False)
    _results: asyncio.Lock = field(default_factory=asyncio.Lock)
    _started: float = field(default_factory=time.monotonic)
    _begun: set[str] = field(default_factory=set[str])
    _recorded: set[str] = field(default_factory=set[str])
    _refused: set[str] = field(default_factory=set[str])
    """Recorded attempts that the model's service refused before it answered anything."""

    def __post_init__(self) -> None:
        """Prepare the places for concurrent executions."""
        self._places = asyncio.Semaphore(self.protocol.spec.budget.max_concurrency)
        rows = recorded_attempts(self.rundir)
        self._recorded = {str(row["execution"]) for row in rows}
        self._refused = {
            str(row["execution"])
            for row in rows
            if row["usage"] is None and is_refusal(str(row["cause"]))
        }

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

    # What a workflow asks for.

    async def trial(self, condition: str, case_id: str, repeat: int) -> Row:
        """Measure one case under one condition once: the agent's work, then its grade.

        Both use the same place, so that a trial that was begun is finished before the next one.
        """
        async with self._places:
            return await self._trial(condition, case_id, repeat)

    async def _trial(self, condition: str, case_id: str, repeat: int) -> Row:
        case, frozen = self.spec_case(case_id), self.protocol.case(case_id)
        arm = self.protocol.condition(condition)
        slot = Slot("measure", condition, case_id, repeat, "agent")
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
        arm, frozen = self.protocol.condition(slot.condition), self.protocol.case(slot.case)
        filled = await self._fill(
            Slot(slot.purpose, slot.condition, slot.case, slot.repeat, "grade"),
            lambda planner, uuid: planner.grade(uuid, arm, frozen, changes, sources),
            lambda item: grade_end(item, self.rundir.blobs.get, case.verifier_exit),
        )
        return Graded(filled.meaning, filled.artifacts)

    async def command(self, slot: Slot, plan: Plan) -> Filled[Done | Broken]:
        """Carry out a probe, a login or a reference solution."""
        async with self._places:
            if slot.kind == "login":
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
                if was_captured:
                    attempts += 1
                elif attempt >= attempts or not may_pass(meaning.cause):
                    await self._refuse(slot, attempt, meaning)
                continue
            again = isinstance(meaning, Broken) and is_worth_another_attempt(meaning)
            if not again or attempt >= attempts:
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

    def _require_budget(self, slot: Slot, uuid: str) -> None:
        budget = self.protocol.spec.budget
        require_time(budget, time.monotonic() - self._started, slot.key)
        if slot.kind in ("agent", "login"):
            registered = {
                uuid
                for uuid, intent in self.ledger.intents.items()
                if intent.kind in ("agent", "login")
            }
            require_trial(budget, len((registered | self._begun) - self._refused), slot.key)
            # Counted from here on, since the intent becomes durable only after a pause in which
            # others ask.
            self._begun.add(uuid)

    async def _keep(
        self, slot: Slot, attempt: int, artifacts: Artifacts, meaning: Done | Broken | Grade
    ) -> None:
        """Keep the attempt for the report and, once, in results.jsonl."""
        row = attempt_row(slot, attempt, artifacts, meaning, self.spec_case(slot.case))
        self.attempts.append(row)
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


def attempt_row(
    slot: Slot, attempt: int, artifacts: Artifacts, meaning: Done | Broken | Grade, case: Case
) -> AttemptRow:
    """Return what an attempt came to."""
    status: AttemptStatus = "valid"
    cause: str | None = None
    detail, exit_code, usage = "", None, None
    match meaning:
        case Done():
            exit_code, usage = meaning.exit_code, meaning.usage
            if meaning.timed_out:
                status, cause = "behaviour_failure", "time_limit"
        case Broken():
            status, cause, detail, usage = "invalid", meaning.cause, meaning.detail, meaning.usage
        case Grade(outcome=outcome):
            exit_code = meaning.exit_code
            if isinstance(outcome, Unscored):
                status, cause, detail = "invalid", outcome.cause, outcome.detail
            elif outcome.value < 1:
                status, cause = "behaviour_failure", "reward_0"
    refusal = None if artifacts.delivery is None else find_refusal(artifacts.delivery, case)
    if refusal is not None:
        status, cause = "behaviour_failure", refusal.cause
        detail = ", ".join(refusal.paths[:5])
    return AttemptRow(
        slot=slot,
        attempt=attempt,
        uuid=artifacts.uuid,
        status=status,
        cause=cause,
        detail=detail,
        exit_code=exit_code,
        duration_ms=artifacts.duration_ms(),
        usage=usage,
        redactions=artifacts.redactions,
    )


def attempt_document(row: AttemptRow) -> dict[str, Json]:
    """Return the line of results.jsonl."""
    usage = row.usage
    return {
        "slot": row.slot.key,
        "attempt": row.attempt,
        "execution": row.uuid,
        "kind": row.slot.kind,
        "condition": row.slot.condition,
        "case": row.slot.case,
        "repeat": row.slot.repeat,
        "status": row.status,
        "cause": row.cause,
        "code": code_of(row.cause) if row.status == "invalid" and row.cause else None,
        "detail": row.detail,
        "exit_code": row.exit_code,
        "duration_ms": row.duration_ms,
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input,
            "cached_input_tokens": usage.cached_input,
            "output_tokens": usage.output,
            "reasoning_output_tokens": usage.reasoning_output,
        },
    }


def result_word(meaning: Done | Broken | Grade) -> str:
    """Return one word for a watcher."""
    match meaning:
        case Broken():
            return "broken"
        case Done(timed_out=timed_out):
            return "timed_out" if timed_out else "ended"
        case Grade(outcome=outcome):
            if isinstance(outcome, Unscored):
                return "unscored"
            return "passed" if outcome.value == 1 else "failed"


def recorded_attempts(rundir: RunDir) -> list[dict[str, Json]]:
    """Return the lines of results.jsonl."""
    from xgent_evolve.harbor.events import json_lines

    if not rundir.results_path.exists():
        return []
    return list(json_lines(rundir.results_path.read_bytes()))
