"""What holds for DarwinX's rules whatever was measured."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.strategies.darwinx.admission import confirm, confirm_recombination, screen
from xgent_evolve.strategies.darwinx.cost import Prices
from xgent_evolve.strategies.darwinx.population import (
    Entry,
    common_ancestor,
    pairs,
    screening_draws,
    screening_tasks,
)
from xgent_evolve.strategies.darwinx.scores import difference, solved

TASKS = ("a", "b", "c", "d")
means = st.fixed_dictionaries({task: st.sampled_from((0.0, 1 / 3, 2 / 3, 1.0)) for task in TASKS})
sets = st.frozensets(st.sampled_from(TASKS))


@given(means, means)
def test_a_difference_turned_round_changes_its_sign(one, other):
    there, back = difference(one, other), difference(other, one)
    assert there.gain == -back.gain
    assert there.improved == back.regressed
    assert abs(there.gain - (back.regression_mass - there.regression_mass)) < 1e-12


@given(means, means, sets)
def test_what_is_admitted_without_tolerance_loses_nothing(parent, candidate, invariant):
    found = confirm(parent, candidate, invariant=invariant, threshold=1.0, tolerance=0.0)
    if found.admitted:
        assert not difference(parent, candidate).regressed
        assert invariant <= found.solved
        assert found.child_invariant >= solved(parent, 1.0)
        assert screen(parent, candidate, tolerance=0.0).passed
    else:
        assert found.objections


@given(means, means, sets)
def test_nothing_replaces_itself(parent, other, invariant):
    same = confirm(parent, parent, invariant=invariant, threshold=1.0, tolerance=4.0)
    assert "no_gain" in same.objections
    there = confirm(parent, other, invariant=(), threshold=1.0, tolerance=4.0)
    back = confirm(other, parent, invariant=(), threshold=1.0, tolerance=4.0)
    assert not (there.admitted and back.admitted)


@given(means, means, means, sets, sets)
def test_a_recombination_is_never_easier_than_a_mutation(primary, donor, child, one, other):
    joined = confirm_recombination(
        primary, donor, child, invariants=(one, other), threshold=1.0, tolerance=0.0
    )
    if joined.admitted:
        assert confirm(primary, child, invariant=one, threshold=1.0, tolerance=0.0).admitted
        assert joined.solved >= solved(primary, 1.0) | solved(donor, 1.0) | one | other


@st.composite
def archives(draw):
    size = draw(st.integers(1, 7))
    found = [Entry("0", None, solved=draw(sets))]
    for number in range(1, size):
        parent = str(draw(st.integers(0, number - 1)))
        status = draw(st.sampled_from(("admitted", "confirm_rejected", "screen_rejected")))
        mean = draw(st.sampled_from((0.25, 0.5)))
        found.append(Entry(str(number), parent, status, mean=mean, solved=draw(sets)))
    return found


@given(archives())
def test_pairs_are_complementary_unrelated_and_tried_once(archive):
    found = pairs(archive)
    for pair in found:
        assert pair.primary.solved - pair.donor.solved
        assert pair.donor.solved - pair.primary.solved
        assert pair.primary.confirmed
        assert pair.donor.confirmed
        ancestor = common_ancestor(archive, pair.primary.id, pair.donor.id)
        assert ancestor not in (pair.primary.id, pair.donor.id)
    assert [len(pair.union) for pair in found] == sorted(
        (len(pair.union) for pair in found), reverse=True
    )
    tried = [frozenset((pair.primary.id, pair.donor.id)) for pair in found]
    assert len(set(tried)) == len(tried)
    assert pairs(archive, tried[:1]) == found[1:]


@given(st.integers(0, 99), st.integers(1, 50), st.integers(1, 20), st.integers(1, 20))
def test_a_screening_has_each_task_once_and_is_drawn_alike(seed, step, count, size):
    tasks = [str(number) for number in range(count)]
    chosen = screening_tasks(tasks, size, screening_draws(seed, step))
    assert len(chosen) == len(set(chosen)) == min(size, count)
    assert chosen == screening_tasks(tasks, size, screening_draws(seed, step))


@given(st.integers(1, 99), st.integers(1, 9), st.integers(1, 4), st.integers(0, 4))
def test_the_most_is_never_exceeded(tasks, steps, repeats, merge_every):
    prices = Prices(tasks, 3, 1, repeats)
    paid = prices.start
    for step in range(1, steps + 1):
        due = merge_every > 0 and step % merge_every == 0
        kind = "recombination" if due else "mutation"
        paid += prices.step(kind, measured=True, passed_screen=True)
    assert paid == prices.most(steps, merge_every)
