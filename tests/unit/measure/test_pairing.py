from __future__ import annotations

from decimal import Decimal

import pytest

from tests.unit.measure.studies import trials
from xgent_evolve.measure.outcomes import Row
from xgent_evolve.measure.pairing import Contrast, Pairing, pair

CONTRAST: Contrast = (("base", -1), ("cand", 1))


def paired_up(rows: list[Row], repeats: int = 1, **weights: int) -> Pairing:
    named = {name: Decimal(weight) for name, weight in weights.items()}
    return pair(rows, CONTRAST, weights=named, repeats=repeats)


def test_repeats_are_averaged_before_anything_else() -> None:
    rows = [*trials("a", "base", 0, 1, 1, 0), *trials("a", "cand", 1, 1, 1, 0)]
    assert paired_up(rows, repeats=4).estimate == pytest.approx(0.25)


def test_a_group_counts_once_however_many_cases_it_has() -> None:
    rows = [
        *trials("a", "base", 0, group="big"),
        *trials("a", "cand", 1, group="big"),
        *trials("b", "base", 0, group="big"),
        *trials("b", "cand", 0, group="big"),
        *trials("c", "base", 0, group="small"),
        *trials("c", "cand", 1, group="small"),
    ]
    pairing = paired_up(rows)
    assert [group.difference for group in pairing.groups] == [0.5, 1.0]
    assert pairing.estimate == pytest.approx(0.75)


def test_a_weight_counts_a_group_more() -> None:
    rows = [
        *trials("a", "base", 0, group="x"),
        *trials("a", "cand", 1, group="x"),
        *trials("b", "base", 0, group="y"),
        *trials("b", "cand", 0, group="y"),
    ]
    assert paired_up(rows, x=3).estimate == pytest.approx(0.75)


def test_an_unscored_repeat_leaves_the_mean_alone_and_is_counted() -> None:
    rows = [*trials("a", "base", 0, 0), *trials("a", "cand", 1, None)]
    (case,) = paired_up(rows, repeats=2).cases
    assert case.difference == 1.0
    assert [cell.missing for cell in case.cells] == [0, 1]
    assert (case.low, case.high) == (0.5, 1.0)


def test_a_repeat_without_a_row_is_missing_like_an_unscored_one() -> None:
    with_row = paired_up([*trials("a", "base", 0, 0), *trials("a", "cand", 1, None)], repeats=2)
    without = paired_up([*trials("a", "base", 0, 0), *trials("a", "cand", 1)], repeats=2)
    assert with_row == without


def test_a_case_seen_under_one_condition_alone_is_unpaired() -> None:
    rows = [*trials("a", "base", 0), *trials("a", "cand", 1), *trials("b", "base", 1)]
    pairing = paired_up(rows)
    assert pairing.unpaired_cases == 1
    assert pairing.estimate == 1.0
    assert len(pairing.paired_groups) == 1


def test_a_trial_that_appears_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="appears twice"):
        paired_up([*trials("a", "base", 0), *trials("a", "base", 1)])


def test_a_case_in_two_groups_is_refused() -> None:
    with pytest.raises(ValueError, match="is in groups"):
        paired_up([*trials("a", "base", 0, group="x"), *trials("a", "cand", 1, group="y")])
