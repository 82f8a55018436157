"""The rate of false `keep`, exactly: one trial a group and condition, no simulation.

Coarse data are the hardest for a bootstrap: the rate jumps from one number of groups to the next.
"""

from __future__ import annotations

import pytest

from benchmarks.exact_levels import false_keep, kept_counts, power
from benchmarks.simulated_search import Cell, planted, simulate


@pytest.mark.parametrize("groups", [*range(6, 25), 30, 40])
def test_a_text_without_an_effect_is_kept_no_more_often_than_the_level_allows(groups: int) -> None:
    # At 14 and 15 groups it is 0.0253 and 0.0251 at the worst chance (docs/statistics.md).
    most = 0.0254 if groups in (14, 15) else 0.025
    assert false_keep(groups) <= most


@pytest.mark.parametrize("groups", [*range(6, 13), 16, 20])
def test_at_a_confidence_of_90_percent_the_level_holds_to_half_a_point(groups: int) -> None:
    assert false_keep(groups, confidence=0.9) <= 0.05 + 0.005


def test_a_laxer_interval_would_exceed_the_level() -> None:
    assert false_keep(12, confidence=0.9) > 0.025


def test_simulated_searches_find_a_gain_as_often_as_the_sum_says() -> None:
    expected = power(kept_counts(12), 12, 0.5)
    # The second of two proposals is the useful one.
    found = simulate(Cell(planted(0.5), 12, 0.3, proposals=2), 300, seed=8)
    assert found.passed / found.studies == pytest.approx(expected, abs=0.09)
