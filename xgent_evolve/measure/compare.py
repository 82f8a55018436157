"""Compare two conditions: everything between the rows of a study and its verdict.

The result is a function of the rows and the frozen measurement alone. The order of the rows does
not matter, and exchanging the two conditions mirrors the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xgent_evolve.measure.bootstrap import METHOD, RESAMPLES, Resampled, resample
from xgent_evolve.measure.comparison import (
    CaseResult,
    Comparison,
    GroupResult,
    GuardrailResult,
    Interval,
    Missing,
    Signs,
    Verdict,
)
from xgent_evolve.measure.decide import Evidence, Margins, decide
from xgent_evolve.measure.guardrails import check_guardrail
from xgent_evolve.measure.missing import bounds, causes, envelope
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.measure.pairing import TINY, Contrast, PairedGroup, Pairing, pair
from xgent_evolve.measure.power import more_groups
from xgent_evolve.measure.rounding import rounded, rounded_interval
from xgent_evolve.spec.parts import PROVEN_GROUPS, Guardrail, Measurement


def compare(
    rows: Sequence[Row],
    *,
    baseline: str,
    candidate: str,
    measurement: Measurement,
    guardrails: Sequence[Guardrail],
) -> Comparison:
    """Return what `rows` say about the candidate condition against the baseline condition.

    Hand in every trial that the protocol asks for, unscored ones included; rows of further
    conditions are ignored except that their cases count. A trial without a row counts as not
    run, but a case without any row is unknown here.

    Raises:
        ValueError: there are no rows, the two conditions are one, a trial appears twice, or a
            case belongs to two groups.

    """
    if not rows or baseline == candidate:
        raise ValueError("a comparison needs rows and two different conditions")
    contrast: Contrast = ((baseline, -1), (candidate, 1))
    pairing = pair(rows, contrast, weights=measurement.weights, repeats=measurement.repeats)
    found = resample(
        pairing.paired_groups, confidence=float(measurement.confidence), seed=measurement.seed
    )
    floors = tuple(
        check_guardrail(
            rows,
            guardrail,
            baseline=baseline,
            candidate=candidate,
            weights=measurement.weights,
            repeats=measurement.repeats,
        )
        for guardrail in guardrails
    )
    analysis = _Analysis(rows, contrast, measurement, pairing, found, floors)
    return analysis.comparison()


@dataclass(frozen=True, slots=True)
class _Analysis:
    """The parts of one comparison on their way to the record."""

    rows: Sequence[Row]
    contrast: Contrast
    measurement: Measurement
    pairing: Pairing
    found: Resampled
    guardrails: tuple[GuardrailResult, ...]

    def comparison(self) -> Comparison:
        """Decide, round, and fill in the record."""
        (baseline, _), (candidate, _) = self.contrast
        paired, stretched = self.pairing.paired_groups, self._envelope()
        verdict = self._verdict(stretched)
        return Comparison(
            baseline=baseline,
            candidate=candidate,
            verdict=verdict,
            estimate=rounded(self.pairing.estimate),
            interval=rounded_interval(self.found.interval),
            envelope=rounded_interval(stretched),
            confidence=rounded(float(self.measurement.confidence)),
            min_gain=rounded(float(self.measurement.min_gain)),
            non_inferiority_margin=rounded(float(self.measurement.non_inferiority_margin)),
            required_groups=self._required_groups,
            paired_groups=len(paired),
            total_groups=len(self.pairing.groups),
            paired_cases=len(self.pairing.cases) - self.pairing.unpaired_cases,
            total_cases=len(self.pairing.cases),
            repeats=self.measurement.repeats,
            missing=_missing(self.rows, self.contrast, self.pairing),
            signs=_signs([difference for difference, _ in paired]),
            more_groups=self._more_groups(verdict),
            guardrails=self.guardrails,
            groups=tuple(_group_result(group) for group in self.pairing.groups),
            cases=tuple(result for group in self.pairing.groups for result in _case_results(group)),
            agent_timeouts=(_timeouts(self.rows, baseline), _timeouts(self.rows, candidate)),
            method=METHOD,
            resamples=RESAMPLES,
            seed=self.measurement.seed,
        )

    @property
    def _required_groups(self) -> int:
        return max(PROVEN_GROUPS, self.measurement.min_groups)

    def _envelope(self) -> Interval | None:
        if self.found.interval is None or self.pairing.estimate is None:
            return None
        return envelope(self.found.interval, self.pairing.estimate, bounds(self.pairing))

    def _verdict(self, stretched: Interval | None) -> Verdict:
        evidence = Evidence(
            paired_groups=len(self.pairing.paired_groups),
            unpaired_cases=self.pairing.unpaired_cases,
            interval=self.found.interval,
            envelope=stretched,
            guardrails=self.guardrails,
        )
        margins = Margins(
            min_gain=float(self.measurement.min_gain),
            non_inferiority=float(self.measurement.non_inferiority_margin),
            required_groups=self._required_groups,
        )
        return decide(evidence, margins)

    def _more_groups(self, verdict: Verdict) -> int | None:
        curable = {"interval_spans_gain", "too_few_groups"}
        if self.pairing.estimate is None or curable.isdisjoint(r.code for r in verdict.reasons):
            return None
        return more_groups(
            estimate=self.pairing.estimate,
            standard_error=self.found.standard_error,
            groups=len(self.pairing.paired_groups),
            required=self._required_groups,
            gain=float(self.measurement.min_gain),
            confidence=float(self.measurement.confidence),
        )


def _missing(rows: Sequence[Row], contrast: Contrast, pairing: Pairing) -> Missing:
    cells = [cell for case in pairing.cases for cell in case.cells]
    scored, missing = sum(cell.known for cell in cells), sum(cell.missing for cell in cells)
    limits = bounds(pairing)
    return Missing(
        expected=scored + missing,
        scored=scored,
        missing=missing,
        unpaired_cases=pairing.unpaired_cases,
        causes=causes(rows, contrast, missing),
        low=rounded(limits.low),
        high=rounded(limits.high),
    )


def _signs(differences: Sequence[float]) -> Signs:
    better = sum(difference > TINY for difference in differences)
    worse = sum(difference < -TINY for difference in differences)
    trials = better + worse
    tail = sum(math.comb(trials, k) for k in range(min(better, worse) + 1))
    return Signs(
        better=better,
        worse=worse,
        tied=len(differences) - trials,
        p_value=rounded(min(1.0, 2 * tail / 2**trials)),
    )


def _group_result(group: PairedGroup) -> GroupResult:
    return GroupResult(
        group=group.group,
        weight=rounded(group.weight),
        cases=len(group.cases),
        paired=group.paired,
        difference=rounded(group.difference),
    )


def _case_results(group: PairedGroup) -> list[CaseResult]:
    results: list[CaseResult] = []
    for case in group.cases:
        baseline, candidate = case.cells
        results.append(
            CaseResult(
                case=case.case,
                group=group.group,
                baseline=rounded(baseline.mean),
                candidate=rounded(candidate.mean),
                difference=rounded(case.difference),
                baseline_scored=baseline.known,
                baseline_missing=baseline.missing,
                candidate_scored=candidate.known,
                candidate_missing=candidate.missing,
            )
        )
    return results


def _timeouts(rows: Sequence[Row], condition: str) -> int:
    return sum(row.agent_timed_out for row in rows if row.condition == condition)
