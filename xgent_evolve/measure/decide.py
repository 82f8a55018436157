"""The verdict, from an interval and margins that were frozen before anything ran.

keep needs the whole interval above the smallest gain worth having and every floor held; discard
needs that gain excluded, or a floor missed; whatever falls short of evidence is inconclusive and
says why; a study without a scored pair is invalid (requirements G1 and G2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xgent_evolve.measure.comparison import (
    Decision,
    GuardrailResult,
    GuardrailStatus,
    Interval,
    Reason,
    ReasonCode,
    Verdict,
    Word,
)
from xgent_evolve.measure.pairing import TINY

_INSUFFICIENT: frozenset[ReasonCode] = frozenset({"too_few_groups", "no_variance", "missing_pairs"})


@dataclass(frozen=True, slots=True)
class Margins:
    """The thresholds of the protocol, as fractions."""

    min_gain: float
    non_inferiority: float
    required_groups: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict may look at."""

    paired_groups: int
    unpaired_cases: int
    interval: Interval | None
    envelope: Interval | None
    """The interval stretched by the missing trials; None exactly when `interval` is."""
    guardrails: tuple[GuardrailResult, ...]


def word(interval: Interval, margin: float) -> Word:
    """Say in one word what `interval` allows, given the non-inferiority margin."""
    if interval.low > TINY:
        return "better"
    if interval.high < -TINY:
        return "worse"
    if -margin + TINY < interval.low and interval.high < margin - TINY:
        return "equivalent"
    return "no-decision"


def lean(interval: Interval, min_gain: float) -> Decision:
    """Return the decision that `interval` alone supports."""
    if interval.low > min_gain + TINY:
        return "keep"
    return "discard" if interval.high < min_gain - TINY else "inconclusive"


def decide(evidence: Evidence, margins: Margins) -> Verdict:
    """Return the verdict with all its reasons, the decisive one first.

    A floor that is certainly missed discards on its own, whatever the interval says: it is an
    observation about the candidate, not an inference from groups.
    """
    if evidence.paired_groups == 0:
        reason = Reason("no_scored_pair", "No case has a scored trial under both conditions.")
        return Verdict("invalid", "no-decision", False, False, (reason,))
    shortfalls = tuple(_shortfalls(evidence, margins))
    envelope = evidence.envelope
    usable = None if any(r.code in _INSUFFICIENT for r in shortfalls) else envelope
    regressed = tuple(_floors(evidence.guardrails, "regressed"))
    decision, reasons = _decision(usable, margins, shortfalls, regressed)
    return Verdict(
        decision=decision,
        word="no-decision" if usable is None else word(usable, margins.non_inferiority),
        superior=usable is not None and usable.low > TINY,
        not_inferior=usable is not None and usable.low > -margins.non_inferiority + TINY,
        reasons=reasons,
    )


def _decision(
    usable: Interval | None,
    margins: Margins,
    shortfalls: tuple[Reason, ...],
    regressed: tuple[Reason, ...],
) -> tuple[Decision, tuple[Reason, ...]]:
    if regressed:
        return "discard", regressed + shortfalls
    gain = f"the smallest gain worth having ({_points(margins.min_gain)})"
    supported = "inconclusive" if usable is None else lean(usable, margins.min_gain)
    flipped = any(reason.code == "missing_flips_verdict" for reason in shortfalls)
    if supported == "inconclusive" and usable is not None and not flipped:
        spans = Reason("interval_spans_gain", f"The interval lies on both sides of {gain}.")
        shortfalls = (spans, *shortfalls)
    if shortfalls:
        return "inconclusive", shortfalls
    if supported == "keep":
        return "keep", (Reason("gain_shown", f"The whole interval lies above {gain}."),)
    return "discard", (Reason("gain_excluded", f"The whole interval lies below {gain}."),)


def _shortfalls(evidence: Evidence, margins: Margins) -> Iterator[Reason]:
    if evidence.paired_groups < margins.required_groups:
        yield Reason(
            "too_few_groups",
            f"{evidence.paired_groups} independent groups are paired; a decision needs "
            f"{margins.required_groups}.",
        )
    if evidence.interval is None or evidence.envelope is None:
        yield Reason(
            "no_variance",
            "All groups differ by the same amount, so their spread, and with it an interval, "
            "cannot be estimated.",
        )
    if evidence.unpaired_cases:
        yield Reason(
            "missing_pairs",
            f"{_count(evidence.unpaired_cases, 'case lacks', 'cases lack')} a scored trial under "
            "one of the two conditions.",
        )
    if _flips(evidence, margins):
        yield Reason(
            "missing_flips_verdict",
            "The decision changes between all missing trials taken as worst and all as best.",
        )
    yield from _floors(evidence.guardrails, "unknown")


def _flips(evidence: Evidence, margins: Margins) -> bool:
    if evidence.interval is None or evidence.envelope is None:
        return False
    return lean(evidence.interval, margins.min_gain) != lean(evidence.envelope, margins.min_gain)


def _floors(guardrails: Sequence[GuardrailResult], status: GuardrailStatus) -> Iterator[Reason]:
    for found in guardrails:
        if found.status != status:
            continue
        if status == "regressed":
            yield Reason(
                "guardrail_regressed",
                f"Guardrail {found.name} is at most {found.high:.3f}, below its floor "
                f"{found.floor:.3f}.",
            )
        else:
            yield Reason(
                "guardrail_unknown",
                f"Guardrail {found.name} is unknown: {found.known} of "
                f"{found.known + found.unknown} trials report it, which allows "
                f"{found.low:.3f} to {found.high:.3f} (floor {found.floor:.3f}).",
            )


def _points(fraction: float) -> str:
    return f"{fraction * 100:g} points"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
