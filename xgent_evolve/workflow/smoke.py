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
from xgent_evolve.execution.events import Planned
from xgent_evolve.workflow.checks import Check, ended_well, graded_as


@dataclass(frozen=True, slots=True)
class CaseCheck:
    """What was tried for one case; login is None when no model was called for it."""

    case: str
    probe: Check
    untouched: Check
    oracle: Check
    login: Check | None


async def check_cases(run: Run) -> list[CaseCheck]:
    """Return what was found for every case, in the order of the JobSpec."""
    spec = run.protocol.spec
    has_model = spec.runtime.model is not None
    run.observer.tell(Planned(executions=4 * len(spec.cases) + has_model))
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(check_case(run, case.id, login=has_model and index == 0))
            for index, case in enumerate(spec.cases)
        ]
    return [task.result() for task in tasks]


async def check_case(run: Run, case_id: str, *, login: bool) -> CaseCheck:
    """Try everything for one case."""
    condition = run.protocol.spec.baseline_condition
    arm, case = run.protocol.condition(condition), run.protocol.case(case_id)

    async def probe() -> Check:
        slot = Slot("smoke", condition, case_id, 1, "probe")
        filled = await run.command(slot, lambda planner, uuid: planner.probe(uuid, arm, case))
        return ended_well(run, filled.artifacts, filled.meaning)

    async def untouched() -> Check:
        slot = Slot("untouched", condition, case_id, 1, "grade")
        return graded_as(await run.grade(slot, None), 0.0, "the untouched workspace")

    async def oracle() -> Check:
        slot = Slot("oracle", condition, case_id, 1, "oracle")
        solved = await run.command(slot, lambda planner, uuid: planner.oracle(uuid, arm, case))
        check = ended_well(run, solved.artifacts, solved.meaning)
        if not check.passed:
            return check
        return graded_as(await run.grade(slot, solved.artifacts), 1.0, "the reference solution")

    async def proven_login() -> Check | None:
        if not login:
            return None
        slot = Slot("smoke", condition, case_id, 1, "login")
        filled = await run.command(slot, lambda planner, uuid: planner.login(uuid, arm, case))
        return ended_well(run, filled.artifacts, filled.meaning)

    probed, bare, solved, logged_in = await asyncio.gather(
        probe(), untouched(), oracle(), proven_login()
    )
    return CaseCheck(case_id, probed, bare, solved, logged_in)
