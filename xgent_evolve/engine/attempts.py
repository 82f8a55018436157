"""What one attempt came to, as it is kept for the report and in results.jsonl."""

from __future__ import annotations

from xgent_evolve.canonical import Json
from xgent_evolve.engine.slots import AttemptRow, AttemptStatus, Slot
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.causes import code_of
from xgent_evolve.harbor.delivery import find_hooks, find_refusal
from xgent_evolve.harbor.events import json_lines
from xgent_evolve.harbor.outcome import Broken, Done, Grade
from xgent_evolve.measure.outcomes import Unscored
from xgent_evolve.spec.cases import Case
from xgent_evolve.store.rundir import RunDir


def attempt_row(
    slot: Slot,
    attempt: int,
    artifacts: Artifacts,
    meaning: Done | Broken | Grade,
    case: Case | None,
) -> AttemptRow:
    """Return what an attempt came to; `case` is None when what it left is no delivery."""
    status: AttemptStatus = "valid"
    cause: str | None = None
    detail, exit_code, usage = "", None, None
    match meaning:
        case Done():
            exit_code, usage = meaning.exit_code, meaning.usage
            if meaning.timed_out:
                status, cause = "behaviour_failure", "time_limit"
        case Broken():
            status, cause, detail, usage = "invalid", meaning.cause, meaning.detail, meaning.usage
        case Grade(outcome=outcome):
            exit_code = meaning.exit_code
            if isinstance(outcome, Unscored):
                status, cause, detail = "invalid", outcome.cause, outcome.detail
            elif outcome.value < 1:
                status, cause = "behaviour_failure", "reward_0"
    delivery = artifacts.delivery
    refusal = None if delivery is None or case is None else find_refusal(delivery, case)
    if refusal is not None:
        status, cause = "behaviour_failure", refusal.cause
        detail = ", ".join(refusal.paths[:5])
    return AttemptRow(
        slot=slot,
        attempt=attempt,
        uuid=artifacts.uuid,
        status=status,
        cause=cause,
        detail=detail,
        exit_code=exit_code,
        duration_ms=artifacts.duration_ms(),
        usage=usage,
        redactions=artifacts.redactions,
        hooks=() if delivery is None or case is None else find_hooks(delivery),
    )


def attempt_document(row: AttemptRow) -> dict[str, Json]:
    """Return the line of results.jsonl."""
    usage = row.usage
    return {
        "slot": row.slot.key,
        "attempt": row.attempt,
        "execution": row.uuid,
        "kind": row.slot.kind,
        "condition": row.slot.condition,
        "case": row.slot.case,
        "repeat": row.slot.repeat,
        "status": row.status,
        "cause": row.cause,
        "code": code_of(row.cause) if row.status == "invalid" and row.cause else None,
        "detail": row.detail,
        "exit_code": row.exit_code,
        "duration_ms": row.duration_ms,
        "usage": None
        if usage is None
        else {
            "input_tokens": usage.input,
            "cached_input_tokens": usage.cached_input,
            "output_tokens": usage.output,
            "reasoning_output_tokens": usage.reasoning_output,
        },
    }


def result_word(meaning: Done | Broken | Grade) -> str:
    """Return one word for a watcher."""
    match meaning:
        case Broken():
            return "broken"
        case Done(timed_out=timed_out):
            return "timed_out" if timed_out else "ended"
        case Grade(outcome=outcome):
            if isinstance(outcome, Unscored):
                return "unscored"
            return "passed" if outcome.value == 1 else "failed"


def recorded_attempts(rundir: RunDir) -> list[dict[str, Json]]:
    """Return the lines of results.jsonl."""
    if not rundir.results_path.exists():
        return []
    return list(json_lines(rundir.results_path.read_bytes()))
