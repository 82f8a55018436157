"""Compare: every declared condition on every case, as often as the protocol says."""

from __future__ import annotations

import asyncio

from xgent_evolve.engine.run import Run
from xgent_evolve.execution.events import Planned
from xgent_evolve.measure.outcomes import Row


async def measure_conditions(run: Run) -> list[Row]:
    """Return one row per condition, case and repeat, in that order whatever ended first.

    Cases of the confirmation split are not touched: they are opened once, for a winner.
    """
    spec = run.protocol.spec
    cases = [case for case in spec.cases if case.split != "confirmation"]
    repeats = range(1, spec.measurement.repeats + 1)
    # Conditions alternate, so that a drift of the host or the service meets all of them alike.
    trials = [
        (condition.id, case.id, repeat)
        for repeat in repeats
        for case in cases
        for condition in spec.conditions
    ]
    run.observer.tell(Planned(executions=2 * len(trials)))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run.trial(*trial)) for trial in trials]
    return [task.result() for task in tasks]
