"""From recorded facts to the report: every number again, from nothing but the run directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from xgent_evolve.canonical import digest_json
from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import AttemptRow
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.interaction import Crossing, Interaction, interact
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.remote.report import HostState
from xgent_evolve.report.inputs import (
    DIFF_CHARACTERS,
    Attempt,
    AttemptKind,
    Candidate,
    CaseLimits,
    Confirmed,
    Digests,
    Environment,
    Gap,
    Report,
    Search,
    SmokeCase,
    SmokeStep,
    Study,
    Tokens,
)
from xgent_evolve.search.text import studied_text, text_diff
from xgent_evolve.spec.bounds import compared_cases
from xgent_evolve.spec.cases import Case
from xgent_evolve.strategies.strategy import Refused, Step
from xgent_evolve.workflow.checks import Check
from xgent_evolve.workflow.confirm import Confirmation
from xgent_evolve.workflow.search import SearchResult
from xgent_evolve.workflow.smoke import CaseCheck


def comparison_report(run: Run, rows: Sequence[Row]) -> Report:
    """Return the report of a comparison."""
    protocol = run.protocol
    spec = protocol.spec
    others = [
        condition.id
        for condition in spec.conditions
        if condition.id not in (spec.baseline_condition, spec.candidate_condition)
    ]
    return Report(
        study=study_of(protocol),
        digests=digests_of(protocol),
        attempts=trial_attempts(run.attempts),
        environment=environment_of(run),
        comparison=compared(protocol, rows, spec.candidate_condition or ""),
        secondary=[compared(protocol, rows, other) for other in others],
        interaction=interaction_of(protocol, rows),
        gaps=[*redaction_gaps(run), *hook_gaps(run), *unchecked_gaps(compared_cases(spec))],
    )


def search_report(run: Run, result: SearchResult) -> Report:
    """Return the report of a search; its comparison is that of the confirmation."""
    protocol, confirmation = run.protocol, result.confirmation
    spec = protocol.spec
    candidates = tuple(candidate_of(run, step) for step in result.end.steps)
    digests = digests_of(protocol)
    measured = tuple((item.id, item.content) for item in run.candidates.values())
    return Report(
        study=study_of(protocol),
        digests=replace(digests, conditions=(*digests.conditions, *measured)),
        attempts=trial_attempts(run.attempts),
        environment=environment_of(run),
        comparison=confirmation.comparison,
        search=Search(
            strategy="hillclimb" if spec.optimizer is None else spec.optimizer.strategy,
            best=result.end.best.id,
            stop=result.end.stop,
            diagnosis=result.diagnosis,
            candidates=candidates,
        ),
        confirmation=Confirmed(
            confirmation.status, confirmation.candidate, confirmation.content, confirmation.reason
        ),
        gaps=[
            *redaction_gaps(run),
            *hook_gaps(run),
            *unchecked_gaps(spec.cases),
            *exposure_gaps(confirmation, sum(case.split == "confirmation" for case in spec.cases)),
        ],
    )


def exposure_gaps(confirmation: Confirmation, cases: int) -> list[Gap]:
    """Return a gap when another run had shown confirmation cases before."""
    if not confirmation.exposed:
        return []
    detail = (
        f"{confirmation.exposed} of {cases} confirmation cases had been shown by another run on"
        " this machine, so they may have selected this text"
    )
    return [Gap("confirmation_exposed", detail)]


def candidate_of(run: Run, step: Step) -> Candidate:
    """Return one step of a search as the report shows it."""
    answer = step.answer
    common = Candidate(
        number=step.number,
        id=None,
        parent=step.parent.id,
        content=None,
        decision=step.decision,
        reasons=answer.reasons if isinstance(answer, Refused) else (),
    )
    if answer.proposal is not None:
        common = replace(
            common,
            hypothesis=answer.proposal.hypothesis,
            expected_effect=answer.proposal.expected_effect,
            counterexample=answer.proposal.counterexample,
            changed_paths=answer.proposal.changed_paths,
        )
    if isinstance(answer, Refused) or step.comparison is None:
        return common
    target, blobs = run.protocol.spec.target, run.rundir.blobs
    before, after = (
        studied_text(target, run.condition(name), blobs)
        for name in (step.parent.id, answer.version.id)
    )
    diff = text_diff(before, after, blobs.get)
    return replace(
        common,
        id=answer.version.id,
        content=answer.version.content,
        reasons=tuple(reason.sentence for reason in step.comparison.verdict.reasons),
        diff=diff[:DIFF_CHARACTERS],
        diff_cut=len(diff) > DIFF_CHARACTERS,
        comparison=step.comparison,
    )


def smoke_report(run: Run, checks: Sequence[CaseCheck]) -> Report:
    """Return the report of a smoke run."""
    return Report(
        study=study_of(run.protocol),
        digests=digests_of(run.protocol),
        attempts=trial_attempts(run.attempts),
        environment=environment_of(run),
        smoke=[
            SmokeCase(
                case=check.case,
                probe=step_of(check.probe),
                untouched=step_of(check.untouched),
                oracle=step_of(check.oracle),
                agent=None if check.login is None else step_of(check.login),
            )
            for check in checks
        ],
        gaps=[*redaction_gaps(run), *hook_gaps(run), *unchecked_gaps(run.protocol.spec.cases)],
    )


def compared(protocol: Protocol, rows: Sequence[Row], candidate: str) -> Comparison:
    """Return one condition against the baseline condition."""
    spec = protocol.spec
    return compare(
        rows,
        baseline=spec.baseline_condition,
        candidate=candidate,
        measurement=spec.measurement,
        guardrails=spec.guardrails,
    )


def interaction_of(protocol: Protocol, rows: Sequence[Row]) -> Interaction | None:
    """Return the interaction of skill and AGENTS.md, when all four conditions were declared."""
    levels = ("baseline", "candidate")
    named = {(item.skill, item.agents): item.id for item in protocol.spec.conditions}
    crossed = [named.get(pair) for pair in product(levels, levels)]
    neither, agents, skill, both = crossed
    if neither is None or agents is None or skill is None or both is None:
        return None
    crossing = Crossing(neither=neither, agents=agents, skill=skill, both=both)
    return interact(rows, crossing, protocol.spec.measurement)


def study_of(protocol: Protocol) -> Study:
    """Return which study it is."""
    spec = protocol.spec
    return Study(protocol.digest(), spec.protocol_id, spec.question, spec.mode)


def digests_of(protocol: Protocol) -> Digests:
    """Return everything frozen that decides a score."""
    return Digests(
        conditions=tuple((item.id, item.content) for item in protocol.conditions),
        cases=tuple((item.id, digest_json(item.document())) for item in protocol.cases),
        payload=digest_json(protocol.payload),
        code=digest_json(protocol.code),
    )


def environment_of(run: Run) -> Environment | None:
    """Return what the trials ran on and within; None when no host was visited."""
    preflight, protocol = run.ledger.preflight, run.protocol
    if preflight is None:
        return None
    host = HostState.model_validate_json(run.rundir.blobs.get(preflight.facts))
    return Environment(
        architecture=host.architecture,
        engine=host.engine.version,
        security=tuple(host.engine.security),
        codex=protocol.spec.runtime.codex.version,
        manifest_sha256=preflight.tool_manifest_sha256,
        limits=tuple(
            CaseLimits(
                case=case.id,
                platform=case.platform,
                image=case.image,
                cpus=float(frozen.limits.cpus),
                memory_mb=frozen.limits.memory_mb,
                agent_timeout_s=frozen.limits.agent_timeout_s,
                grade_timeout_s=frozen.limits.grade_timeout_s,
            )
            for case, frozen in zip(protocol.spec.cases, protocol.cases, strict=True)
        ),
    )


_REPORTED: dict[str, AttemptKind] = {"agent": "agent", "optimizer": "optimizer"}


def trial_attempts(rows: Sequence[AttemptRow]) -> list[Attempt]:
    """Return the attempts of trials and proposals; what smoke tries has a table of its own."""
    return [
        Attempt(
            kind=_REPORTED.get(row.slot.kind, "grade"),
            condition=row.slot.condition,
            # The case lends an optimizer its image, nothing else.
            case="" if row.slot.kind == "optimizer" else row.slot.case,
            repeat=row.slot.repeat,
            attempt=row.attempt,
            status=row.status,
            cause=row.cause,
            exit_code=row.exit_code,
            duration_s=None if row.duration_ms is None else row.duration_ms / 1000,
            tokens=None
            if row.usage is None
            else Tokens(
                input=row.usage.input,
                cached_input=row.usage.cached_input,
                output=row.usage.output,
                reasoning_output=row.usage.reasoning_output,
            ),
        )
        for row in rows
        if row.slot.purpose in ("measure", "confirm", "propose")
    ]


def step_of(check: Check) -> SmokeStep:
    """Return a check as the report shows it."""
    return SmokeStep(check.verdict, check.detail)


def unchecked_gaps(cases: Sequence[Case]) -> list[Gap]:
    """Return a gap for every case whose verifier was not tried on anything known."""
    detail = "neither the reference solution nor the untouched workspace was graded"
    return [
        Gap("task_unchecked", detail, where=case.id)
        for case in cases
        if case.oracle_check == "unchecked"
    ]


def redaction_gaps(run: Run) -> list[Gap]:
    """Return a gap for every execution in whose output a secret had to be replaced."""
    return [
        Gap("secret_replaced", "a secret was replaced in what came back", where=row.slot.key)
        for row in run.attempts
        if row.redactions
    ]


def hook_gaps(run: Run) -> list[Gap]:
    """Return a gap for every trial whose delivery may have taken part in its own grading."""
    return [
        Gap(
            "test_hook_delivered",
            f"the delivery has {', '.join(row.hooks[:5])}, which a verifier that works in the"
            " workspace may have carried out",
            where=row.slot.key,
        )
        for row in run.attempts
        if row.hooks and row.slot.kind == "agent"
    ]
