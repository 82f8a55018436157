"""Task check: whether the verifier can tell a solved task from an untouched one (SPEC-03).

A verifier that passes nobody, or everybody, makes every arm of a study equal, and nobody learns
why. So before anything is paid for, the reference solution of every measured task must be graded
1 and the untouched workspace 0. Both are ordinary executions with receipts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import Slot
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.errors import Fault, TaskCheckError, TrialError
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.ids import execution_id
from xgent_evolve.spec.cases import Case
from xgent_evolve.workflow.checks import Check, ended, graded_as

OUTSIDE = "W_TRIAL_CHANGES_OUTSIDE_WORKDIR"
EXECUTIONS = 3
"""Of one check: the untouched workspace graded, the reference solution run, and graded."""


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """What was found about one task."""

    case: str
    untouched: Check
    """Whether the untouched workspace is graded 0."""
    oracle: Check
    """Whether the reference solution is graded 1."""


def checked_cases(cases: Sequence[Case]) -> list[Case]:
    """Return the cases whose tasks are to be checked."""
    return [case for case in cases if case.oracle_check == "required"]


async def find_unknown(run: Run, memory: TaskMemory, cases: Sequence[Case]) -> list[Case]:
    """Return the cases whose tasks this run has to check itself."""
    return [
        case
        for case in checked_cases(cases)
        if not await memory.knows(case.id, begun=_has_begun(run, case.id))
    ]


async def require_sound_tasks(run: Run, memory: TaskMemory, cases: Sequence[Case]) -> None:
    """Check the tasks of these cases.

    Raises:
        TaskCheckError: E_SPEC_TASK_ORACLE, with every task that fails and what its verifier said.
        TrialError: E_TRIAL_INFRA: a check could not be carried out.

    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(check_task(run, case.id)) for case in cases]
    checks = [task.result() for task in tasks]
    require_sound(checks)
    for check in checks:
        await memory.passed(check.case)


def require_sound(checks: Sequence[TaskCheck]) -> None:
    """Raise as `require_sound_tasks` does, for checks that were carried out."""
    if faults := [fault for check in checks for fault in _faults(check)]:
        raise TaskCheckError(tuple(faults))
    for check in checks:
        for step in (check.untouched, check.oracle):
            if step.verdict == "broken":
                raise TrialError(
                    "a task could not be checked",
                    where=f"case {check.case}",
                    found=step.detail,
                    fix="bring the host back to order, then start another run",
                )


async def check_task(run: Run, case_id: str) -> TaskCheck:
    """Grade the untouched workspace and the reference solution of one case."""
    untouched, oracle = await asyncio.gather(_untouched(run, case_id), _oracle(run, case_id))
    return TaskCheck(case_id, untouched, oracle)


def _slots(run: Run, case_id: str) -> tuple[Slot, Slot]:
    condition = run.protocol.spec.baseline_condition
    return (
        Slot("untouched", condition, case_id, 1, "grade"),
        Slot("oracle", condition, case_id, 1, "oracle"),
    )


def _has_begun(run: Run, case_id: str) -> bool:
    """Say whether executions of the check are registered in this run."""
    return any(
        execution_id(run.rundir.run_id, slot.key, 1) in run.ledger.intents
        for slot in _slots(run, case_id)
    )


async def _untouched(run: Run, case_id: str) -> Check:
    slot, _ = _slots(run, case_id)
    return graded_as(run, await run.grade(slot, None), 0.0, "the untouched workspace")


async def _oracle(run: Run, case_id: str) -> Check:
    _, slot = _slots(run, case_id)
    case = run.protocol.case(case_id)
    arm = run.protocol.condition(slot.condition)
    solved = await run.command(slot, lambda planner, uuid: planner.oracle(uuid, arm, case))
    end = ended(run, solved.artifacts, solved.meaning)
    if end.verdict == "broken":
        return end
    # As in Harbor what the solution left is graded, however it ended.
    graded = await run.grade(slot, solved.artifacts)
    check = graded_as(run, graded, 1.0, "the reference solution")
    if check.verdict != "failed":
        return check
    lines = [check.detail]
    if end.detail:
        lines.append(f"the solution itself: {end.detail}")
    if told := outside_note(solved.artifacts, run.spec_case(case_id).repo_path):
        lines.append(told)
    return Check("failed", "\n".join(lines))


def outside_note(artifacts: Artifacts, workdir: str) -> str:
    """Return what a solution did that no delivery carries (PAT-10); nothing when it did not."""
    outside = artifacts.outside
    if outside is None or outside.count == 0:
        return ""
    named = ", ".join(outside.paths[:5])
    more = f" and {outside.count - 5} more" if outside.count > 5 else ""
    return f"{OUTSIDE}: it changed files outside of {workdir}, which is not graded: {named}{more}"


def _faults(check: TaskCheck) -> list[Fault]:
    """Return what is wrong with a task according to its check."""
    return [
        Fault(
            code="E_SPEC_TASK_ORACLE",
            message=message,
            where=f"case {check.case}",
            expected=expected,
            found=step.detail,
            fix='repair the task; or set "oracle_check" of the case to "unchecked", and every'
            " report says so",
        )
        for step, message, expected in (
            (
                check.oracle,
                "the verifier does not accept the reference solution",
                "reward 1 for solution/solve.sh",
            ),
            (
                check.untouched,
                "the verifier does not reject the untouched workspace",
                "reward 0 before any work",
            ),
        )
        if step.verdict == "failed"
    ]
