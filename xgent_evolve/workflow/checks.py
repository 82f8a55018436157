"""What a command's or a verifier's end says about something that should work."""

from __future__ import annotations

from dataclasses import dataclass

from xgent_evolve.engine.run import Run
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.outcome import Broken, Done, Grade, file_content
from xgent_evolve.measure.outcomes import Unscored


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    passed: bool
    detail: str


def ended_well(run: Run, artifacts: Artifacts, end: Done | Broken) -> Check:
    """Say whether a command ended with exit code 0, with the end of its output if not."""
    if isinstance(end, Broken):
        return Check(passed=False, detail=f"{end.cause}: {end.detail}")
    if end.timed_out:
        return Check(passed=False, detail="it reached its time limit")
    if end.exit_code == 0:
        return Check(passed=True, detail="")
    errors = file_content(artifacts, "stderr", run.rundir.blobs.get) or b""
    tail = errors.decode("utf-8", "replace").strip()[-300:]
    return Check(passed=False, detail=f"exit code {end.exit_code}: {tail}")


def graded_as(grade: Grade | Broken, expected: float, what: str) -> Check:
    """Say whether the verifier's reward is the expected one."""
    if isinstance(grade, Broken):
        return Check(passed=False, detail=f"{grade.cause}: {grade.detail}")
    outcome = grade.outcome
    if isinstance(outcome, Unscored):
        return Check(passed=False, detail=f"{outcome.cause}: {outcome.detail}")
    if outcome.value == expected:
        return Check(passed=True, detail="")
    detail = f"{what} is graded {outcome.value:g}, not {expected:g}"
    return Check(passed=False, detail=detail)
