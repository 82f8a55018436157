"""Which task checks need not be repeated: those of which a fact or the cache says that they passed.

What the cache said becomes a fact of the run, so that replaying the run never asks it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from xgent_evolve.canonical import digest_json
from xgent_evolve.engine.run import Run
from xgent_evolve.execution.facts import TaskChecked, fact_document
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.inputs import HostFacts
from xgent_evolve.ids import Digest
from xgent_evolve.store.task_checks import TaskChecks


@dataclass(frozen=True, slots=True)
class TaskMemory:
    """What is known about the checks of a run's tasks."""

    run: Run
    cache: TaskChecks

    async def knows(self, case_id: str, *, begun: bool) -> bool:
        """Say whether the task's check has passed before.

        `begun` says that this run has registered executions of the check: then it finishes them.
        """
        ledger = self.run.ledger
        if case_id in ledger.task_checks:
            return True
        if begun or self.cache.directory is None:
            return False
        planner = await self.run.preflight.planner()
        key = check_key(self.run.protocol, case_id, planner.host)
        run_id = await asyncio.to_thread(self.cache.find, key)
        if run_id is None:
            return False
        fact = TaskChecked(case=case_id, key=key, run_id=run_id)
        await self.run.executor.journal.append_soon(fact_document(fact))
        ledger.apply(fact)
        return True

    async def passed(self, case_id: str) -> None:
        """Keep that this run has carried the check out and that it passed."""
        planner = self.run.preflight.visited
        if planner is None:
            return  # all of it was replayed, so there is nothing new
        key = check_key(self.run.protocol, case_id, planner.host)
        await asyncio.to_thread(self.cache.keep, key, self.run.rundir.run_id)


def check_key(protocol: Protocol, case_id: str, host: HostFacts) -> Digest:
    """Return the digest of everything that a task's check depends on. Pure."""
    frozen = protocol.case(case_id)
    case = next(item for item in protocol.spec.cases if item.id == case_id)
    in_workspace = frozen.workspace is not None
    baseline = protocol.condition(protocol.spec.baseline_condition)
    return digest_json(
        {
            "type": "xgent-evolve/task-check-key/1",
            "task": frozen.document(without={"id", "instruction", "public"}),
            "agents": baseline.agents if in_workspace else None,
            "repo_path": case.repo_path,
            "verifier_exit": case.verifier_exit,
            "protected_paths": case.protected_paths,
            "image": host.images[case.image].id,
            "platform": case.platform,
            "engine": host.engine_id,
            "payload": protocol.payload,
            "code": {name: protocol.code[name] for name in ("engine", "harbor", "workflow")},
        }
    )
