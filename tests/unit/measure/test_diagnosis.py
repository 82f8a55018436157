"""What the baseline's own trials say before a candidate is paid for."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from xgent_evolve.measure.diagnosis import diagnose
from xgent_evolve.measure.outcomes import Row, Scored, Unscored
from xgent_evolve.spec.parts import Measurement

MEASUREMENT = Measurement(
    objective="task_success",
    min_gain=Decimal("0.2"),
    non_inferiority_margin=Decimal("0.1"),
    confidence=Decimal("0.95"),
    min_groups=6,
    repeats=2,
)


def rows(*groups: tuple[float | None, ...]) -> list[Row]:
    return [
        Row(
            f"case-{group}",
            f"group-{group}",
            "base",
            repeat,
            Unscored("not_run", "") if value is None else Scored(value),
        )
        for group, values in enumerate(groups)
        for repeat, value in enumerate(values)
    ]


def found(*groups: tuple[float | None, ...]) -> Any:
    return diagnose(rows(*groups), text="base", measurement=MEASUREMENT, required_groups=6)


def test_a_text_that_solves_everything_leaves_nothing_to_gain() -> None:
    saturated = found((1, 1), (1, 1), (1, 1))
    assert (saturated.proceed, saturated.reason) == (False, "headroom_absent")
    assert (saturated.mean, saturated.headroom, saturated.generation_noise) == (1.0, 0.0, 0.0)


def test_room_of_just_the_smallest_gain_is_not_enough() -> None:
    assert not found(*[(1, 1)] * 4, (0, 0)).proceed  # 0.2, and keep needs more
    assert found(*[(1, 1)] * 3, (0, 0)).proceed


def test_missing_trials_count_as_room() -> None:
    assert found((1, 1), (1, None)).headroom == 0.25
    assert found((1, 1), (1, None)).proceed


def test_without_any_score_nothing_is_known() -> None:
    lost = found((None, None))
    assert (lost.proceed, lost.reason, lost.mean) == (False, "baseline_unknown", None)


def test_the_noise_is_that_of_two_measurements_of_one_text() -> None:
    # Each case's mean has the variance 0.25; over two groups the mean has 0.125; twice that.
    assert found((1, 0), (0, 1)).generation_noise == round(math.sqrt(2 * 0.125), 6)
    assert found((1, 0), (1, None)).generation_noise is None, "one repeat says nothing"
