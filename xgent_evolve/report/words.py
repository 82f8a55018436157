"""The verdict in words: the part of a report that everyone reads.

A difference is never named without its interval and its n, and what is missing stands in the
same line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xgent_evolve.measure.comparison import Comparison, Interval, Word
from xgent_evolve.report.document import Document, JsonValue
from xgent_evolve.report.inputs import Confirmed, Search, SmokeCase

SMOKE_SENTENCE = (
    "Smoke shows that a study can run; it says nothing about an effect and never qualifies a "
    "candidate for adoption."
)

_PHRASES: dict[Word, str] = {
    "better": "{candidate} is better than {baseline}",
    "worse": "{candidate} is worse than {baseline}",
    "equivalent": "{candidate} and {baseline} are equivalent within the margin",
    "no-decision": "no decision between {candidate} and {baseline}",
}


def comparison_words(comparison: Comparison) -> Document:
    """Return the verdict block of a comparison."""
    verdict = comparison.verdict
    phrase = _PHRASES[verdict.word].format(
        candidate=comparison.candidate, baseline=comparison.baseline
    )
    return {
        "decision": verdict.decision,
        "word": verdict.word,
        "sentence": f"{verdict.decision}: {phrase}.",
        "numbers": numbers_line(comparison),
        "superior": verdict.superior,
        "not_inferior": verdict.not_inferior,
        "reasons": [{"code": r.code, "sentence": r.sentence} for r in verdict.reasons],
        "next": list(_next_steps(comparison)),
    }


def smoke_words(cases: Sequence[SmokeCase]) -> Document:
    """Return the verdict block of smoke mode."""
    sound = [case.case for case in cases if _sound(case)]
    broken = sorted(case.case for case in cases if not _sound(case))
    if broken:
        step = f"Repair {', '.join(broken)}, then run smoke again."
    else:
        step = "Run a comparison with the same cases."
    return {
        "decision": None,
        "word": None,
        "sentence": f"smoke: {len(sound)} of {len(cases)} cases are sound. {SMOKE_SENTENCE}",
        "numbers": None,
        "superior": False,
        "not_inferior": False,
        "reasons": [],
        "next": [step],
    }


STOPS = {
    "candidates": "every proposal was made",
    "budget": "the budget holds no further candidate",
    "headroom": "the best text leaves no room for the smallest gain worth having",
}


def search_words(
    search: Search, confirmation: Confirmed, comparison: Comparison | None
) -> Document:
    """Return the verdict block of a search: what was confirmed, or that nothing changes."""
    kept = sum(candidate.decision == "keep" for candidate in search.candidates)
    tried = f"{count(len(search.candidates), 'proposal')}, {kept} kept"
    common: Document = {"word": "no-decision", "superior": False, "not_inferior": False}
    if comparison is None:
        why = STOPS.get(search.stop, search.stop)
        return {
            **common,
            "decision": "inconclusive",
            "sentence": f"no change: {confirmation.reason or 'nothing was confirmed'}"
            f" ({tried}; {why}).",
            "numbers": None,
            "reasons": [],
            "next": list(_after_no_change(search, kept)),
        }
    found = comparison_words(comparison)
    phrase = {
        "passed": f"confirmed: {confirmation.candidate} is better than {comparison.baseline}",
        "failed": f"not confirmed: {confirmation.candidate} does not bring the gain that the"
        " search saw",
        "inconclusive": f"not confirmed: the evidence for {confirmation.candidate} does not decide",
    }[confirmation.status]
    steps: list[JsonValue] = (
        ["Read the diff, then write it into the repository with xgent-evolve apply."]
        if confirmation.status == "passed"
        else ["Nothing is applied. These confirmation cases select nobody any more."]
    )
    return {**found, "sentence": f"{phrase} ({tried}).", "next": steps}


def _after_no_change(search: Search, kept: int) -> Iterator[str]:
    if search.stop == "headroom":
        yield "Take harder cases: agents solve these with the present text."
    elif kept:
        yield "Add confirmation cases and a reserve for them, then search again."
    else:
        yield "No change is a result too: the present text stays."


def no_comparison_words() -> Document:
    """Return the verdict block of a run that has neither a comparison nor a smoke result."""
    return {
        "decision": "invalid",
        "word": "no-decision",
        "sentence": "invalid: nothing was compared.",
        "numbers": None,
        "superior": False,
        "not_inferior": False,
        "reasons": [],
        "next": [],
    }


def numbers_line(comparison: Comparison) -> str:
    """Return estimate, interval, n and missing in one line; never one without the others."""
    missing = comparison.missing
    if missing.missing:
        lacking = (
            f"{missing.missing} of {missing.expected} trials missing "
            f"({points(missing.low)} if all worst, {points(missing.high)} if all best)"
        )
    else:
        lacking = f"0 of {missing.expected} trials missing"
    size = (
        f"n = {count(comparison.paired_groups, 'group')}, {count(comparison.paired_cases, 'case')}"
    )
    if comparison.estimate is None:
        return f"no estimate; {size}; {lacking}"
    if comparison.interval is None:
        return f"{points(comparison.estimate)} points, no interval; {size}; {lacking}"
    return (
        f"{points(comparison.estimate)} points {interval_text(comparison.interval)} at "
        f"{comparison.confidence * 100:g} %; {size}; {lacking}"
    )


def points(fraction: float | None) -> str:
    """Return a difference in points with its sign, such as `+6.2`; a dash when unknown."""
    if fraction is None:
        return "—"
    text = f"{fraction * 100:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def interval_text(interval: Interval) -> str:
    """Return an interval in points, such as `[-1.1, +13.5]`."""
    return f"[{points(interval.low)}, {points(interval.high)}]"


def count(number: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _sound(case: SmokeCase) -> bool:
    steps = [case.probe, case.untouched, case.oracle]
    if case.agent is not None:
        steps.append(case.agent)
    return all(step.status in ("passed", "not_run") for step in steps)


def _next_steps(comparison: Comparison) -> Iterator[str]:
    codes = {reason.code for reason in comparison.verdict.reasons}
    if comparison.verdict.decision == "keep":
        yield "Confirm on cases that nobody has seen: only a confirmed candidate can be applied."
    if "guardrail_regressed" in codes:
        yield "Read the trials in which the guardrail failed before changing the text again."
    if codes & {"missing_pairs", "missing_flips_verdict", "no_scored_pair"}:
        yield "Look at the invalid attempts below, repair their cause and run the study again."
    if "guardrail_unknown" in codes:
        yield "Have every grader write the guardrail to checks.json, or drop it from the study."
    if "no_variance" in codes:
        yield "Add cases on which the two conditions can differ, or more repeats."
    if comparison.more_groups is not None:
        yield (
            f"About {count(comparison.more_groups, 'more independent group')} would decide, if "
            "estimate and spread stay as they are."
        )
    elif codes & {"too_few_groups", "interval_spans_gain"}:
        yield "Add independent source groups; the present data cannot say how many are needed."
