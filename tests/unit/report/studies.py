"""Small studies that the report tests share."""

from __future__ import annotations

from decimal import Decimal

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.interaction import Crossing, interact
from xgent_evolve.measure.outcomes import Outcome, Row, Scored, Unscored
from xgent_evolve.report.inputs import (
    Attempt,
    CaseLimits,
    Digests,
    Environment,
    Gap,
    Report,
    SmokeCase,
    SmokeStep,
    Study,
    Tokens,
)
from xgent_evolve.spec.models_v1 import Guardrail, Measurement

MEASUREMENT = Measurement(
    objective="task_success",
    min_gain=Decimal("0.02"),
    non_inferiority_margin=Decimal("0.05"),
    confidence=Decimal("0.95"),
    min_groups=6,
    repeats=2,
)
CONTRACT = Guardrail(name="task_contract", floor=Decimal("0.5"))
STYLE = Guardrail(name="style", floor=Decimal("0.8"))

_BASELINE = ((0, 0), (0, 1), (0, 0), (1, 0), (0, 0), (0, 0), (1, 1), (0, 0))
_CANDIDATE = ((1, 1), (1, 1), (1, 0), (1, 1), (1, 1), (0, 1), (1, 1), (1, 1))


def rows(lost: tuple[tuple[str, int], ...] = ()) -> list[Row]:
    """Eight groups of one case; (condition, case number) pairs in `lost` lose their last trial."""
    found: list[Row] = []
    for name, scores in (("baseline", _BASELINE), ("candidate", _CANDIDATE)):
        for number, repeats in enumerate(scores):
            for repeat, score in enumerate(repeats, 1):
                outcome: Outcome = Scored(float(score))
                if repeat == 2 and (name, number) in lost:
                    outcome = Unscored("grade_timeout", "no reward after 600 s")
                checks = (("style", 1.0 if outcome == Scored(1.0) else None),)
                found.append(
                    Row(f"case-{number}", f"group-{number}", name, repeat, outcome, checks=checks)
                )
    return found


def attempts(found: list[Row]) -> list[Attempt]:
    """One agent attempt and one grade attempt for every row."""
    made: list[Attempt] = []
    for index, row in enumerate(found):
        failed = row.outcome == Scored(0.0)
        place = (row.condition, row.case, row.repeat, 1)
        usage = Tokens() if index == 3 else Tokens(1000 + index, 800, 50 + index, 10)
        made.append(Attempt("agent", *place, "valid", None, 0, 12.5 + index, usage))
        match row.outcome:
            case Scored():
                status = "behaviour_failure" if failed else "valid"
                cause = "reward_0" if failed else None
                made.append(Attempt("grade", *place, status, cause, int(failed), 1.25))
            case Unscored(cause=cause):
                made.append(Attempt("grade", *place, "invalid", cause, None, None))
    return made


def study(mode: str) -> Study:
    """The identity of a study."""
    question = "Does the edited skill help?\x1b[31m <b>|pipe|</b>"
    return Study(digest_bytes(b"protocol"), "fix-timezone", question, mode)


def digests() -> Digests:
    """What was frozen."""
    return Digests(
        conditions=(("baseline", digest_bytes(b"b")), ("candidate", digest_bytes(b"c"))),
        cases=tuple((f"case-{n}", digest_bytes(bytes([n]))) for n in range(8)),
        payload=digest_bytes(b"payload"),
        code=digest_bytes(b"code"),
    )


def compared(found: list[Row], guardrails: tuple[Guardrail, ...] = (CONTRACT,)) -> Report:
    """A finished comparison."""
    comparison = compare(
        found,
        baseline="baseline",
        candidate="candidate",
        measurement=MEASUREMENT,
        guardrails=guardrails,
    )
    return Report(
        study("compare"), digests(), attempts(found), comparison, environment=environment()
    )


def environment() -> Environment:
    limits = CaseLimits("first", "linux/amd64", "sha256:" + "1" * 64, 1.5, 2048, 600, 120)
    return Environment("x86_64", "20.10.24", ("name=seccomp",), "0.162.1", "2" * 64, (limits,))


def kept() -> Report:
    """A clear gain with nothing missing."""
    return compared(rows())


def undecided() -> Report:
    """A case lost, a guardrail that is not always observed, crossed conditions, a gap."""
    found = [
        r
        for r in rows((("candidate", 2),))
        if not (r.condition == "candidate" and r.case == "case-7")
    ]
    report = compared(found, (CONTRACT, STYLE))
    crossing = Crossing("baseline", "candidate", "agents-only", "both")
    gap = Gap("execution_unresolved", "The end of one execution is unknown.", "candidate case-7 #1")
    return Report(
        study=report.study,
        digests=report.digests,
        attempts=report.attempts,
        comparison=report.comparison,
        secondary=(report.comparison,) if report.comparison else (),
        interaction=interact(found, crossing, MEASUREMENT),
        gaps=(gap,),
    )


def invalid() -> Report:
    """No trial has a score."""
    lost = [
        Row(r.case, r.group, r.condition, r.repeat, Unscored("agent_infrastructure", "engine gone"))
        for r in rows()
    ]
    return compared(lost)


def smoked() -> Report:
    """One sound case and one whose oracle is not accepted."""
    good = SmokeStep("passed")
    broken = SmokeStep("failed", "reward 0 | expected 1\nsee \x1b[2Jlog")
    cases = (
        SmokeCase("case-1", good, good, broken),
        SmokeCase("case-0", SmokeStep("passed", "codex 0.162.1"), good, good),
    )
    return Report(study("smoke"), digests(), smoke=cases)
