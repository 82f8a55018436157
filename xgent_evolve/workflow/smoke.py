"""Smoke: does everything that a study needs work here? Nothing is paid for without a model.

For every case: the sandbox holds in its image, the untouched workspace is graded 0, and the
reference solution is graded 1. With a model, one call proves the credential. Smoke never qualifies
anything for adoption (requirement G2).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import Slot
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.execution.events import Planned
from xgent_evolve.workflow.checks import Check, ended, sandbox_held
from xgent_evolve.workflow.task_check import EXECUTIONS, TaskCheck, check_task, checked_cases


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """What was tried for one case; login is None when no model was called for it."""

    case: str
    probe: Check
    untouched: Check
    oracle: Check
    login: Check | None


async def check_cases(run: Run, memory: TaskMemory) -> list[CaseCheck]:
    """Return what was found for every case, in the order of the JobSpec."""
    spec = run.protocol.spec
    has_model = spec.runtime.model is not None
    checks = EXECUTIONS * len(checked_cases(spec.cases))
    run.observer.tell(Planned(executions=len(spec.cases) + checks + has_model))
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(check_case(run, memory, case.id, login=has_model and index == 0))
            for index, case in enumerate(spec.cases)
        ]
    return [task.result() for task in tasks]


async def check_case(run: Run, memory: TaskMemory, case_id: str, *, login: bool) -> CaseCheck:
    """Try everything for one case."""
    condition = run.protocol.spec.baseline_condition
    arm, case = run.protocol.condition(condition), run.protocol.case(case_id)

    async def probe() -> Check:
        slot = Slot("smoke", condition, case_id, 1, "probe")
        filled = await run.command(slot, lambda planner, uuid: planner.probe(uuid, arm, case))
        return sandbox_held(run, filled.artifacts, filled.meaning)

    async def checked() -> TaskCheck:
        if run.spec_case(case_id).oracle_check == "unchecked":
            unchecked = Check("not_run", 'oracle_check is "unchecked"')
            return TaskCheck(case_id, unchecked, unchecked)
        check = await check_task(run, case_id)
        if check.untouched.passed and check.oracle.passed:
            await memory.passed(case_id)
        return check

    async def proven_login(sandbox: Check) -> Check | None:
        if not login:
            return None
        if not sandbox.passed:
            return Check("not_run", "the sandbox does not hold, so no model is called")
        slot = Slot("smoke", condition, case_id, 1, "login")
        filled = await run.command(slot, lambda planner, uuid: planner.login(uuid, arm, case))
        return ended(run, filled.artifacts, filled.meaning)

    probed, task = await asyncio.gather(probe(), checked())
    logged_in = await proven_login(probed)
    return CaseCheck(case_id, probed, task.untouched, task.oracle, logged_in)
