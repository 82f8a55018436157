from __future__ import annotations

import hashlib

import numpy as np
import pytest

from xgent_evolve.measure.bootstrap import RESAMPLES, index_columns, interval_ends, resample
from xgent_evolve.measure.comparison import Interval


def equal(*differences: float) -> list[tuple[float, float]]:
    return [(difference, 1.0) for difference in differences]


def test_the_index_stream_is_the_golden_one() -> None:
    columns = [column.tolist() for column in index_columns(seed=42, groups=7, resamples=6)]
    assert columns == GOLDEN_COLUMNS


def test_the_index_stream_is_the_high_half_of_raw_output_times_groups() -> None:
    raw = np.random.PCG64(9).random_raw(10)
    expected = [(int(value) >> 32) * 13 >> 32 for value in raw]
    assert next(index_columns(seed=9, groups=13, resamples=10)).tolist() == expected


def test_the_whole_index_stream_of_an_interval_is_pinned() -> None:
    """A numpy that drew other numbers would change verdicts without a word."""
    digest = hashlib.sha256()
    for column in index_columns(seed=0, groups=12, resamples=RESAMPLES):
        digest.update(column.astype("<u4").tobytes())
    assert digest.hexdigest() == "e0fbe3525781cfdf59cc8c22a4e933726a4f2b26bfd9ce3c63b4c986cbb19f6a"


def test_every_group_is_drawn_about_equally_often() -> None:
    drawn = np.concatenate(list(index_columns(seed=1, groups=10, resamples=RESAMPLES)))
    counts = np.bincount(drawn, minlength=10)
    assert len(counts) == 10
    assert counts.min() > 9600
    assert counts.max() < 10400


def test_a_decision_uses_ten_thousand_resamples() -> None:
    assert RESAMPLES == 10_000


def test_the_interval_has_golden_ends() -> None:
    found = resample(equal(0.5, 0.25, 0.0, 0.75, 0.5, 0.25, -0.25, 1.0), confidence=0.95, seed=3)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(GOLDEN_ENDS, abs=1e-12)
    assert found.standard_error == pytest.approx(0.1417367, abs=1e-6)


def test_another_seed_moves_the_ends_only_a_little() -> None:
    pairs = equal(0.0, 0.01, 0.02, 0.05, 0.1, 0.12, 0.2, 0.6)
    ends = [resample(pairs, confidence=0.95, seed=seed).interval for seed in range(5)]
    highs = [interval.high for interval in ends if interval is not None]
    assert len(set(highs)) == 5
    assert max(highs) - min(highs) < 0.05


@pytest.mark.parametrize("pairs", [[], equal(0.5), equal(*[0.5] * 9), equal(1 / 3, 2 / 3 - 1 / 3)])
def test_without_spread_there_is_no_interval(pairs: list[tuple[float, float]]) -> None:
    found = resample(pairs, confidence=0.95, seed=0)
    assert found.interval is None
    assert found.standard_error == 0


def test_ends_stay_within_the_limit() -> None:
    pairs = equal(1, 1, 1, 1, 1, -1)
    assert resample(pairs, confidence=0.99, seed=0).interval == Interval(-1, 1)
    wide = resample(pairs, confidence=0.99, seed=0, limit=2).interval
    assert wide is not None
    assert wide.high > 1


def test_one_change_among_many_ties_is_not_taken_for_certainty() -> None:
    found = resample(equal(*[0.0] * 11, 1.0), confidence=0.95, seed=0).interval
    assert found is not None
    assert found.low < 0 < found.high


def test_equal_weights_of_any_size_give_one_interval() -> None:
    differences = (0.5, 0.25, 0.0, 0.75, 0.5, -0.25)
    one = resample([(d, 1.0) for d in differences], confidence=0.9, seed=0).interval
    four = resample([(d, 4.0) for d in differences], confidence=0.9, seed=0).interval
    assert one == four


def test_a_heavy_group_widens_the_interval() -> None:
    differences = (0.5, 0.25, 0.0, 0.75, 0.5, -0.25, 0.4, 0.3)
    even = resample([(d, 1.0) for d in differences], confidence=0.95, seed=0).interval
    uneven = resample(
        [(d, 6.0 if n == 1 else 1.0) for n, d in enumerate(differences)], confidence=0.95, seed=0
    ).interval
    assert even is not None
    assert uneven is not None
    assert uneven.high - uneven.low > even.high - even.low


def test_higher_confidence_never_narrows_the_interval() -> None:
    pairs = equal(0.5, 0.25, 0.0, 0.75, 0.5, -0.25, 0.4, 0.3)
    widths: list[float] = []
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99):
        found = resample(pairs, confidence=confidence, seed=0).interval
        assert found is not None
        widths.append(found.high - found.low)
    assert widths == sorted(widths)


def test_a_stack_of_samples_gives_what_each_gives_alone() -> None:
    stack = np.array([[0.5, 0.25, 0.0, 0.75, 0.5, -0.25], [0.0, 0.0, 1.0, 0.0, -1.0, 0.0]])
    low, high = interval_ends(stack, np.ones(6), confidence=0.9, seed=4, resamples=RESAMPLES)
    for row, pair in enumerate(stack.tolist()):
        alone = resample(equal(*pair), confidence=0.9, seed=4).interval
        assert alone == Interval(float(low[row]), float(high[row]))


def test_a_stacked_sample_without_spread_says_nothing() -> None:
    low, high = interval_ends(
        np.full((1, 6), 0.5), np.ones(6), confidence=0.9, seed=4, resamples=99
    )
    assert (float(low[0]), float(high[0])) == (-1, 1)


GOLDEN_COLUMNS = [
    [5, 3, 6, 4, 0, 6],
    [5, 5, 0, 3, 2, 6],
    [4, 5, 3, 1, 3, 0],
    [5, 4, 5, 2, 6, 6],
    [5, 1, 3, 0, 1, 4],
    [5, 6, 2, 2, 3, 1],
    [0, 3, 1, 4, 3, 5],
]
GOLDEN_ENDS = (0.01237966618857883, 0.7376203338114211)
