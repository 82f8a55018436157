"""A refusal closes the gate: what is under way is kept, and nothing new begins (CDX-03)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import Slot
from xgent_evolve.errors import TrialError, XgentError
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.facts import Captured, Ledger
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.outcome import Broken, Done
from xgent_evolve.ids import RunId, execution_id
from xgent_evolve.spec.runtime import ControllerEnv

RUN = RunId("3f2b2c1e-6f0e-4f6a-9a43-2f3f0f1a2b3c")
DONE = Done(timed_out=False, exit_code=0, usage=None)
LIMITS = {"max_retries": 1, "max_concurrency": 3, "max_trials": 9, "confirmation_trials": 0}


class Parts:
    """A run whose executions end when and how a test says."""

    def __init__(self, directory: Path, ends: dict[str, list[tuple[int, Any]]]) -> None:
        self.ends = {name: list(answers) for name, answers in ends.items()}
        self.began: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.meanings: dict[str, Any] = {}
        self.ledger = Ledger()
        budget = SimpleNamespace(**LIMITS, deadline_s=100)
        runtime = SimpleNamespace(authentication=ControllerEnv(source="controller_env", name="KEY"))
        spec = SimpleNamespace(
            budget=budget, runtime=runtime, cases=[SimpleNamespace(id=n) for n in ends]
        )
        rundir = SimpleNamespace(
            run_id=RUN,
            path=directory,
            results_path=directory / "results.jsonl",
            append_results=self.rows.extend,
            blobs=SimpleNamespace(get=None),
        )

        async def planner() -> None:
            return None

        self.run = Run(
            protocol=SimpleNamespace(spec=spec),
            rundir=rundir,
            executor=SimpleNamespace(ledger=self.ledger, execute=self.execute),
            preflight=SimpleNamespace(planner=planner),
            observer=Silent(),
        )

    async def execute(self, name: str, slot: str, attempt: int) -> Artifacts:
        self.began.append(f"{name}#{attempt}")
        moments, meaning = self.ends[name].pop(0)
        for _ in range(moments):
            await asyncio.sleep(0.01)
        uuid = execution_id(RUN, slot, attempt)
        self.meanings[uuid] = meaning
        return Artifacts(uuid=uuid, slot=slot, attempt=attempt, kind="agent")

    async def fill(self, name: str) -> None:
        slot = Slot("measure", "absent", name, 1, "agent")
        await self.run._fill(slot, lambda *_: name, lambda item: self.meanings[item.uuid])  # type: ignore[arg-type,return-value]

    def stop(self, *names: str) -> XgentError:
        """Fill slots at once until the gate is closed and drained; return its reason."""

        async def work() -> XgentError:
            tasks = [asyncio.create_task(self.fill(name)) for name in names]
            reason = await asyncio.wait_for(self.run.gate.drained(), 10)
            await asyncio.sleep(0.05)
            for task in tasks:
                task.cancel()
            return reason

        return asyncio.run(work())


def refused(cause: str = "model_unauthorised") -> Broken:
    return Broken(cause, "no")


def test_what_is_under_way_is_kept_and_nothing_new_begins(tmp_path: Path) -> None:
    parts = Parts(tmp_path, {"first": [(1, refused())], "slow": [(8, Broken("killed", ""))]})
    reason = parts.stop("first", "slow")
    assert isinstance(reason, TrialError)
    assert (reason.code, reason.exit_code) == ("E_TRIAL_AUTH", 4)
    assert parts.began == ["first#1", "slow#1"], "no retry of either"
    assert [(row["case"], row["cause"]) for row in parts.rows] == [
        ("first", "model_unauthorised"),
        ("slow", "killed"),
    ]


def test_a_service_that_is_away_gets_the_retries_of_its_slot(tmp_path: Path) -> None:
    away = refused("model_unreachable")
    parts = Parts(tmp_path, {"first": [(1, away), (1, away)]})
    assert parts.stop("first").code == "E_TRIAL_MODEL_UNREACHABLE"
    assert parts.began == ["first#1", "first#2"]


def test_a_service_that_comes_back_in_time_stops_nothing(tmp_path: Path) -> None:
    parts = Parts(tmp_path, {"first": [(1, refused("model_unreachable")), (1, DONE)]})
    asyncio.run(parts.fill("first"))
    assert parts.run.gate.reason is None
    assert [row["status"] for row in parts.rows] == ["invalid", "valid"]


@pytest.mark.parametrize("cause", ["model_unauthorised", "model_unreachable"])
def test_a_resumed_run_tries_what_was_refused_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cause: str
) -> None:
    parts = Parts(tmp_path, {"first": [(1, DONE)]})
    for attempt in (1, 2):
        uuid = execution_id(RUN, "measure/absent/first/1/agent", attempt)
        parts.ledger.captured[uuid] = Captured(uuid=uuid, artifacts=uuid)
        parts.ledger.cleaned.add(uuid)
        parts.meanings[uuid] = refused(cause)
    monkeypatch.setattr(
        "xgent_evolve.engine.run.load_artifacts",
        lambda _, uuid: Artifacts(uuid=uuid, slot="s", attempt=1, kind="agent"),
    )
    asyncio.run(parts.fill("first"))
    assert parts.began == ["first#3"]
    assert parts.run.gate.reason is None
