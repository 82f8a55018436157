"""Jobs and trials as Harbor 0.24 keeps them on disk. Pure: facts in, documents out.

A condition is a job, so that Harbor's own comparison of jobs compares conditions. Aggregates are
ours: a trial without a reward is counted as an error and is in no mean.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from xgent_evolve.harbor.events import Usage

type Value = bool | int | float | str | list[Value] | dict[str, Value] | None
type Document = dict[str, Value]

ENVIRONMENT = "xgent_evolve.remote.host:Host"
"""Where the trials ran, as Harbor names environments that are not its own."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""A job's start where no engine told one; Harbor requires a time."""

EXCEPTIONS = {
    "time_limit": "AgentTimeoutError",
    "grade_timeout": "VerifierTimeoutError",
    "reward_missing": "RewardFileNotFoundError",
    "reward_malformed": "VerifierOutputParseError",
    "reward_ambiguous": "VerifierOutputParseError",
    "reward_contradicts_exit": "VerifierOutputParseError",
    "model_unauthorised": "AgentAuthenticationError",
    "model_unknown": "ModelNotFoundError",
    "model_quota_used_up": "ApiUsageLimitError",
    "model_rate_limited": "ApiRateLimitError",
    "model_unavailable": "ApiInternalServerError",
    "turn_failed": "NonZeroAgentExitCodeError",
    "turn_unfinished": "NonZeroAgentExitCodeError",
}
"""Harbor's word for a cause; a cause without one is `InfrastructureError`."""


@dataclass(frozen=True, slots=True)
class Span:
    """When something ran, by the engine's clock; None where it did not say."""

    started: datetime | None = None
    finished: datetime | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial: the last attempts at an agent's work and at its grade."""

    execution: str
    """UUID of the agent's execution; the trial's id in Harbor."""
    case: str
    task_path: str
    """The task's folder, as the JobSpec names it."""
    task_digest: str
    condition: str
    repeat: int
    reward: float | None
    """None when there is none; never 0 for that."""
    cause: str | None
    """Why there is none, or what else is to be known."""
    detail: str
    usage: Usage | None
    agent: Span
    grade: Span
    attempts: tuple[Document, ...]
    """Every attempt, the failed ones included, with its usage."""


@dataclass(frozen=True, slots=True)
class Job:
    """All trials of one condition."""

    study: str
    """The study's name: Harbor's dataset."""
    protocol: str
    """Digest of the frozen study."""
    run_id: str
    condition: str
    model: str | None
    effort: str | None
    codex_version: str
    repeats: int
    concurrency: int
    trials: tuple[Trial, ...]

    @property
    def name(self) -> str:
        """The job's directory."""
        return re.sub(r"[^\w.-]", "-", f"{self.study}__{self.condition}")


def trial_names(trials: Sequence[Trial]) -> list[str]:
    """Return the directory name of every trial, as Harbor forms them; all are distinct."""
    for length in range(7, 33):
        names = [f"{t.case[:32]}__{t.execution.replace('-', '')[:length]}" for t in trials]
        if len(set(names)) == len(names):
            return names
    raise ValueError("two trials of a job have one execution")


def job_config(job: Job) -> Document:
    """Return config.json of a job."""
    paths = dict.fromkeys(trial.task_path for trial in job.trials)
    return {
        "job_name": job.name,
        "n_attempts": job.repeats,
        "n_concurrent_trials": job.concurrency,
        "environment": {"import_path": ENVIRONMENT},
        "agents": [_agent_config(job)],
        "tasks": [{"path": path, "source": job.study} for path in paths],
    }


def trial_config(job: Job, trial: Trial, name: str) -> Document:
    """Return config.json of a trial."""
    return {
        "task": {"path": trial.task_path, "source": job.study},
        "trial_name": name,
        "trials_dir": job.name,
        "agent": _agent_config(job),
        "environment": {"import_path": ENVIRONMENT},
        "job_id": job_id(job),
    }


def trial_result(job: Job, trial: Trial, name: str) -> Document:
    """Return result.json of a trial."""
    span = Span(trial.agent.started, trial.grade.finished or trial.agent.finished)
    used = trial.usage
    return {
        "id": trial.execution,
        "task_name": trial.case,
        "trial_name": name,
        "trial_uri": f"{job.name}/{name}",
        "task_id": {"path": trial.task_path},
        "source": job.study,
        "task_checksum": trial.task_digest,
        "config": trial_config(job, trial, name),
        "agent_info": {
            "name": "codex",
            "version": job.codex_version,
            "model_info": None if job.model is None else {"name": job.model},
        },
        "agent_result": {
            "n_input_tokens": None if used is None else used.input,
            "n_cache_tokens": None if used is None else used.cached_input,
            "n_output_tokens": None if used is None else used.output,
            "cost_usd": None,
            "metadata": {
                "xgent": {
                    "execution": trial.execution,
                    "condition": trial.condition,
                    "repeat": trial.repeat,
                    "attempts": list(trial.attempts),
                }
            },
        },
        "verifier_result": None if trial.reward is None else {"rewards": {"reward": trial.reward}},
        "verifier_environment_mode": "separate",
        "exception_info": _exception(trial, span),
        **_times(span, zone="Z"),
        "agent_execution": _span(trial.agent),
        "verifier": _span(trial.grade),
    }


def job_result(job: Job, names: Sequence[str]) -> Document:
    """Return result.json of a job."""
    trials = job.trials
    starts = [t.agent.started for t in trials if t.agent.started is not None]
    ends = [end for t in trials if (end := t.grade.finished or t.agent.finished) is not None]
    span = Span(min(starts, default=EPOCH), max(ends, default=EPOCH))
    errors = [(n, t) for n, t in zip(names, trials, strict=True) if is_error(t)]
    used = [trial.usage for trial in trials if trial.usage is not None]
    key = "__".join(filter(None, ("codex", job.model, job.study)))
    return {
        "id": job_id(job),
        **_times(span, zone=""),
        "n_total_trials": len(trials),
        "stats": {
            "n_completed_trials": len(trials),
            "n_errored_trials": len(errors),
            "n_retries": sum(_retries(trial) for trial in trials),
            "evals": {key: _eval_stats(trials, names, errors)},
            "n_input_tokens": sum(u.input for u in used) if used else None,
            "n_cache_tokens": sum(u.cached_input for u in used) if used else None,
            "n_output_tokens": sum(u.output for u in used) if used else None,
            "cost_usd": None,
        },
        "xgent": {
            "protocol": job.protocol,
            "run": job.run_id,
            "condition": job.condition,
            "trials_of_unknown_usage": len(trials) - len(used),
        },
    }


def is_error(trial: Trial) -> bool:
    """Say whether Harbor shows an exception: no reward, or an agent that reached its limit."""
    return trial.reward is None or trial.cause == "time_limit"


def job_id(job: Job) -> str:
    """Return a UUID that names run and condition, the same at every export."""
    from uuid import UUID, uuid5

    return str(uuid5(UUID(job.run_id), f"harbor-job/{job.condition}"))


def _eval_stats(
    trials: Sequence[Trial], names: Sequence[str], errors: Sequence[tuple[str, Trial]]
) -> Document:
    rewards = [trial.reward for trial in trials if trial.reward is not None]
    by_reward: dict[str, list[Value]] = {}
    for name, trial in zip(names, trials, strict=True):
        if trial.reward is not None:
            by_reward.setdefault(str(trial.reward), []).append(name)
    by_exception: dict[str, list[Value]] = {}
    for name, trial in errors:
        by_exception.setdefault(exception_type(trial), []).append(name)
    return {
        "n_trials": len(rewards),
        "n_errors": len(errors),
        "metrics": [{"mean": math.fsum(rewards) / len(rewards)}] if rewards else [],
        "reward_stats": {"reward": {key: by_reward[key] for key in sorted(by_reward)}},
        "exception_stats": {key: by_exception[key] for key in sorted(by_exception)},
    }


def exception_type(trial: Trial) -> str:
    """Return Harbor's name for what went wrong."""
    return EXCEPTIONS.get(trial.cause or "", "InfrastructureError")


def _exception(trial: Trial, span: Span) -> Document | None:
    if not is_error(trial):
        return None
    return {
        "exception_type": exception_type(trial),
        "exception_message": ": ".join(filter(None, (trial.cause, trial.detail))),
        "exception_traceback": "",
        "occurred_at": time_text(span.finished or span.started or EPOCH, zone="Z"),
    }


def _agent_config(job: Job) -> Document:
    settings: Document = {"condition": job.condition}
    if job.effort is not None:
        settings["reasoning_effort"] = job.effort
    return {"name": "codex", "model_name": job.model, "kwargs": settings}


def _retries(trial: Trial) -> int:
    kinds = [attempt["kind"] for attempt in trial.attempts]
    return len(kinds) - len(set(map(str, kinds)))


def _span(span: Span) -> Document | None:
    return None if span.started is None and span.finished is None else _times(span, zone="Z")


def _times(span: Span, zone: str) -> Document:
    return {
        "started_at": None if span.started is None else time_text(span.started, zone),
        "finished_at": None if span.finished is None else time_text(span.finished, zone),
    }


def time_text(moment: datetime, zone: str) -> str:
    """Return a time in UTC; Harbor gives trials a zone and jobs none."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat() + zone


def engine_time(text: str) -> datetime | None:
    """Return a time as an engine tells it; None for its zero time and for anything else."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None or moment.year < 1970:
        return None
    return moment
