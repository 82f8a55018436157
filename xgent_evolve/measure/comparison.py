"""What a comparison of two conditions found: the values that reports show and gates read.

Every fraction is rounded to six decimals when the record is made, so equal rows give equal
records, and equal bytes of report.json, on every machine (requirement A8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from xgent_evolve.measure.outcomes import Cause

type Decision = Literal["keep", "discard", "inconclusive", "invalid"]
"""What follows for the candidate (requirement G2)."""

type Word = Literal["better", "worse", "equivalent", "no-decision"]
"""What the interval says about the candidate, in one word."""

type ReasonCode = Literal[
    "gain_shown",
    "gain_excluded",
    "guardrail_regressed",
    "no_scored_pair",
    "too_few_groups",
    "no_variance",
    "missing_pairs",
    "missing_flips_verdict",
    "guardrail_unknown",
    "interval_spans_gain",
]

type GuardrailStatus = Literal["held", "regressed", "unknown"]


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval for a difference, both ends included."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a decision: a code for programs, a sentence for people."""

    code: ReasonCode
    sentence: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """A decision with its reasons."""

    decision: Decision
    """What follows for the candidate."""
    word: Word
    """What the interval says; no-decision whenever the evidence is insufficient."""
    superior: bool
    """The evidence is sufficient and the whole interval lies above 0."""
    not_inferior: bool
    """The evidence is sufficient and the whole interval lies above minus the margin."""
    reasons: tuple[Reason, ...]
    """Why, most important first; never empty."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case under both conditions. Means are None when no repeat is scored."""

    case: str
    group: str
    baseline: float | None
    """Mean of the scored repeats under the baseline."""
    candidate: float | None
    """Mean of the scored repeats under the candidate."""
    difference: float | None
    """Candidate minus baseline; None when the case is not paired."""
    baseline_scored: int
    baseline_missing: int
    candidate_scored: int
    candidate_missing: int


@dataclass(frozen=True, slots=True)
class GroupResult:
    """One independent source group: the unit that is resampled."""

    group: str
    weight: float
    cases: int
    """Cases of the group."""
    paired: int
    """Cases with a scored repeat under both conditions."""
    difference: float | None
    """Mean of the paired cases' differences; None without a paired case."""


@dataclass(frozen=True, slots=True)
class Missing:
    """What is not there, and how much it could matter."""

    expected: int
    """Trials of both conditions that the protocol asks for."""
    scored: int
    missing: int
    unpaired_cases: int
    """Cases without a scored repeat under at least one condition."""
    causes: tuple[tuple[Cause, int], ...]
    """Missing trials by cause; not_run includes trials without any row."""
    low: float
    """The estimate if every missing trial counted against the candidate."""
    high: float
    """The estimate if every missing trial counted for the candidate."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Groups by the direction of their difference, and the exact two-sided sign test."""

    better: int
    worse: int
    tied: int
    p_value: float
    """1 when no group differs."""


@dataclass(frozen=True, slots=True)
class GuardrailResult:
    """One floor and what is known about it under the candidate condition."""

    name: str
    floor: float
    status: GuardrailStatus
    baseline: float | None
    """Mean of the known values under the baseline, for orientation."""
    candidate: float | None
    """Mean of the known values under the candidate."""
    low: float
    """The candidate's mean if every unknown value were 0."""
    high: float
    """The candidate's mean if every unknown value were 1."""
    known: int
    unknown: int
    """Trials of the candidate condition without a value."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate condition against the baseline condition."""

    baseline: str
    candidate: str
    verdict: Verdict
    estimate: float | None
    """Weighted mean of the group differences; None without a scored pair."""
    interval: Interval | None
    """None without a pair, with a single group, or when all groups differ by the same amount."""
    envelope: Interval | None
    """The interval, stretched to every value that the missing trials could give; decides."""
    confidence: float
    """Nominal level of the interval."""
    min_gain: float
    non_inferiority_margin: float
    required_groups: int
    """Paired groups that a decision needs."""
    paired_groups: int
    total_groups: int
    paired_cases: int
    total_cases: int
    repeats: int
    missing: Missing
    signs: Signs
    more_groups: int | None
    """About how many more groups would decide; None when groups are not what is lacking, or when
    the number cannot be computed."""
    guardrails: tuple[GuardrailResult, ...]
    groups: tuple[GroupResult, ...]
    """By group name."""
    cases: tuple[CaseResult, ...]
    """By group, then case name."""
    agent_timeouts: tuple[int, int]
    """Trials in which the agent reached its time limit: baseline, candidate."""
    method: str
    """Name and version of the interval's construction."""
    resamples: int
    seed: int
