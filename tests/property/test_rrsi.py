"""The rules of RRSI for any numbers: order is nothing, more is never worse, edges are exact."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from xgent_evolve.spec.strategies import Rrsi
from xgent_evolve.strategies.rrsi.aggregate import Trial, aggregate, mean_metric
from xgent_evolve.strategies.rrsi.calibration import calibrate
from xgent_evolve.strategies.rrsi.declaration import (
    Edit,
    declaration_faults,
    differences,
    undeclared,
)
from xgent_evolve.strategies.rrsi.history import (
    LISTED_REGRESSIONS,
    EditRecord,
    Prediction,
    attribute,
    prune_advice,
    recent_yield,
    tried,
    untried,
    won_before,
)
from xgent_evolve.strategies.rrsi.labels import (
    COMPONENTS,
    GENERIC_SIGNALS,
    STRUCTURAL,
    Signal,
    classify,
    normalise,
)
from xgent_evolve.strategies.rrsi.schedule import edit_budget, explores, reserved_slots, stalled
from xgent_evolve.strategies.rrsi.selection import (
    Candidate,
    Gated,
    Guard,
    SelectionRule,
    Standing,
    judge,
    novelty,
    select,
)
from xgent_evolve.strategies.rrsi.traces import enough_traces, representatives

hundredths = st.integers(0, 100)
rewards = hundredths.map(lambda value: value / 100)
trial = st.builds(
    Trial, st.none() | rewards, st.integers(1, 9999), st.sampled_from([0.25, 1.0, 3.0])
)


@st.composite
def measurements(draw, least=1):
    k = draw(st.integers(least, 4))
    runs = st.lists(trial, min_size=k, max_size=k)
    return k, draw(st.dictionaries(st.text("abcdef", min_size=1, max_size=3), runs, min_size=1))


DEFAULT = SelectionRule.of(Rrsi(), 0.05)
components = st.lists(st.sampled_from(COMPONENTS), max_size=4).map(tuple)


@st.composite
def rounds(draw, **ranges):
    """A standing and candidates whose scores and costs lie on a grid, where boundaries are met."""
    scores = draw(st.lists(hundredths, min_size=1, max_size=5))
    incumbent = draw(hundredths)
    best = draw(st.integers(incumbent, 100))
    candidates = [
        Candidate(
            f"v{at}", score / 100, 10.0 * draw(st.integers(1, 400)), draw(components), {"valid": 1}
        )
        for at, score in enumerate(scores)
    ]
    return Standing(incumbent / 100, 1000.0, best / 100, {"valid": 1}), candidates


@given(data=st.data(), measured=measurements())
def test_the_order_of_tasks_and_trials_does_not_change_a_measurement(data, measured):
    k, trials = measured
    shuffled = {
        task: data.draw(st.permutations(trials[task]))
        for task in data.draw(st.permutations(list(trials)))
    }
    assert aggregate(shuffled, k, 0.15) == aggregate(trials, k, 0.15)


@given(measured=measurements())
def test_a_score_is_the_exact_weighted_mean_with_failures_as_nothing(measured):
    k, trials = measured
    runs = [one for task in trials.values() for one in task]
    weight = sum(Fraction(one.weight) for one in runs)
    exact = sum(Fraction(one.reward or 0) * Fraction(one.weight) for one in runs) / weight
    assert aggregate(trials, k, 1).score == pytest.approx(float(exact), abs=1e-12)


@given(measured=measurements(), limit=hundredths)
def test_a_measurement_is_invalid_exactly_above_the_limit_of_missing_trials(measured, limit):
    k, trials = measured
    runs = [one for task in trials.values() for one in task]
    missing = sum(one.reward is None for one in runs)
    found = aggregate(trials, k, limit / 100)
    above = Fraction(missing, len(runs)) > Fraction(limit, 100)
    assert found.fault == ("too_many_missing" if above else None)


@given(measured=measurements(), data=st.data())
def test_one_unknown_usage_makes_the_cost_unknown_and_the_measurement_invalid(measured, data):
    k, trials = measured
    task = data.draw(st.sampled_from(sorted(trials)))
    at = data.draw(st.integers(0, k - 1))
    trials[task][at] = replace(trials[task][at], tokens=None)
    found = aggregate(trials, k, 1)
    assert (found.cost, found.fault) == (None, "incomplete_usage")


def test_other_faults_of_a_measurement_are_named():
    assert aggregate({"a": [Trial(1, 0)]}, 1, 0).fault == "cost_not_positive"
    assert aggregate({"a": [Trial(1, 5, None)]}, 1, 0).fault == "metric_missing"
    assert aggregate({"a": [Trial(1, 5, 0)]}, 1, 0).fault == "no_weight"
    with pytest.raises(ValueError, match="task a has 1 trials, expected 2"):
        aggregate({"a": [Trial(1, 5)]}, 2, 0)
    with pytest.raises(ValueError, match="at least one trial"):
        aggregate({}, 2, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.01, 1.01])
def test_a_reward_that_is_none_is_refused(value):
    with pytest.raises(ValueError, match="reward"):
        Trial(value, 1)
    assert Trial(-0.0, 1).counted == 0


@pytest.mark.parametrize("value", [math.nan, math.inf, -1])
def test_tokens_and_weights_that_are_none_are_refused(value):
    with pytest.raises(ValueError, match="tokens"):
        Trial(1, value)
    with pytest.raises(ValueError, match="weight"):
        Trial(1, 1, value)


def test_a_metric_that_one_trial_lacks_has_no_mean():
    both = {"a": [Trial(1, 1, 1, {"valid": 1}), Trial(1, 1, 1, {"valid": 0})]}
    assert mean_metric(both, "valid") == 0.5
    assert mean_metric({"a": [*both["a"], Trial(1, 1)]}, "valid") is None
    assert mean_metric(both, "other") is None


@given(measured=measurements(2), z=st.sampled_from([0.5, 1, 3]))
@settings(max_examples=3, deadline=None)
def test_a_calibrated_band_is_the_same_every_time_and_grows_with_z(measured, z):
    trials = dict(list(measured[1].items())[:3])
    assert calibrate([trials], z) == calibrate([trials], z)
    found = calibrate([trials], z)
    assert found.delta == pytest.approx(z * calibrate([trials], 1).delta, abs=2e-6)
    assert found.method == "bootstrap"
    same = {task: [runs[0], runs[0]] for task, runs in trials.items()}
    equal_weights = {task: [replace(run, weight=1) for run in runs] for task, runs in same.items()}
    assert calibrate([equal_weights], z).delta == 0


def test_evaluations_that_differ_calibrate_nothing():
    one, other = {"a": [Trial(1, 1)]}, {"b": [Trial(1, 1)]}
    with pytest.raises(ValueError, match="differ in their tasks"):
        calibrate([one, other], 2)
    with pytest.raises(ValueError, match="same number of trials"):
        calibrate([one, {"a": [Trial(1, 1), Trial(1, 1)]}], 2)
    with pytest.raises(ValueError, match="at least one task"):
        calibrate([], 2)


@given(
    last=st.integers(1, 60), low=st.integers(1, 9), more=st.integers(0, 9), t=st.integers(-5, 70)
)
def test_a_budget_only_shrinks_and_stays_within_its_limits(last, low, more, t):
    def budget(t):
        return edit_budget(t, rounds=last, b_min=low, b_max=low + more)

    assert budget(0) == low + more
    assert budget(last) == low
    assert low <= budget(t + 1) <= budget(t) <= low + more
    if more and t < last:
        assert budget(t) > low


@given(
    gains=st.lists(st.integers(0, 10), min_size=1, max_size=8),
    w=st.integers(1, 5),
    t=st.integers(0, 9),
    delta=st.integers(0, 20),
)
def test_a_search_stalls_exactly_when_its_gain_stays_within_the_band(gains, w, t, delta):
    hundreds = [sum(gains[: at + 1]) for at in range(len(gains))]
    found = stalled([value / 100 for value in hundreds], t, window=w, delta=delta / 100)
    known = w <= t < len(hundreds)
    assert found == (known and hundreds[t] - hundreds[t - w] <= delta)


@given(m=st.integers(1, 6), draft=st.integers(0, 8))
def test_reserved_slots_are_the_last_ones_of_a_stalled_round(m, draft):
    found = reserved_slots(m, draft, stalled=True, untried=["skill"])
    assert found == tuple(range(m))[max(m - draft, 0) :]
    assert reserved_slots(m, draft, stalled=False, untried=["skill"]) == ()
    assert reserved_slots(m, draft, stalled=True, untried=[]) == ()


def test_a_reserved_candidate_explores_when_one_edit_touches_an_untried_component():
    assert explores(["prompt", "skill"], ["skill", "memory"])
    assert not explores(["prompt"], ["skill"])
    assert not explores([], ["skill"])


@given(given_round=rounds())
def test_each_candidate_is_judged_as_if_it_were_alone(given_round):
    standing, candidates = given_round
    together = select(DEFAULT, standing, candidates).judgements
    for candidate, found in zip(candidates, together, strict=True):
        alone = judge(DEFAULT, standing, candidate)
        assert replace(found, outcome=alone.outcome) == alone


@given(given_round=rounds(), data=st.data())
def test_only_ties_depend_on_the_order_of_candidates(given_round, data):
    standing, candidates = given_round
    found = select(DEFAULT, standing, candidates)
    other = select(DEFAULT, standing, data.draw(st.permutations(candidates)))
    assert (found.winner is None) == (other.winner is None)
    assert found.standing.score == other.standing.score
    assert found.standing.best_score == other.standing.best_score


@given(given_round=rounds())
def test_the_winner_is_the_first_of_the_highest_admissible(given_round):
    standing, candidates = given_round
    found = select(DEFAULT, standing, candidates)
    passed = [
        one for one, said in zip(candidates, found.judgements, strict=True) if said.admissible
    ]
    outcomes = [said.outcome for said in found.judgements]
    if not passed:
        assert (found.winner, found.standing) == (None, standing)
        assert set(outcomes) == {"REJECTED"}
        return
    top = max(one.score for one in passed)
    assert found.winner == next(one.variant for one in passed if one.score == top)
    assert outcomes.count("ACCEPTED") == 1
    assert outcomes.count("LOST") == len(passed) - 1
    assert found.standing.best_score == max(standing.best_score, top)
    assert found.standing.score >= standing.best_score - DEFAULT.delta - 1e-9


@given(given_round=rounds(), rise=hundredths, saved=st.integers(0, 999))
def test_a_better_or_cheaper_candidate_is_never_refused_where_a_worse_one_passes(
    given_round, rise, saved
):
    # A weighted gain inside the band may well exceed what a gain above the band may cost, so the
    # score is raised on one side of the band only; without a band there is one side.
    standing, candidates = given_round
    candidate = candidates[0]
    found = judge(DEFAULT, standing, candidate)
    assume(found.admissible)
    assert judge(
        DEFAULT, standing, replace(candidate, cost=candidate.cost - saved % candidate.cost)
    ).admissible
    better = judge(
        DEFAULT, standing, replace(candidate, score=min(candidate.score + rise / 100, 1))
    )
    assume(better.branch == found.branch)
    assert better.admissible


@given(
    incumbent=hundredths,
    best=hundredths,
    score=hundredths,
    delta=st.integers(0, 30),
    cost=st.integers(1, 400),
)
def test_the_decision_is_that_of_exact_arithmetic(incumbent, best, score, delta, cost):
    best = max(best, incumbent)
    rule = replace(DEFAULT, delta=delta / 100)
    standing = Standing(incumbent / 100, 1000.0, best / 100)
    found = judge(rule, standing, Candidate("a", score / 100, cost * 10.0, ("skill",)))
    gain, rise = Fraction(score - incumbent, 100), Fraction(cost * 10 - 1000, 1000)
    if score < best - delta:
        expected = "floor"
    elif score - incumbent > delta:
        expected = None if rise <= Fraction("0.1") + 40 * gain else "cost_rule"
    else:
        expected = None if 100 * gain - 15 * rise + Fraction("0.5") > 0 else "cost_rule"
    assert found.failed_check == expected


@given(move=st.integers(-20, 20), limit=st.integers(0, 20))
def test_a_guard_lets_a_metric_move_to_its_limit(move, limit):
    before, after = {"valid": 0.5}, {"valid": (50 + move) / 100}
    standing = Standing(0.5, 1000.0, 0.5, before)
    candidate = Candidate("a", 0.9, 1000.0, (), after)
    drop = replace(DEFAULT, guards=(Guard("valid", max_drop=limit / 100),))
    rise = replace(DEFAULT, guards=(Guard("valid", max_rise=limit / 100),))
    assert judge(drop, standing, candidate).violated == (("valid",) if -move > limit else ())
    assert judge(rise, standing, candidate).violated == (("valid",) if move > limit else ())


def test_what_was_not_measured_is_never_free():
    standing = Standing(0.5, 1000.0, 0.5, {"valid": 1})
    guarded = replace(DEFAULT, guards=(Guard("valid", max_drop=0),))
    for cost in (None, 0.0, -1.0, math.nan, math.inf):
        assert judge(DEFAULT, standing, Candidate("a", 1.0, cost, ())).outcome == "eval_invalid"
    assert judge(guarded, standing, Candidate("a", 1.0, 1.0, ())).outcome == "eval_invalid"
    assert judge(guarded, standing, Gated("a", "no_proposal")).outcome == "no_proposal"


def test_a_round_that_cannot_be_judged_is_refused():
    standing = Standing(0.5, 1000.0, 0.5)
    twice = [Gated("a", "smoke_fail"), Gated("a", "smoke_fail")]
    with pytest.raises(ValueError, match="variants of a round must differ"):
        select(DEFAULT, standing, twice)
    with pytest.raises(ValueError, match="no metric valid"):
        select(replace(DEFAULT, guards=(Guard("valid"),)), standing, [])
    with pytest.raises(ValueError, match="cost must be above 0"):
        Standing(0.5, 0.0, 0.5)
    with pytest.raises(ValueError, match="w_s"):
        replace(DEFAULT, w_s=-1)


def test_the_rule_has_the_published_defaults():
    rule = SelectionRule.of(Rrsi(), 0.017)
    assert rule == SelectionRule(delta=0.017, beta0=0.1, beta1=40, w_s=100, w_c=15, w_n=0.5)
    assert SelectionRule.of(Rrsi(w_s=Decimal(0)), 0).w_s == 0


@given(touched=components, won=components)
def test_novelty_counts_structural_types_once(touched, won):
    found = novelty(touched, won)
    assert found == len({one for one in touched if one in STRUCTURAL and one not in won})
    assert novelty((*touched, *touched), won) == found
    assert novelty(touched, COMPONENTS) == 0


outcomes = st.sampled_from(["ACCEPTED", "LOST", "REJECTED", "critic_reject", "smoke_fail"])


@st.composite
def records(draw):
    outcome = draw(outcomes)
    measured = outcome in {"ACCEPTED", "LOST", "REJECTED"}
    gain = draw(st.integers(-20, 20)) / 100 if measured else None
    return EditRecord(
        draw(st.integers(0, 9)), "C1", draw(st.sampled_from(COMPONENTS)), outcome, gain
    )


@given(ledger=st.lists(records(), max_size=12), t=st.integers(0, 12), n=st.integers(0, 6))
def test_a_ledger_says_the_same_in_any_order(ledger, t, n):
    back = ledger[::-1]
    assert tried(ledger) == tried(back)
    assert untried(ledger) == untried(back)
    assert tried(ledger).isdisjoint(untried(ledger))
    assert tried(ledger) | set(untried(ledger)) == set(COMPONENTS)
    assert [one.component for one in prune_advice(ledger, t, n)] == [
        one.component for one in prune_advice(back, t, n)
    ]


@given(ledger=st.lists(records(), max_size=12), t=st.integers(0, 12), n=st.integers(0, 6))
def test_advice_to_prune_needs_a_tried_component_without_a_recent_gain(ledger, t, n):
    advised = {one.component for one in prune_advice(ledger, t, n)}
    for component in COMPONENTS:
        gains = [
            one.delta_score
            for one in ledger
            if one.component == component
            and one.delta_score is not None
            and t - n <= one.round <= t
        ]
        assert recent_yield(ledger, component, t, n) == max(gains, default=-math.inf)
        recent = any(gain > 0 for gain in gains)
        assert (component in advised) == (component in tried(ledger) and not recent)


@given(ledger=st.lists(records(), max_size=12), t=st.integers(0, 12))
def test_a_round_never_counts_its_own_winner(ledger, t):
    earlier = [one for one in ledger if one.round < t]
    assert won_before(ledger, t) == won_before(earlier, 99)


@given(k=st.integers(1, 9), lost=st.integers(0, 9), solved=st.integers(0, 9))
def test_a_regression_is_at_least_one_trial(k, lost, solved):
    solved = min(solved, k)
    lost = min(lost, solved)

    def runs(count):
        return [Trial(1.0 if at < count else 0.0, 1) for at in range(k)]

    (found,) = attribute(
        [Prediction("C1", ("elsewhere",))], {"a": runs(solved)}, {"a": runs(solved - lost)}, k
    )
    assert found.unpredicted_regressions == (("a",) if lost else ())
    assert (found.known, found.hit_rate) == (0, None)


def test_regressions_are_listed_up_to_a_limit_and_repeated_predictions_count_once():
    before = {f"t{at}": [Trial(1, 1)] for at in range(20)}
    after = {task: [Trial(0, 1)] for task in before}
    (found,) = attribute([Prediction("C1", ("t0", "t0"))], before, after, 1)
    assert found.known == 1
    assert found.unpredicted_regressions == tuple(f"t{at}" for at in range(1, 13))
    assert len(found.unpredicted_regressions) == LISTED_REGRESSIONS


@given(measured=measurements(), fail=st.integers(0, 8), success=st.integers(0, 8))
def test_each_task_has_one_trace_and_low_ones_come_first(measured, fail, success):
    _, trials = measured
    found = representatives(trials, fail, success)
    tasks = [one.task for one in found]
    assert len(set(tasks)) == len(tasks) == min(len(trials), fail + success)
    for place, one in enumerate(found):
        values = [run.counted for run in trials[one.task]]
        wanted = min(values) if place < fail else max(values)
        assert one.trial == values.index(wanted)
    # More views of the same round never change which trial stands for a failed task.
    assert representatives(trials, fail, success + 1)[: min(fail, len(trials))] == found[:fail]


@pytest.mark.parametrize(("available", "enough"), [(14, True), (13, False)])
def test_a_round_needs_half_of_its_traces(available, enough):
    assert enough_traces(available, 89, 22, 6) == enough
    assert enough_traces(2, 3, 22, 6)
    assert not enough_traces(1, 3, 22, 6)


@given(claim=st.none() | st.text(max_size=9) | st.sampled_from(COMPONENTS), diff=st.text())
def test_a_label_is_known_and_a_claim_needs_a_signal(claim, diff):
    found = normalise(claim, diff)
    assert found in COMPONENTS
    if found != classify(diff):
        signals = [one for one in GENERIC_SIGNALS if one.component == found]
        assert found == (claim or "").strip().lower()
        assert signals[0].occurs(diff)


@pytest.mark.parametrize(
    ("diff", "expected"),
    [
        ('+    "load_skill when stuck",', "prompt"),
        ("+# keep it in memory", "prompt"),
        ('+text = "remember"', "prompt"),
        ('+x = "a" if memory else "b"', "memory"),
        ("+++ b/skills/review/SKILL.md\n+Run the tests first.", "skill"),
        ("+++ b/AGENTS.md\n+Run the tests first.", "prompt"),
        ("+shared_memory = {}", "memory"),
        ("+tools/client_tools/x.py", "client_tool"),
        ("+delegate_task(goal)", "subagent"),
        ("+sub-agent = 1\n+memory = 2", "memory"),
        ("", "prompt"),
    ],
)
def test_what_a_diff_shows(diff, expected):
    assert classify(diff) == expected


def test_signals_of_a_target_go_before_the_generic_ones():
    own = [Signal("control_flow", ("retry",))]
    assert classify("+memory = retry()", own) == "control_flow"
    assert classify("+memory = retry()") == "memory"
    assert normalise("memory", "+memory = retry()", own) == "memory"


names = st.text("abc/", min_size=1, max_size=4)
trees = st.dictionaries(names, st.sampled_from(["1", "2"]), max_size=6)


def edit(number, paths, **fields):
    return Edit(
        **{
            "id": f"C{number}",
            "component": "skill",
            "hypothesis": "Agents skip the tests.",
            "targets_mode": "no_tests",
            "predicted_affected": (),
            "retroactive_check": "The trace shows no test run.",
            "paths": tuple(paths),
            **fields,
        }
    )


@given(incumbent=trees, earlier=trees, now=trees, data=st.data())
def test_a_declaration_covers_every_difference_to_the_incumbent(incumbent, earlier, now, data):
    # Whatever an earlier attempt left in the checkout is a difference as well.
    checkout = {**earlier, **now}
    changed = differences(incumbent, checkout)
    for path in incumbent.keys() | checkout.keys():
        assert (path in changed) == (incumbent.get(path) != checkout.get(path))
    assume(changed)
    kept = data.draw(st.sets(st.sampled_from(sorted(changed)), min_size=1))
    faults = declaration_faults([edit(1, kept)], changed, 1)
    missing = sorted(changed - kept)
    assert undeclared([edit(1, kept)], changed) == tuple(missing)
    expected = [f"No edit declares these changed paths: {', '.join(missing)}."] if missing else []
    assert list(faults) == expected


def test_an_illegal_declaration_is_told_whole():
    edits = [edit(1, ["a"]), edit(1, ["b"]), edit(2, ["c"], hypothesis=" ")]
    assert declaration_faults(edits, {"a", "c"}, 2) == (
        "3 edits are declared; this round allows 2.",
        "The id C1 is declared more than once.",
        "Edit C1 changed none of its paths.",
        "Edit C2 leaves hypothesis blank.",
    )
    assert declaration_faults([], set(), 2) == ("Nothing was changed.", "No edit is declared.")
    assert declaration_faults([edit(1, ["a"]), edit(2, ["a", "gone"])], {"a"}, 2) == ()
