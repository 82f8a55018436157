"""The pure rules of the engine: budget, retries, the gate, and slots."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from xgent_evolve.engine.budget import account_of, allowance, require_paid, require_time
from xgent_evolve.engine.gate import Gate
from xgent_evolve.engine.refusal import is_refusal, may_pass, refusal_error
from xgent_evolve.engine.retry import is_worth_another_attempt
from xgent_evolve.engine.slots import Slot
from xgent_evolve.errors import BudgetError, XgentError
from xgent_evolve.harbor.outcome import Broken
from xgent_evolve.ids import RunId, execution_id
from xgent_evolve.spec.models_v1 import Budget, ControllerEnv, HostFile, Runtime
from xgent_evolve.spec.shape import fit

RUN = RunId("3f2b2c1e-6f0e-4f6a-9a43-2f3f0f1a2b3c")


def budget(**fields: Any) -> Budget:
    common = {
        "max_trials": 10,
        "max_concurrency": 2,
        "trial_timeout_s": 60,
        "deadline_s": 100,
        "recovery_window_s": 5,
        "max_retries": 1,
    }
    return Budget(**{**common, **fields})


def test_what_is_reserved_for_confirmation_cannot_be_spent_before() -> None:
    require_paid(budget(confirmation_trials=4), "selection", 5, "slot")
    with pytest.raises(BudgetError) as caught:
        require_paid(budget(confirmation_trials=4), "selection", 6, "slot")
    assert caught.value.code == "E_BUDGET_TRIALS"
    assert "4 reserved" in caught.value.expected


def test_no_account_is_spent_for_another() -> None:
    given = budget(confirmation_trials=4, max_candidates=3)
    accounts = [account_of(purpose) for purpose in ("measure", "smoke", "confirm", "propose")]
    assert accounts == ["selection", "selection", "confirmation", "proposals"]
    assert [allowance(given, account) for account in accounts] == [6, 6, 4, 6]
    for account, limit in (("selection", 6), ("confirmation", 4), ("proposals", 6)):
        require_paid(given, account, limit - 1, "slot")
        with pytest.raises(BudgetError):
            require_paid(given, account, limit, "slot")


def test_after_the_deadline_nothing_new_starts() -> None:
    require_time(budget(), 99.9, "slot")
    with pytest.raises(BudgetError) as caught:
        require_time(budget(), 100, "slot")
    assert caught.value.code == "E_BUDGET_DEADLINE"


@pytest.mark.parametrize("cause", ["killed", "turn_failed", "model_unavailable", "resolved_lost"])
def test_a_passing_trouble_is_tried_again(cause: str) -> None:
    assert is_worth_another_attempt(Broken(cause, ""))


@pytest.mark.parametrize("cause", ["contaminated", "create_image_missing", "cancelled"])
def test_what_would_fail_again_is_not_paid_for_again(cause: str) -> None:
    assert not is_worth_another_attempt(Broken(cause, ""))


REFUSALS = {
    "model_unauthorised": ("E_TRIAL_AUTH", "put a valid one into the variable KEY; then: go on"),
    "model_quota_used_up": ("E_TRIAL_QUOTA", "raise it there"),
    "model_unknown": ("E_TRIAL_MODEL", "have the model enabled there"),
    "model_unreachable": ("E_TRIAL_MODEL_UNREACHABLE", "see with `doctor`"),
}


@pytest.mark.parametrize("cause", REFUSALS)
def test_a_refusal_names_its_cure_and_the_command_that_goes_on(cause: str) -> None:
    assert is_refusal(cause)
    assert may_pass(cause) == (cause == "model_unreachable")
    source = ControllerEnv(source="controller_env", name="KEY")
    error = refused(cause, source)
    code, cure = REFUSALS[cause]
    assert (error.code, error.exit_code, error.found) == (code, 4, "said no")
    assert error.fix.startswith(cure)
    assert error.fix.endswith("; then: go on")


def test_a_refused_login_of_the_host_names_its_file() -> None:
    source = HostFile(source="host_file", path="~/.codex/auth.json")
    error = refused("model_unauthorised", source)
    assert error.fix.startswith("renew ~/.codex/auth.json on the host h; ")


def refused(cause: str, source: ControllerEnv | HostFile) -> XgentError:
    runtime, _ = fit(
        Runtime,
        {
            "ssh": {"host": "h"},
            "remote_root": "/srv/x",
            "docker": {"path": "/usr/bin/docker", "version": "20.10"},
            "codex": {"version": "0.162.1", "architecture": "x86_64"},
            "authentication": dict(source.document()),
        },
    )
    assert runtime is not None
    return refusal_error(Broken(cause, "said no"), runtime, where="slot #1", next_step="go on")


@pytest.mark.parametrize(
    "cause", ["model_rate_limited", "model_unavailable", "turn_failed", "None"]
)
def test_what_may_pass_by_itself_does_not_stop_a_run(cause: str) -> None:
    assert not is_refusal(cause)


def test_an_execution_is_a_function_of_run_slot_and_attempt() -> None:
    slot = Slot("measure", "absent", "notes", 1, "agent")
    assert slot.key == "measure/absent/notes/1/agent"
    first = execution_id(RUN, slot.key, 1)
    assert first == execution_id(RUN, slot.key, 1)
    assert first != execution_id(RUN, slot.key, 2)
    assert first != execution_id(RunId("00000000-0000-4000-8000-000000000000"), slot.key, 1)


def test_a_closed_gate_lets_the_work_under_way_end_and_nothing_begin() -> None:
    async def scene() -> list[str]:
        gate, told = Gate(), list[str]()

        async def work(name: str, moments: int) -> None:
            await gate.enter()
            told.append(f"{name} begins")
            for _ in range(moments):
                await asyncio.sleep(0)
            told.append(f"{name} ends")
            gate.leave()

        first = asyncio.create_task(work("first", 5))
        await asyncio.sleep(0)
        gate.close(XgentError("enough"))
        gate.close(XgentError("a later reason"))
        late = asyncio.create_task(work("late", 1))
        reason = await gate.drained()
        told.append(reason.message)
        late.cancel()
        await first
        return told

    assert asyncio.run(scene()) == ["first begins", "first ends", "enough"]


def test_a_gate_that_is_closed_in_peace_is_drained_at_once() -> None:
    async def scene() -> str:
        gate = Gate()
        gate.close(XgentError("enough"))
        return (await gate.drained()).message

    assert asyncio.run(scene()) == "enough"
