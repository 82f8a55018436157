"""The interval against a second implementation, written from the definition."""

from __future__ import annotations

import math
import random

import pytest
from scipy import stats

from xgent_evolve.measure.bootstrap import ERROR_FLOOR, RESAMPLES, index_columns, resample


def mean_and_error(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    """Weighted mean and its linearised standard error."""
    total = sum(weight for _, weight in pairs)
    mean = sum(value * weight for value, weight in pairs) / total
    squares = sum((weight * (value - mean)) ** 2 for value, weight in pairs)
    return mean, math.sqrt(squares * len(pairs) / (len(pairs) - 1)) / total


def oracle(pairs: list[tuple[float, float]], confidence: float, seed: int) -> tuple[float, float]:
    """Ends of the interval, one resample after the other."""
    mean, error = mean_and_error(pairs)
    columns = [column.tolist() for column in index_columns(seed, len(pairs), RESAMPLES)]
    ratios: list[float] = []
    for drawn in zip(*columns, strict=True):
        found, spread = mean_and_error([pairs[index] for index in drawn])
        ratios.append((found - mean) / max(spread, ERROR_FLOOR * error))
    ratios.sort()
    tail = round((1 - confidence) / 2 * (RESAMPLES + 1) - 0.5)
    weights = [weight for _, weight in pairs]
    effective = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    student = float(stats.t.ppf((1 + confidence) / 2, int(effective + 1e-9) - 1))
    scale = error * math.sqrt(effective / (effective - 1))
    low = mean - max(ratios[-tail], student) * scale
    high = mean + max(-ratios[tail - 1], student) * scale
    return max(-1.0, low), min(1.0, high)


@pytest.mark.parametrize("groups", [6, 9, 25])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_a_second_implementation_finds_the_same_ends(
    groups: int, weighted: bool, confidence: float
) -> None:
    rng = random.Random(groups)
    pairs = [
        (
            rng.choice([rng.betavariate(0.5, 2), -0.5, 0.0]),
            rng.choice([1.0, 2.5]) if weighted else 1.0,
        )
        for _ in range(groups)
    ]
    found = resample(pairs, confidence=confidence, seed=groups).interval
    assert found is not None
    low, high = oracle(pairs, confidence, groups)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-8), pytest.approx(high, abs=1e-8))
