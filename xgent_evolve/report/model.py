"""The report as a plain JSON document: words first, then numbers, then the evidence for them.

Durations are under keys that end in `_s` and nowhere else, so a reader can take them out and
compare what two runs of one protocol found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xgent_evolve.measure.comparison import Comparison, GuardrailResult, Interval, Missing
from xgent_evolve.measure.interaction import Interaction
from xgent_evolve.report.document import Document, JsonValue, clean, json_bytes, number
from xgent_evolve.report.environment import environment_document
from xgent_evolve.report.inputs import Attempt, Digests, Gap, Report, SmokeCase, SmokeStep
from xgent_evolve.report.lineage import confirmation_document, search_document
from xgent_evolve.report.resources import counts, resources, tokens_document, usage_known
from xgent_evolve.report.words import (
    comparison_words,
    no_comparison_words,
    search_words,
    smoke_words,
)

__all__ = ["Document", "JsonValue", "json_bytes", "report_document"]

SCHEMA_VERSION = 1
"""Version of the document; a released version never changes its meaning."""


def report_document(report: Report) -> Document:
    """Return the document of report.json (requirement G3).

    It is a function of the recorded facts: the order in which attempts, gaps and smoke cases are
    handed in does not matter, and nothing in it names a machine, a process or a time of day.
    """
    attempts = sorted(report.attempts, key=_attempt_order)
    comparison = report.comparison
    return {
        "schema_version": SCHEMA_VERSION,
        "study": {
            "protocol_digest": report.study.protocol_digest,
            "protocol_id": report.study.protocol_id,
            "question": clean(report.study.question),
            "mode": report.study.mode,
        },
        "verdict": _verdict(report),
        "comparison": None if comparison is None else _comparison(comparison),
        "secondary": [_comparison(other) for other in report.secondary],
        "interaction": None if report.interaction is None else _interaction(report.interaction),
        "guardrails": [] if comparison is None else [_guardrail(g) for g in comparison.guardrails],
        "search": None if report.search is None else search_document(report.search),
        "confirmation": confirmation_document(report.confirmation),
        "smoke": _smoke(report.smoke),
        "evidence_gaps": list(_gaps(report)),
        "counts": counts(attempts),
        "resources": resources(attempts, report.auxiliary),
        "attempts": [_attempt(attempt) for attempt in attempts],
        "environment": environment_document(report.environment),
        "digests": _digests(report.digests),
    }


def _verdict(report: Report) -> Document:
    if report.search is not None:
        return search_words(report.search, report.confirmation, report.comparison)
    if report.comparison is not None:
        return comparison_words(report.comparison)
    return no_comparison_words() if report.smoke is None else smoke_words(report.smoke)


def _comparison(comparison: Comparison) -> Document:
    return {
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "estimate": comparison.estimate,
        "interval": _interval(comparison.interval),
        "envelope": _interval(comparison.envelope),
        "confidence": comparison.confidence,
        "min_gain": comparison.min_gain,
        "non_inferiority_margin": comparison.non_inferiority_margin,
        "required_groups": comparison.required_groups,
        "paired_groups": comparison.paired_groups,
        "total_groups": comparison.total_groups,
        "paired_cases": comparison.paired_cases,
        "total_cases": comparison.total_cases,
        "repeats": comparison.repeats,
        "more_groups_would_decide": comparison.more_groups,
        "missing": _missing(comparison.missing),
        "signs": {
            "better": comparison.signs.better,
            "worse": comparison.signs.worse,
            "tied": comparison.signs.tied,
            "p_value": comparison.signs.p_value,
        },
        "agent_timeouts": {
            "baseline": comparison.agent_timeouts[0],
            "candidate": comparison.agent_timeouts[1],
        },
        "method": {
            "name": comparison.method,
            "resamples": comparison.resamples,
            "seed": comparison.seed,
        },
        "groups": _groups(comparison),
        "cases": _cases(comparison),
    }


def _missing(missing: Missing) -> Document:
    return {
        "expected_trials": missing.expected,
        "scored_trials": missing.scored,
        "missing_trials": missing.missing,
        "unpaired_cases": missing.unpaired_cases,
        "causes": dict(missing.causes),
        "estimate_if_worst": missing.low,
        "estimate_if_best": missing.high,
    }


def _groups(comparison: Comparison) -> list[JsonValue]:
    return [
        {
            "group": group.group,
            "weight": group.weight,
            "cases": group.cases,
            "paired_cases": group.paired,
            "difference": group.difference,
        }
        for group in comparison.groups
    ]


def _cases(comparison: Comparison) -> list[JsonValue]:
    return [
        {
            "case": case.case,
            "group": case.group,
            "difference": case.difference,
            "baseline": {
                "mean": case.baseline,
                "scored": case.baseline_scored,
                "missing": case.baseline_missing,
            },
            "candidate": {
                "mean": case.candidate,
                "scored": case.candidate_scored,
                "missing": case.candidate_missing,
            },
        }
        for case in comparison.cases
    ]


def _interaction(interaction: Interaction) -> Document:
    return {
        "conditions": {
            "neither": interaction.crossing.neither,
            "skill": interaction.crossing.skill,
            "agents": interaction.crossing.agents,
            "both": interaction.crossing.both,
        },
        "estimate": interaction.estimate,
        "interval": _interval(interaction.interval),
        "paired_groups": interaction.groups,
        "paired_cases": interaction.cases,
        "unpaired_cases": interaction.unpaired_cases,
    }


def _guardrail(found: GuardrailResult) -> Document:
    return {
        "name": found.name,
        "status": found.status,
        "floor": found.floor,
        "baseline": found.baseline,
        "candidate": found.candidate,
        "candidate_if_unknown_worst": found.low,
        "candidate_if_unknown_best": found.high,
        "known_trials": found.known,
        "unknown_trials": found.unknown,
    }


def _smoke(cases: Sequence[SmokeCase] | None) -> list[JsonValue] | None:
    if cases is None:
        return None
    return [
        {
            "case": case.case,
            "probe": _step(case.probe),
            "untouched": _step(case.untouched),
            "oracle": _step(case.oracle),
            "agent": _step(case.agent),
        }
        for case in sorted(cases, key=lambda case: case.case)
    ]


def _step(step: SmokeStep | None) -> Document | None:
    return None if step is None else {"status": step.status, "detail": clean(step.detail)}


def _gaps(report: Report) -> Iterator[JsonValue]:
    for gap in sorted([*report.gaps, *_known_gaps(report)], key=_gap_order):
        yield {"code": gap.code, "where": clean(gap.where), "detail": clean(gap.detail)}


def _known_gaps(report: Report) -> Iterator[Gap]:
    """Yield what follows from the comparison and the attempts, so that no caller forgets it."""
    shown = ("gain_shown", "gain_excluded", "guardrail_regressed", "interval_spans_gain")
    if report.comparison is not None:
        for reason in report.comparison.verdict.reasons:
            if reason.code not in shown:
                yield Gap(reason.code, reason.sentence)
        if report.comparison.missing.missing:
            missing = report.comparison.missing
            yield Gap(
                "missing_trials", f"{missing.missing} of {missing.expected} trials have no score."
            )
    agents = [attempt for attempt in report.attempts if attempt.kind == "agent"]
    unknown = sum(not usage_known(attempt) for attempt in agents)
    if unknown:
        yield Gap(
            "usage_unknown",
            f"Token usage is unknown for {unknown} of {len(agents)} agent executions, so no "
            "claim about cost is made.",
        )


def _gap_order(gap: Gap) -> tuple[str, str, str]:
    return (gap.code, gap.where, gap.detail)


def _attempt_order(attempt: Attempt) -> tuple[str, str, int, str, int]:
    return (attempt.case, attempt.condition, attempt.repeat, attempt.kind, attempt.attempt)


def _attempt(attempt: Attempt) -> Document:
    return {
        "condition": attempt.condition,
        "case": attempt.case,
        "repeat": attempt.repeat,
        "kind": attempt.kind,
        "attempt": attempt.attempt,
        "status": attempt.status,
        "cause": None if attempt.cause is None else clean(attempt.cause),
        "exit_code": attempt.exit_code,
        "duration_s": number(attempt.duration_s),
        "tokens": tokens_document(attempt),
    }


def _digests(digests: Digests) -> Document:
    return {
        "conditions": dict(digests.conditions),
        "cases": dict(digests.cases),
        "payload": digests.payload,
        "code": digests.code,
    }


def _interval(interval: Interval | None) -> Document | None:
    return None if interval is None else {"low": interval.low, "high": interval.high}
