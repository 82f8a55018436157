from __future__ import annotations

import math
from typing import get_args

import pytest

from xgent_evolve.measure.outcomes import CAUSES, Cause, Row, Scored


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_a_score_outside_zero_to_one_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        Scored(value)


@pytest.mark.parametrize("value", [0.0, -0.0, 0.5, 1.0])
def test_a_score_within_zero_to_one_is_kept(value: float) -> None:
    assert Scored(value).value == value


def test_a_check_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(ValueError, match="check style"):
        Row("c", "g", "b", 1, Scored(1.0), checks=(("style", 2.0),))


def test_a_check_that_appears_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        Row("c", "g", "b", 1, Scored(1.0), checks=(("style", 1.0), ("style", None)))


def test_the_list_of_causes_is_complete() -> None:
    assert get_args(Cause.__value__) == CAUSES
