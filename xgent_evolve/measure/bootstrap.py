"""The interval: a studentised bootstrap over groups that keeps its level from 6 groups up.

A plain percentile bootstrap of a nominal 0.95 covers 0.84 to 0.88 at 5 to 8 groups, and a
bootstrap-t alone covers as little as 0.84 on sparse 0/1 differences. The construction here was
chosen by simulation (tests/statistics) and has three parts:

1. bootstrap-t (Efron and Tibshirani 1993, ch. 12): quantiles of (m* - m) / se*, where se* is the
   linearised standard error of a weighted mean, and is never taken below a fifth of se: a
   resample that happens to repeat one value must not pretend to know everything;
2. each side reaches at least as far as Student's t, whose degrees of freedom come from Kish's
   effective number of groups: this holds the level on 0/1 data, the first part on skewed data;
3. half-lengths grow by sqrt(n / (n - 1)), the small-sample factor of Hesterberg (2015).

Numbers are equal on every machine. The index stream is PCG64's raw output, which numpy keeps
stable (NEP 19), mapped here by Lemire's multiplication; sums run group by group in one fixed
order and only through +, -, *, / and square root, which IEEE 754 defines to the last bit. That
order also keeps memory at a few vectors of 10,000 numbers for any number of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from xgent_evolve.measure.comparison import Interval
from xgent_evolve.measure.pairing import TINY
from xgent_evolve.measure.student import t_quantile

type Floats = npt.NDArray[np.float64]

RESAMPLES = 10_000
"""Resamples of every interval that decides something."""

METHOD = "studentised-bootstrap/1"
"""Name and version of this construction; changes when any number may change."""

ERROR_FLOOR = 0.2
"""Smallest standard error of a resample, as a share of the sample's own."""


@dataclass(frozen=True, slots=True)
class Resampled:
    """A weighted mean of group differences and what resampling says about it."""

    standard_error: float
    """Linearised standard error of the weighted mean; 0 when all groups are equal."""
    interval: Interval | None
    """None for fewer than two groups or when all groups are equal."""


def resample(
    pairs: Sequence[tuple[float, float]], *, confidence: float, seed: int, limit: float = 1.0
) -> Resampled:
    """Return the interval of the weighted mean of `pairs` (difference, weight).

    `limit` bounds the differences: ends are clipped to [-limit, limit].
    """
    if len(pairs) < 2:
        return Resampled(0.0, None)
    differences = np.array([[difference for difference, _ in pairs]], dtype=np.float64)
    weights = np.array([weight for _, weight in pairs], dtype=np.float64)
    if float(_spread(differences)[0]) <= TINY:
        return Resampled(0.0, None)
    error = float(_moments(differences, weights)[1][0])
    low, high = interval_ends(
        differences, weights, confidence=confidence, seed=seed, resamples=RESAMPLES, limit=limit
    )
    return Resampled(error, Interval(float(low[0]), float(high[0])))


def index_columns(seed: int, groups: int, resamples: int) -> Iterator[npt.NDArray[np.intp]]:
    """Yield, for each of `groups` draws, the group index that every resample draws.

    Column j holds draw j of all resamples: raw outputs j*resamples to (j+1)*resamples-1 of
    PCG64(seed). An index is the high half of a product of 32-bit numbers (Lemire 2019, without
    rejection): its probability is off by less than groups / 2**32.
    """
    generator = np.random.PCG64(seed)
    size, shift = np.uint64(groups), np.uint64(32)
    for _ in range(groups):
        raw = np.asarray(generator.random_raw(resamples), dtype=np.uint64)
        yield (((raw >> shift) * size) >> shift).astype(np.intp)


def interval_ends(
    differences: Floats,
    weights: Floats,
    *,
    confidence: float,
    seed: int,
    resamples: int,
    limit: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return low and high ends for a stack of samples.

    `differences` has shape (samples, groups), `weights` (groups,); the ends have shape
    (samples,). All samples share one index stream, as all comparisons with one seed do. A sample
    without spread gets [-limit, limit]: it says nothing about its own precision.
    """
    means, errors = _moments(differences, weights)
    ratios = _studentised(differences, weights, seed=seed, resamples=resamples)
    tail = max(1, int(round((1 - confidence) / 2 * (resamples + 1), 9)))
    ratios.partition((tail - 1, resamples - tail), axis=1)
    effective = _effective_groups(weights)
    student = t_quantile((1 + confidence) / 2, max(1, int(effective + TINY) - 1))
    scale = errors * np.sqrt(effective / (effective - 1))
    low = means - np.maximum(ratios[:, resamples - tail], student) * scale
    high = means + np.maximum(-ratios[:, tail - 1], student) * scale
    known = _spread(differences) > TINY
    return (
        np.where(known, np.clip(low, -limit, limit), -limit),
        np.where(known, np.clip(high, -limit, limit), limit),
    )


def _spread(differences: Floats) -> Floats:
    return differences.max(axis=1) - differences.min(axis=1)


def _effective_groups(weights: Floats) -> float:
    """Return Kish's effective number of groups: their number when all weigh the same."""
    total, squares = 0.0, 0.0
    for weight in weights.tolist():
        total += weight
        squares += weight * weight
    return total * total / squares


def _moments(differences: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return weighted means and their linearised standard errors, one per sample."""
    samples, groups = differences.shape
    total, sums = 0.0, np.zeros(samples)
    for j in range(groups):
        total += float(weights[j])
        sums += weights[j] * differences[:, j]
    means = sums / total
    squares = np.zeros(samples)
    for j in range(groups):
        residuals = weights[j] * (differences[:, j] - means)
        squares += residuals * residuals
    return means, np.sqrt(squares * (groups / (groups - 1))) / total


def _studentised(differences: Floats, weights: Floats, *, seed: int, resamples: int) -> Floats:
    """Return (m* - m) / se* for every sample and resample; shape (samples, resamples)."""
    samples, groups = differences.shape
    means, errors = _moments(differences, weights)
    # Centred first, so that the variance of a resample is not a difference of large numbers.
    first = weights * (differences - means[:, None])
    second, cross, plain = first * first, first * weights, weights * weights
    total, squared_weights = np.zeros(resamples), np.zeros(resamples)
    sums, squares, crosses = (np.zeros((samples, resamples)) for _ in range(3))
    equal = bool(np.all(weights == 1.0))
    for column in index_columns(seed, groups, resamples):
        sums += first.take(column, axis=1)
        squares += second.take(column, axis=1)
        if not equal:
            total += weights.take(column)
            squared_weights += plain.take(column)
            crosses += cross.take(column, axis=1)
    if equal:
        # The sums that were left out, in the very same bits.
        total, squared_weights, crosses = total + groups, squared_weights + groups, sums
    shifts = sums / total
    variances = squares - 2.0 * shifts * crosses + shifts * shifts * squared_weights
    resampled = np.sqrt(np.maximum(variances, 0.0) * (groups / (groups - 1))) / total
    floor = np.maximum(ERROR_FLOOR * errors, TINY * TINY)[:, None]
    return shifts / np.maximum(resampled, floor)
