"""What an execution's artifacts mean. Pure: the same record always gives the same conclusion."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from xgent_evolve.canonical import Json
from xgent_evolve.harbor.artifacts import Artifacts, LinkFile, StoredFile
from xgent_evolve.harbor.events import Turn, Usage, has_begun, model_error, turn_of, usage_of
from xgent_evolve.harbor.requests import COLLECTED
from xgent_evolve.ids import Digest
from xgent_evolve.measure.outcomes import Outcome, Scored, Unscored

VISIBILITY_CAUSES = ("contaminated", "skill_not_visible")
NOT_UNPACKED = 86
"""How a container ends that cannot unpack what was staged for it (docs/receipts.md)."""
NOT_UNPACKED_DETAIL = (
    "the container could not unpack its inputs, so its command was not started: is there space"
    " below the engine's data directory (docker info: Docker Root Dir)?"
)
type Read = Callable[[Digest], bytes]


@dataclass(frozen=True, slots=True)
class Done:
    """The command ran and its end is known."""

    timed_out: bool
    exit_code: int | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Broken:
    """The infrastructure failed; nothing is known about what was to be measured."""

    cause: str
    detail: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class Grade:
    """What the verifier said."""

    outcome: Outcome
    checks: tuple[tuple[str, float | None], ...]
    """Guardrail name and value between 0 and 1; None when it cannot be read."""
    exit_code: int | None


def command_end(artifacts: Artifacts) -> Done | Broken:
    """Return how the supervised command ended, whatever it was."""
    if artifacts.failure is not None:
        failure = artifacts.failure
        return Broken(f"{failure.stage}_{failure.cause}", failure.detail)
    record, engine = artifacts.record, artifacts.engine
    if record is None:
        cause = "out_of_memory" if engine is not None and engine.oom_killed else "killed"
        if not artifacts.command_started and engine and engine.exit_code == NOT_UNPACKED:
            return Broken("not_unpacked", NOT_UNPACKED_DETAIL)
        return Broken(cause, "the container ended before its supervisor could write a record")
    if record.status == "cancelled":
        return Broken("cancelled", "a person ended it")
    if record.status == "silent":
        return Broken("silent", "the command was stopped: it had written nothing since its start")
    if record.status != "ended":
        return Broken(record.status, "the command was not started")
    return Done(timed_out=record.expired, exit_code=record.exit_code, usage=None)


def agent_end(artifacts: Artifacts, read: Read) -> Done | Broken:
    """Return how the agent's turn ended.

    A time-out is a result: what the agent left is graded. A turn that the model's service ended is
    not: it says nothing about the text under study.
    """
    end = command_end(artifacts)
    if isinstance(end, Broken):
        found = file_content(artifacts, "prepare", read) or b""
        if end.cause in VISIBILITY_CAUSES and found:
            findings = found.decode("utf-8", "replace").split("\n")
            return Broken(end.cause, "; ".join(filter(None, findings))[:400])
        return end
    stdout = captured_output(artifacts, "stdout", read)
    sessions = [
        read(artifacts.blobs[item.sha256])
        for name, item in sorted(artifacts.files.items())
        if name.startswith("sessions/") and name.endswith(".jsonl") and isinstance(item, StoredFile)
    ]
    usage = usage_of(stdout, sessions)
    if end.timed_out:
        return Done(timed_out=True, exit_code=end.exit_code, usage=usage)
    turn = turn_of(stdout)
    if turn.status == "completed" and end.exit_code == 0:
        return Done(timed_out=False, exit_code=0, usage=usage)
    error = model_error(sessions)
    if error == "context_window_exceeded":
        # The agent filled its own context: that is behaviour, and what it left is graded.
        return Done(timed_out=False, exit_code=end.exit_code, usage=usage)
    errors = (file_content(artifacts, "stderr", read) or b"").decode("utf-8", "replace")
    detail = turn.message or errors.strip()[-400:] or f"exit code {end.exit_code}"
    return Broken(error or _unfinished_cause(turn, stdout, errors), detail, usage)


def _unfinished_cause(turn: Turn, stdout: bytes, errors: str) -> str:
    """Return why there is no completed turn: Codex may not even have begun one (CDX-01, CDX-02)."""
    if turn.status == "failed" or has_begun(stdout):
        return f"turn_{turn.status}"
    return "agent_sandbox" if "bwrap" in errors else "agent_not_started"


def grade_end(
    artifacts: Artifacts, read: Read, verifier_exit: Literal["must_agree", "ignored"]
) -> Grade | Broken:
    """Return the verifier's judgement, or why there is none (requirement F2).

    A missing, malformed or self-contradicting reward is unscored with its cause, never 0.
    """
    end = command_end(artifacts)
    if isinstance(end, Broken):
        return end
    checks = _checks(file_content(artifacts, f"{COLLECTED}/checks.json", read))
    if end.timed_out:
        outcome: Outcome = Unscored("grade_timeout", "the verifier reached its time limit")
        return Grade(outcome, checks, end.exit_code)
    return Grade(_reward(artifacts, read, end.exit_code, verifier_exit), checks, end.exit_code)


def _reward(
    artifacts: Artifacts,
    read: Read,
    exit_code: int | None,
    verifier_exit: Literal["must_agree", "ignored"],
) -> Outcome:
    has_json = f"{COLLECTED}/reward.json" in artifacts.files
    item = artifacts.files.get(f"{COLLECTED}/reward.txt")
    if has_json:
        # Harbor lets reward.json win; with two files nobody can say which one was meant.
        cause, other = (
            ("reward_malformed", "only") if item is None else ("reward_ambiguous", "also")
        )
        return Unscored(cause, f"there is {other} a reward.json; reward.txt alone is read")
    if isinstance(item, LinkFile):
        return Unscored("reward_malformed", "reward.txt is a link")
    text = file_content(artifacts, f"{COLLECTED}/reward.txt", read)
    if text is None or not text.strip():
        return Unscored("reward_missing", f"no reward.txt was written; exit code {exit_code}")
    if text.strip() not in (b"0", b"1"):
        return Unscored("reward_malformed", f"reward.txt holds {text[:40]!r}, not 0 or 1")
    reward = int(text)
    if verifier_exit == "must_agree" and (reward == 1) != (exit_code == 0):
        return Unscored("reward_contradicts_exit", f"reward {reward} with exit code {exit_code}")
    return Scored(float(reward))


def _checks(content: bytes | None) -> tuple[tuple[str, float | None], ...]:
    try:
        parsed = cast("Json", json.loads(content or b"{}"))
    except (ValueError, RecursionError):
        return ()
    if not isinstance(parsed, dict):
        return ()
    return tuple((name, _fraction(value)) for name, value in sorted(parsed.items()))


def _fraction(value: object) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return float(value)
    return None


def log_tail(artifacts: Artifacts, read: Read, limit: int = 2000) -> str:
    """Return the end of what a command said, errors last, for a person to read."""
    parts = [
        (
            file_content(artifacts, f"{name}.tail", read)
            or file_content(artifacts, name, read)
            or b""
        )
        for name in ("stdout", "stderr")
    ]
    texts = [part[-limit:].decode("utf-8", "replace").strip() for part in parts]
    return "\n".join(text for text in texts if text)[-limit:]


def captured_output(artifacts: Artifacts, name: str, read: Read) -> bytes:
    """Return what was kept of `stdout` or `stderr`: its head, and its tail when it was cut."""
    head = file_content(artifacts, name, read) or b""
    return head + (file_content(artifacts, f"{name}.tail", read) or b"")


def file_content(artifacts: Artifacts, name: str, read: Read) -> bytes | None:
    """Return a captured file's bytes, or None when there is none of that name."""
    item = artifacts.files.get(name)
    return read(artifacts.blobs[item.sha256]) if isinstance(item, StoredFile) else None
