"""Harbor's layout: a trial without a reward is an error and is in no mean."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from xgent_evolve.harbor.events import Usage
from xgent_evolve.harbor.job_layout import (
    Job,
    Span,
    Trial,
    engine_time,
    job_result,
    trial_names,
    trial_result,
)

TRIAL = Trial(
    execution="11111111-2222-3333-4444-555555555555",
    case="case",
    task_path="tasks/case",
    task_digest="blake3:00",
    condition="candidate",
    repeat=1,
    reward=1.0,
    cause=None,
    detail="",
    usage=Usage(100, 40, 10, 2),
    agent=Span(datetime(2026, 1, 1, 10, tzinfo=UTC), datetime(2026, 1, 1, 11, tzinfo=UTC)),
    grade=Span(),
    attempts=({"kind": "agent"}, {"kind": "agent"}, {"kind": "grade"}),
)
LOST = replace(
    TRIAL,
    execution="11111111-0000-3333-4444-555555555555",
    reward=None,
    cause="grade_timeout",
    detail="too slow",
    usage=None,
)
JOB = Job(
    study="study",
    protocol="blake3:11",
    run_id="99999999-2222-3333-4444-555555555555",
    condition="candidate",
    model="a-model",
    effort="high",
    codex_version="0.162.1",
    repeats=1,
    concurrency=2,
    trials=(TRIAL, LOST),
)


def test_a_trial_without_a_reward_is_in_no_mean() -> None:
    result: Any = job_result(JOB, trial_names(JOB.trials))
    (found,) = result["stats"]["evals"].values()
    assert found["metrics"] == [{"mean": 1.0}]
    assert (found["n_trials"], found["n_errors"]) == (1, 1)
    assert list(found["exception_stats"]) == ["VerifierTimeoutError"]
    assert result["stats"]["n_input_tokens"] == 100
    assert result["xgent"]["trials_of_unknown_usage"] == 1
    assert result["stats"]["n_retries"] == 2


def test_without_any_reward_there_is_no_mean_at_all() -> None:
    job = replace(JOB, trials=(LOST,))
    result: Any = job_result(job, trial_names(job.trials))
    (found,) = result["stats"]["evals"].values()
    assert found["metrics"] == []
    assert result["stats"]["n_input_tokens"] is None


def test_a_trial_says_why_it_has_no_reward() -> None:
    result: Any = trial_result(JOB, LOST, "case__1")
    assert result["verifier_result"] is None
    assert result["exception_info"]["exception_type"] == "VerifierTimeoutError"
    assert result["exception_info"]["exception_message"] == "grade_timeout: too slow"
    assert result["agent_result"]["n_input_tokens"] is None
    assert result["agent_result"]["cost_usd"] is None


def test_names_are_distinct_and_the_same_at_every_export() -> None:
    names = trial_names(JOB.trials)
    assert names == ["case__111111112", "case__111111110"]
    assert job_result(JOB, names) == job_result(JOB, names)


def test_a_time_that_is_none_is_unknown() -> None:
    assert engine_time("2026-12-01T05:24:42.709055684Z") == datetime(
        2026, 12, 1, 5, 24, 42, 709055, tzinfo=UTC
    )
    for text in ("0001-01-01T00:00:00Z", "", "yesterday", "2026-12-01T05:24:42"):
        assert engine_time(text) is None
