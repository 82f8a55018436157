"""Compare: every declared condition on every case, as often as the protocol says."""

from __future__ import annotations

import itertools

from xgent_evolve.engine.run import Run, Trial
from xgent_evolve.engine.slots import Slot
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.errors import HostError
from xgent_evolve.execution.events import Planned
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.workflow.checks import sandbox_held
from xgent_evolve.workflow.task_check import EXECUTIONS, find_unknown, require_sound_tasks


async def prove_sandboxes(run: Run) -> None:
    """Prove once per image, before anything is paid for, that the agent's sandbox holds (E3).

    Raises:
        HostError: E_REMOTE_SANDBOX: it does not, with what the sandbox said.

    """
    first_of_image = {case.image: case.id for case in reversed(run.protocol.spec.cases)}
    for image, case_id in first_of_image.items():
        await prove_sandbox(run, image, case_id)


async def prove_sandbox(run: Run, image: str, case_id: str) -> None:
    """Prove that the agent's sandbox holds in one image; raises as `prove_sandboxes`.

    A failure that an earlier command recorded is not taken for an answer: the host may have been
    changed since, and another probe costs nothing.
    """
    spec = run.protocol.spec
    condition = spec.baseline_condition
    arm, case = run.protocol.condition(condition), run.protocol.case(case_id)
    for repeat in itertools.count(1):
        slot = Slot("preflight", condition, case_id, repeat, "probe")
        was_recorded = run.is_recorded(slot)
        probe = await run.command(slot, lambda planner, uuid: planner.probe(uuid, arm, case))
        check = sandbox_held(run, probe.artifacts, probe.meaning)
        if check.passed:
            return
        if not was_recorded:
            raise HostError(
                "the agent's sandbox does not hold on this host",
                code="E_REMOTE_SANDBOX",
                where=f"host {spec.runtime.ssh.host}: image {image}",
                expected="user namespaces, and a shell that sees its workspace and nothing else",
                found=check.detail,
                fix="see docs/isolation.md for what the host must allow; then resume: it is"
                " probed again",
            )


async def measure_conditions(run: Run, memory: TaskMemory) -> list[Row]:
    """Return one row per condition, case and repeat, in that order whatever ended first.

    Cases of the confirmation split are not touched: they are opened once, for a winner.
    """
    spec = run.protocol.spec
    cases = [case for case in spec.cases if case.split != "confirmation"]
    repeats = range(1, spec.measurement.repeats + 1)
    # Conditions alternate, so that a drift of the host or the service meets all of them alike.
    trials = [
        Trial(condition.id, case.id, repeat)
        for repeat in repeats
        for case in cases
        for condition in spec.conditions
    ]
    images = len({case.image for case in spec.cases})
    unknown = await find_unknown(run, memory, cases)
    planned = images + EXECUTIONS * len(unknown) + 2 * len(trials)
    run.observer.tell(Planned(executions=planned))
    await prove_sandboxes(run)
    await require_sound_tasks(run, memory, unknown)
    return await run.trials(trials)
