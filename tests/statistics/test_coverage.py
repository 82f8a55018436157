"""The interval keeps its level, shown by simulation (requirement G1).

Each cell draws many studies whose true difference is known and counts how often the interval
holds it. A study whose groups all differ by the same amount makes no claim and so no false one.
The bar is the nominal level minus one point; because coverage is itself estimated, a cell fails
when it lies below the bar by more than three standard errors of that estimate.

The product's own kernel runs here, with fewer resamples and a fresh index stream for every block
of studies, so that the luck of one stream does not decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from xgent_evolve.measure.bootstrap import interval_ends

type Floats = npt.NDArray[np.float64]
type Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

STUDIES, BLOCKS, RESAMPLES = 4000, 20, 999
GROUPS = (6, 8, 12, 20, 50, 100)


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Symmetric differences that hardly reach the limits."""
    return rng.normal(0.1, 0.2, shape)


def skewed(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Mostly small gains, some large ones."""
    return rng.beta(0.5, 3.0, shape)


def binary(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """One 0/1 trial per arm: differences of -1, 0 and 1."""
    return rng.choice([1.0, -1.0, 0.0], size=shape, p=[0.3, 0.1, 0.6])


def sparse(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """As binary, with few differences at all."""
    return rng.choice([1.0, -1.0, 0.0], size=shape, p=[0.1, 0.05, 0.85])


def clustered(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """One to five cases a group, three 0/1 repeats a case, and an effect that differs by group."""
    studies, groups = shape
    columns: list[Floats] = []
    for group in range(groups):
        size = (studies, 1 + group % 5)
        before = rng.uniform(0.2, 0.6, size)
        effect = rng.uniform(-0.1, 0.3, (studies, 1))
        after = rng.binomial(3, before + effect, size) / 3
        columns.append((after - rng.binomial(3, before, size) / 3).mean(axis=1))
    return np.column_stack(columns)


KINDS: dict[str, tuple[Draw, float]] = {
    "normal": (normal, 0.1),
    "skewed": (skewed, 0.5 / 3.5),
    "binary": (binary, 0.2),
    "sparse": (sparse, 0.05),
    "clustered": (clustered, 0.1),
}


def coverage(draw: Draw, truth: float, weights: Floats, *, confidence: float, seed: int) -> float:
    """Return the share of simulated studies whose interval holds the truth."""
    rng = np.random.Generator(np.random.PCG64(seed))
    held, size = 0, STUDIES // BLOCKS
    for block in range(BLOCKS):
        differences = draw(rng, (size, len(weights)))
        low, high = interval_ends(
            differences, weights, confidence=confidence, seed=block, resamples=RESAMPLES
        )
        held += int(np.count_nonzero((low <= truth + 1e-12) & (truth - 1e-12 <= high)))
    return held / (size * BLOCKS)


def require_level(found: float, confidence: float) -> None:
    """Fail when `found` is below the level by more than a point and chance."""
    bar = confidence - 0.01
    chance = 3 * math.sqrt(bar * (1 - bar) / STUDIES)
    assert found >= bar - chance, f"covers {found:.4f}, must cover {bar:.4f} within {chance:.4f}"


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("kind", KINDS)
def test_an_interval_of_95_percent_covers_the_truth(kind: str, groups: int) -> None:
    draw, truth = KINDS[kind]
    found = coverage(draw, truth, np.ones(groups), confidence=0.95, seed=groups)
    require_level(found, 0.95)


@pytest.mark.parametrize("confidence", [0.8, 0.9])
@pytest.mark.parametrize("groups", [6, 12])
@pytest.mark.parametrize("kind", KINDS)
def test_other_levels_hold_too(kind: str, groups: int, confidence: float) -> None:
    draw, truth = KINDS[kind]
    require_level(
        coverage(draw, truth, np.ones(groups), confidence=confidence, seed=groups), confidence
    )


@pytest.mark.parametrize("groups", [6, 12, 20])
@pytest.mark.parametrize("kind", ["normal", "binary", "skewed"])
def test_unequal_weights_do_not_break_the_level(kind: str, groups: int) -> None:
    draw, truth = KINDS[kind]
    weights = np.array([1.0 + group % 3 for group in range(groups)])
    require_level(coverage(draw, truth, weights, confidence=0.95, seed=groups), 0.95)


def test_one_heavy_group_among_eight_does_not_break_the_level() -> None:
    weights = np.array([5.0, *[1.0] * 7])
    require_level(coverage(normal, 0.1, weights, confidence=0.95, seed=1), 0.95)


def test_the_price_of_safety_is_bounded_on_normal_data() -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    for groups, most in ((6, 1.75), (12, 1.25), (50, 1.08)):
        differences = normal(rng, (400, groups))
        low, high = interval_ends(
            differences, np.ones(groups), confidence=0.95, seed=0, resamples=RESAMPLES
        )
        error = differences.std(axis=1, ddof=1) / math.sqrt(groups)
        student = 2 * {6: 2.571, 12: 2.201, 50: 2.010}[groups] * error
        assert float(np.median((high - low) / student)) <= most


def test_a_plain_percentile_bootstrap_would_not_do() -> None:
    rng = np.random.Generator(np.random.PCG64(6))
    differences = normal(rng, (STUDIES, 6))
    index = rng.integers(0, 6, (RESAMPLES, 6))
    means = np.sort(differences[:, index].mean(axis=2), axis=1)
    held = (means[:, 24] <= 0.1) & (means[:, -25] >= 0.1)
    assert float(held.mean()) < 0.9
