"""Whole simulated searches: `passed` is wrong no more often than the level allows.

A sample of what `benchmarks/search_levels.py` does at length. A cell fails when even the lower end
of its exact 99.9 % interval lies above the nominal one-sided level; the seeds are fixed, so it
fails always or never.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.simulated_search import (
    BASELINE,
    Cell,
    Effect,
    Optimizer,
    SimulatedStudy,
    careless,
    idle,
    overfitting,
    planted,
    simulate,
    simulate_confirmations,
    uneven,
)
from xgent_evolve.measure.outcomes import Scored, Unscored

LEVEL = 0.025


def exceeds(count: int, studies: int) -> bool:
    return binomtest(count, studies).proportion_ci(0.999, "exact").low > LEVEL


@pytest.mark.parametrize(
    ("optimizer", "groups"), [(idle, 6), (idle, 12), (careless, 8), (overfitting, 12)]
)
def test_a_search_without_an_effect_is_not_passed(optimizer: Optimizer, groups: int) -> None:
    found = simulate(Cell(optimizer, groups, 0.5, repeats=3), 120, seed=groups)
    assert found.studies == 120
    assert not exceeds(found.false_passed, found.studies), found


@pytest.mark.parametrize(
    ("optimizer", "groups"), [(idle, 6), (idle, 8), (idle, 12), (idle, 24), (uneven, 12)]
)
def test_the_confirmation_alone_keeps_the_level(optimizer: Optimizer, groups: int) -> None:
    found = simulate_confirmations(Cell(optimizer, groups, 0.5, repeats=3), 400, seed=groups)
    assert found.confirmed == found.studies == 400
    assert found.passed + found.failed + found.inconclusive == 400
    assert not exceeds(found.false_passed, found.studies), found


def test_failures_that_leave_no_result_do_not_make_a_text_pass() -> None:
    cell = Cell(idle, 12, 0.5, repeats=3, lost_failures=0.5)
    found = simulate_confirmations(cell, 400, seed=1)
    assert not exceeds(found.false_passed, found.studies), found


def test_a_laxer_rule_is_found_out() -> None:
    found = simulate_confirmations(Cell(idle, 12, 0.5, repeats=3, confidence="0.6"), 400, seed=1)
    assert exceeds(found.false_passed, found.studies), found


def test_what_the_search_kept_is_no_proof() -> None:
    found = simulate(Cell(overfitting, 12, 0.5, repeats=3), 100, seed=2)
    assert exceeds(found.confirmed, found.studies), found


def test_a_large_gain_is_found_and_confirmed() -> None:
    found = simulate(Cell(planted(0.5), 12, 0.3, repeats=3, proposals=2), 100, seed=3)
    assert found.passed >= 80
    assert found.false_passed == 0


def test_equal_arguments_give_equal_studies() -> None:
    cell = Cell(idle, 8, 0.5, repeats=2)
    assert simulate(cell, 10, seed=4) == simulate(cell, 10, seed=4)


@pytest.mark.parametrize(
    ("effect", "expected"),
    [(Effect(), 0.4), (Effect(0.3), 0.7), (Effect(-0.2), 0.2), (Effect(scatter=1.0), 0.4)],
)
def test_what_is_drawn_has_the_truth_that_it_claims(effect: Effect, expected: float) -> None:
    cell = Cell(idle, 4000, 0.4)
    study = SimulatedStudy(cell, np.random.Generator(np.random.PCG64(5)), cell.measurement(0))
    study.effects["candidate-1"] = effect
    scores = [
        row.outcome.value
        for row in study.trials("candidate-1", "search")
        if isinstance(row.outcome, Scored)
    ]
    # Three standard errors of a mean of 4,000 trials.
    assert float(np.mean(scores)) == pytest.approx(expected, abs=0.024)


def test_results_are_lost_as_often_as_the_cell_says() -> None:
    cell = Cell(idle, 4000, 0.4, lost=0.1, lost_failures=0.5)
    study = SimulatedStudy(cell, np.random.Generator(np.random.PCG64(6)), cell.measurement(0))
    study.effects["candidate-1"] = Effect()
    for name, expected in ((BASELINE, 0.1), ("candidate-1", 0.1 + 0.9 * 0.6 * 0.5)):
        rows = study.trials(name, "search")
        lost = sum(isinstance(row.outcome, Unscored) for row in rows)
        assert lost / len(rows) == pytest.approx(expected, abs=0.024)
