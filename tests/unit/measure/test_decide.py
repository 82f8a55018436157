from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.measure.studies import (
    CLEAR_GAIN,
    CLEAR_LOSS,
    compared,
    measurement,
    paired,
    trials,
)
from xgent_evolve.measure.comparison import Comparison, Interval
from xgent_evolve.measure.decide import lean, word
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.spec.models_v1 import Guardrail


def codes(comparison: Comparison) -> list[str]:
    return [reason.code for reason in comparison.verdict.reasons]


def floor(name: str, least: str) -> tuple[Guardrail, ...]:
    return (Guardrail(name=name, floor=Decimal(least)),)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.01, 0.2, "better"),
        (-0.2, -0.01, "worse"),
        (-0.04, 0.04, "equivalent"),
        (-0.05, 0.04, "no-decision"),
        (-0.04, 0.2, "no-decision"),
        (0.0, 0.2, "no-decision"),
        (0.0, 0.04, "equivalent"),
    ],
)
def test_the_word_says_what_the_interval_allows(low: float, high: float, expected: str) -> None:
    assert word(Interval(low, high), 0.05) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.11, 0.3, "keep"),
        (0.1, 0.3, "inconclusive"),
        (-0.1, 0.1, "inconclusive"),
        (-0.1, 0.09, "discard"),
        (0.05, 0.09, "discard"),
    ],
)
def test_keep_and_discard_need_the_whole_interval_on_one_side(
    low: float, high: float, expected: str
) -> None:
    assert lean(Interval(low, high), 0.1) == expected


def test_a_clear_gain_is_kept() -> None:
    found = compared(CLEAR_GAIN)
    assert (found.verdict.decision, found.verdict.word) == ("keep", "better")
    assert found.verdict.superior
    assert found.verdict.not_inferior
    assert codes(found) == ["gain_shown"]


def test_a_clear_loss_is_discarded() -> None:
    found = compared(CLEAR_LOSS)
    assert (found.verdict.decision, found.verdict.word) == ("discard", "worse")
    assert codes(found) == ["gain_excluded"]


def test_a_gain_that_is_too_small_is_not_kept() -> None:
    found = compared(CLEAR_GAIN, measurement(min_gain="0.95"))
    assert found.verdict.decision == "inconclusive"
    assert found.verdict.word == "better"
    assert codes(found) == ["interval_spans_gain"]


def test_five_wins_of_five_do_not_decide() -> None:
    found = compared(paired(*[(0.0, 1.0)] * 4, (0.0, 0.5)), measurement(min_groups=2))
    assert found.verdict.decision == "inconclusive"
    assert found.verdict.word == "no-decision"
    assert "too_few_groups" in codes(found)
    assert found.required_groups == 6


def test_the_protocol_may_ask_for_more_groups() -> None:
    found = compared(CLEAR_GAIN, measurement(min_groups=11))
    assert codes(found) == ["too_few_groups"]


@pytest.mark.parametrize("difference", [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0), (0.5, 0.75)])
def test_equal_differences_do_not_decide(difference: tuple[float, float]) -> None:
    found = compared(paired(*[difference] * 12))
    assert found.verdict.decision == "inconclusive"
    assert found.verdict.word == "no-decision"
    assert found.interval is None
    assert codes(found) == ["no_variance"]


def test_a_missing_pair_does_not_decide() -> None:
    found = compared([*CLEAR_GAIN, *trials("lost", "base", 0), *trials("lost", "cand", None)])
    assert found.verdict.decision == "inconclusive"
    assert codes(found) == ["missing_pairs"]


def test_a_few_missing_repeats_leave_a_clear_verdict() -> None:
    rows: list[Row] = []
    for number in range(10):
        rows += trials(f"c{number}", "base", 0, 0, 0, 0)
        rows += trials(f"c{number}", "cand", 1, 1, 1, number % 2)
    whole = compared(rows, measurement(repeats=4))
    lossy = compared(rows[:-1], measurement(repeats=4))
    assert whole.verdict.decision == lossy.verdict.decision == "keep"
    assert lossy.missing.missing == 1
    assert lossy.missing.low < whole.missing.low


def test_a_verdict_that_flips_between_the_bounds_is_inconclusive() -> None:
    rows: list[Row] = []
    for number in range(10):
        rows += trials(f"c{number}", "base", 0, None, None, 1 if number == 0 else None)
        rows += trials(f"c{number}", "cand", 1, None, None, None)
    found = compared(rows, measurement(repeats=4))
    assert found.interval is not None
    assert found.interval.low > 0
    assert found.verdict.decision == "inconclusive"
    assert found.verdict.word == "no-decision"
    assert codes(found) == ["missing_flips_verdict"]


def test_nothing_scored_is_invalid() -> None:
    found = compared(paired(*[(None, 1.0)] * 8))
    assert found.verdict.decision == "invalid"
    assert codes(found) == ["no_scored_pair"]
    assert found.estimate is None
    assert (found.missing.low, found.missing.high) == (0.0, 1.0)


def test_a_floor_that_is_missed_discards_a_gain() -> None:
    found = compared(CLEAR_GAIN, guardrails=floor("task_contract", "0.95"))
    assert found.verdict.decision == "discard"
    assert found.verdict.word == "better"
    assert codes(found) == ["guardrail_regressed"]


def test_a_floor_that_is_exactly_met_is_held() -> None:
    found = compared(CLEAR_GAIN, guardrails=floor("task_contract", "0.9"))
    assert found.verdict.decision == "keep"
    assert found.guardrails[0].status == "held"


def test_a_check_that_nobody_observed_is_unknown_and_not_zero() -> None:
    found = compared(CLEAR_GAIN, guardrails=floor("style", "0"))
    assert found.guardrails[0].status == "unknown"
    assert found.guardrails[0].candidate is None
    assert found.verdict.decision == "inconclusive"
    assert codes(found) == ["guardrail_unknown"]


def test_an_observed_task_contract_wins_over_the_reward() -> None:
    rows = [replace(row, checks=(("task_contract", 0.25),)) for row in CLEAR_GAIN]
    found = compared(rows, guardrails=floor("task_contract", "0.5"))
    assert found.guardrails[0].candidate == 0.25
    assert found.guardrails[0].status == "regressed"


def test_a_floor_is_held_when_the_unknown_cannot_break_it() -> None:
    rows = [
        replace(row, checks=() if row.case == "c00" else (("style", 1.0),)) for row in CLEAR_GAIN
    ]
    assert compared(rows, guardrails=floor("style", "0.9")).guardrails[0].status == "held"
    assert compared(rows, guardrails=floor("style", "0.91")).guardrails[0].status == "unknown"
