"""What a command's or a verifier's end says about something that should work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xgent_evolve.engine.run import Graded, Run
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.outcome import Broken, Done, file_content, log_tail
from xgent_evolve.harbor.sandbox import failures, read_report
from xgent_evolve.measure.outcomes import Unscored

type Verdict = Literal["passed", "failed", "broken", "not_run"]
"""passed, failed: an observation. broken: the infrastructure failed, so there is none. not_run:
the JobSpec says that it is not tried."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried."""

    verdict: Verdict
    detail: str

    @property
    def passed(self) -> bool:
        """Whether it was observed to work."""
        return self.verdict == "passed"


def ended(run: Run, artifacts: Artifacts, end: Done | Broken) -> Check:
    """Say whether a command ended with exit code 0, with the end of its output if not."""
    if isinstance(end, Broken):
        return Check("broken", f"{end.cause}: {end.detail}")
    if end.timed_out:
        return Check("failed", "it reached its time limit")
    if end.exit_code == 0:
        return Check("passed", "")
    tail = log_tail(artifacts, run.rundir.blobs.get)[-300:]
    return Check("failed", f"exit code {end.exit_code}: {tail}")


def sandbox_held(run: Run, artifacts: Artifacts, end: Done | Broken) -> Check:
    """Say whether the check of the sandbox ended well, with what does not hold if not."""
    check = ended(run, artifacts, end)
    if check.verdict == "broken":
        return check
    printed = file_content(artifacts, "stdout", run.rundir.blobs.get) or b""
    wrong = failures(read_report(printed), run.protocol.spec.runtime)
    return Check("failed", ", ".join(wrong)) if wrong else check


def graded_as(run: Run, graded: Graded, expected: float, what: str) -> Check:
    """Say whether the verifier's reward is the expected one, with what it said if not."""
    grade = graded.meaning
    if isinstance(grade, Broken):
        return Check("broken", f"{grade.cause}: {grade.detail}")
    outcome = grade.outcome
    if isinstance(outcome, Unscored):
        detail = f"{what} is not graded: {outcome.cause}: {outcome.detail}"
    elif outcome.value == expected:
        return Check("passed", "")
    else:
        detail = f"{what} is graded {outcome.value:g}, not {expected:g}"
    tail = "" if graded.artifacts is None else log_tail(graded.artifacts, run.rundir.blobs.get)
    return Check("failed", f"{detail}; the verifier said:\n{tail}" if tail else detail)
