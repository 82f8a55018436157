from __future__ import annotations

import math
import random
from dataclasses import fields, is_dataclass

import pytest

from tests.unit.measure.studies import CLEAR_GAIN, compared, measurement, paired, trials
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.interaction import Crossing, interact
from xgent_evolve.measure.outcomes import Row, Scored, Unscored


def floats(value: object) -> list[float]:
    if isinstance(value, float):
        return [value]
    if isinstance(value, tuple):
        return [number for item in value for number in floats(item)]
    if is_dataclass(value):
        return [n for field in fields(value) for n in floats(getattr(value, field.name))]
    return []


def test_every_number_is_finite_and_has_six_decimals() -> None:
    rng = random.Random(1)
    rows = paired(*[(rng.random(), rng.random()) for _ in range(9)])
    numbers = floats(compared(rows))
    assert len(numbers) > 40
    assert all(math.isfinite(number) and number == round(number, 6) for number in numbers)
    assert not any(number == 0 and math.copysign(1, number) < 0 for number in numbers)


def test_causes_of_missing_trials_are_counted_and_rows_that_lack_were_not_run() -> None:
    rows = [
        *trials("a", "base", 1, None),
        Row("a", "group-of-a", "cand", 1, Unscored("grade_timeout", "600 s")),
        *trials("a", "other", None),
    ]
    found = compared(rows, measurement(repeats=2)).missing
    assert found.causes == (("agent_infrastructure", 1), ("grade_timeout", 1), ("not_run", 1))
    assert (found.expected, found.scored, found.missing) == (4, 1, 3)


def test_agent_timeouts_are_counted_and_keep_their_score() -> None:
    rows = [Row(r.case, r.group, r.condition, r.repeat, r.outcome, True) for r in CLEAR_GAIN[:3]]
    found = compared([*rows, *CLEAR_GAIN[3:]])
    assert found.agent_timeouts == (2, 1)
    assert found.estimate == compared(CLEAR_GAIN).estimate


def test_signs_come_with_the_exact_test() -> None:
    signs = compared(paired(*[(0.0, 1.0)] * 5)).signs
    assert (signs.better, signs.worse, signs.tied, signs.p_value) == (5, 0, 0, 0.0625)
    assert compared(paired(*[(1.0, 1.0)] * 5)).signs.p_value == 1.0


def test_twenty_repeats_are_not_twenty_tasks() -> None:
    rows: list[Row] = []
    for case, gain in (("a", 1.0), ("b", 0.0), ("c", 0.0)):
        rows += trials(case, "base", *[0.0] * 20)
        rows += trials(case, "cand", *[gain] * 20)
    found = compared(rows, measurement(repeats=20, min_groups=2))
    assert found.interval is not None
    assert found.interval.low < 0 < found.interval.high
    assert found.paired_groups == 3
    assert found.verdict.decision == "inconclusive"


def test_more_groups_are_named_when_the_interval_spans_the_gain() -> None:
    rows = paired(*[(0.0, 1.0)] * 4, *[(0.0, 0.0)] * 4, (1.0, 0.0))
    found = compared(rows)
    assert found.verdict.decision == "inconclusive"
    assert found.more_groups is not None
    assert 1 <= found.more_groups < 50


def test_more_groups_are_not_named_when_they_would_not_help() -> None:
    assert compared(CLEAR_GAIN).more_groups is None
    assert compared(paired(*[(0.0, 1.0)] * 12)).more_groups is None
    assert compared(paired(*[(0.0, 1.0)] * 4, *[(1.0, 0.0)] * 4)).more_groups is None


@pytest.mark.parametrize("rows", [[], CLEAR_GAIN])
def test_a_comparison_needs_rows_and_two_conditions(rows: list[Row]) -> None:
    with pytest.raises(ValueError, match="two different conditions"):
        compare(rows, baseline="b", candidate="b", measurement=measurement(), guardrails=())


def test_an_interaction_is_what_two_texts_do_beyond_their_sum() -> None:
    crossing = Crossing(neither="00", skill="10", agents="01", both="11")
    rows: list[Row] = []
    for number in range(8):
        rows += trials(f"c{number}", "00", 0.0)
        rows += trials(f"c{number}", "10", 0.0)
        rows += trials(f"c{number}", "01", 0.0)
        rows += trials(f"c{number}", "11", 1.0 if number else 0.0)
    found = interact(rows, crossing, measurement())
    assert found.estimate == 0.875
    assert found.interval is not None
    assert found.interval.low > 0
    assert (found.groups, found.cases, found.unpaired_cases) == (8, 8, 0)


def test_an_interaction_can_exceed_one() -> None:
    crossing = Crossing(neither="00", skill="10", agents="01", both="11")
    rows = [
        Row(f"c{n}", f"g{n}", name, 1, Scored(score))
        for n in range(7)
        for name, score in (("00", 1.0), ("10", 0.0), ("01", 0.0), ("11", float(n > 0)))
    ]
    found = interact(rows, crossing, measurement())
    assert found.estimate is not None
    assert found.estimate > 1
