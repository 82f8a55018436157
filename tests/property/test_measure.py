"""What holds for every study, whatever its outcomes."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from statistics import NormalDist

from hypothesis import find, given, settings
from hypothesis import strategies as st

from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.outcomes import Outcome, Row, Scored, Unscored
from xgent_evolve.measure.power import more_groups
from xgent_evolve.spec.models_v1 import Guardrail, Measurement

REPEATS = 2
STRENGTH = {"invalid": 0, "inconclusive": 0, "discard": 1, "keep": 1}

scores = st.sampled_from([0.0, 0.0, 1.0, 1.0, 0.5, 1 / 3])
outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Scored, scores),
    st.builds(Scored, scores),
    st.builds(Scored, scores),
    st.just(Unscored("grade_timeout", "")),
)


@st.composite
def noisy(draw: st.DrawFn) -> list[Row]:
    """Up to ten groups of one or two cases, two conditions, up to two repeats; some rows lack."""
    rows: list[Row] = []
    for group in range(draw(st.integers(1, 10))):
        for case in range(draw(st.integers(1, 2))):
            for condition in ("base", "cand"):
                found = draw(st.lists(outcomes, min_size=1, max_size=REPEATS))
                rows += [
                    Row(f"c{group}-{case}", f"g{group}", condition, repeat, outcome)
                    for repeat, outcome in enumerate(found)
                ]
    return rows


@st.composite
def clear(draw: st.DrawFn) -> list[Row]:
    """Six to twelve groups that nearly all agree, nothing or little missing: these decide."""
    worse, better = draw(st.sampled_from([("base", "cand"), ("cand", "base")]))
    rows: list[Row] = []
    for group in range(draw(st.integers(6, 12))):
        high = draw(st.sampled_from([1.0, 1.0, 1.0, 0.5, 1 / 3]))
        last = draw(st.sampled_from([None, 0, 0, 0, 0, 0, 0, 0]))
        for repeat in range(REPEATS):
            lost = last is None and repeat == REPEATS - 1
            gain: Outcome = Unscored("reward_missing", "") if lost else Scored(high)
            rows.append(Row(f"c{group}-0", f"g{group}", better, repeat, gain))
            rows.append(Row(f"c{group}-0", f"g{group}", worse, repeat, Scored(0.0)))
    return rows


def studies() -> st.SearchStrategy[list[Row]]:
    """Studies of both kinds."""
    return st.one_of(noisy(), clear())


frozen = st.builds(
    Measurement,
    objective=st.just("task_success"),
    weights=st.sampled_from([{}, {"g0": Decimal(2)}, {"g1": Decimal("0.5"), "g2": Decimal(3)}]),
    min_gain=st.sampled_from([Decimal(0), Decimal("0.1")]),
    non_inferiority_margin=st.sampled_from([Decimal(0), Decimal("0.2")]),
    confidence=st.sampled_from([Decimal("0.5"), Decimal("0.8"), Decimal("0.95")]),
    min_groups=st.sampled_from([2, 6, 8]),
    repeats=st.just(REPEATS),
    seed=st.integers(0, 3),
)
floors = st.lists(
    st.builds(
        Guardrail,
        name=st.just("task_contract"),
        floor=st.sampled_from([Decimal(0), Decimal("0.4"), Decimal("0.9")]),
    ),
    max_size=1,
)


def compared(
    rows: list[Row],
    measurement: Measurement,
    guardrails: list[Guardrail] | None = None,
    conditions: tuple[str, str] = ("base", "cand"),
) -> Comparison:
    baseline, candidate = conditions
    return compare(
        rows,
        baseline=baseline,
        candidate=candidate,
        measurement=measurement,
        guardrails=guardrails or [],
    )


@given(rows=studies(), measurement=frozen, guardrails=floors, data=st.data())
@settings(deadline=None)
def test_the_order_of_rows_does_not_matter(
    rows: list[Row], measurement: Measurement, guardrails: list[Guardrail], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert compared(shuffled, measurement, guardrails) == compared(rows, measurement, guardrails)


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_swapping_the_conditions_mirrors_the_interval(
    rows: list[Row], measurement: Measurement
) -> None:
    forth = compared(rows, measurement)
    back = compared(rows, measurement, conditions=("cand", "base"))
    assert (forth.estimate is None) == (back.estimate is None)
    if forth.estimate is not None and back.estimate is not None:
        assert forth.estimate == -back.estimate
    assert (forth.interval is None) == (back.interval is None)
    if forth.interval is not None and back.interval is not None:
        assert (forth.interval.low, forth.interval.high) == (
            -back.interval.high,
            -back.interval.low,
        )
    assert (forth.missing.low, forth.missing.high) == (-back.missing.high, -back.missing.low)
    mirrored = {"better": "worse", "worse": "better"}
    assert back.verdict.word == mirrored.get(forth.verdict.word, forth.verdict.word)


@given(
    rows=studies(),
    measurement=frozen,
    guardrails=floors,
    condition=st.sampled_from(["base", "cand"]),
    case=st.sampled_from(["c0-0", "c1-0", "new"]),
)
@settings(deadline=None)
def test_a_further_unscored_trial_never_makes_a_decision_stronger(
    rows: list[Row],
    measurement: Measurement,
    guardrails: list[Guardrail],
    condition: str,
    case: str,
) -> None:
    group = next((row.group for row in rows if row.case == case), "new-group")
    lost = Row(case, group, condition, 99, Unscored("agent_infrastructure", "gone"))
    before = compared(rows, measurement, guardrails).verdict
    after = compared([*rows, lost], measurement, guardrails).verdict
    assert STRENGTH[after.decision] <= STRENGTH[before.decision]
    assert after.decision == before.decision or STRENGTH[after.decision] == 0
    assert after.word in (before.word, "no-decision")


@given(
    pair=st.tuples(scores, scores),
    groups=st.integers(1, 20),
    measurement=frozen,
)
@settings(deadline=None)
def test_equal_differences_never_decide(
    pair: tuple[float, float], groups: int, measurement: Measurement
) -> None:
    rows = [
        Row(f"c{number}", f"g{number}", condition, 0, Scored(score))
        for number in range(groups)
        for condition, score in zip(("base", "cand"), pair, strict=True)
    ]
    found = compared(rows, replace_repeats(measurement, 1))
    assert found.verdict.decision == "inconclusive"
    assert found.verdict.word == "no-decision"
    assert found.interval is None


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_bounds_and_interval_contain_the_estimate(
    rows: list[Row], measurement: Measurement
) -> None:
    found = compared(rows, measurement)
    assert -1 <= found.missing.low <= found.missing.high <= 1
    if found.estimate is not None:
        assert found.missing.low <= found.estimate <= found.missing.high
    if found.interval is not None and found.envelope is not None and found.estimate is not None:
        assert found.interval.low <= found.estimate <= found.interval.high
        assert found.envelope.low <= found.interval.low
        assert found.interval.high <= found.envelope.high


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_nothing_missing_means_that_bounds_and_estimate_are_one(
    rows: list[Row], measurement: Measurement
) -> None:
    found = compared(rows, measurement)
    if found.missing.missing == 0:
        assert found.missing.low == found.missing.high == found.estimate
        assert found.envelope == found.interval


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_keep_and_discard_come_with_an_interval_and_enough_groups(
    rows: list[Row], measurement: Measurement
) -> None:
    found = compared(rows, measurement)
    if found.verdict.decision in ("keep", "discard"):
        assert found.interval is not None
        assert found.paired_groups >= max(6, measurement.min_groups)
        assert found.paired_cases == found.total_cases
    assert found.verdict.reasons


def test_the_clear_studies_do_decide() -> None:
    for decision in ("keep", "discard"):
        for lossy in (True, False):
            assert find(
                st.tuples(clear(), frozen),
                lambda study, wanted=(decision, lossy): (
                    wanted
                    == (
                        (found := compared(*study)).verdict.decision,
                        found.missing.missing > 0,
                    )
                ),
                settings=settings(deadline=None, max_examples=2000),
            )


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_more_of_a_known_score_is_never_read_from_an_unscored_row(
    rows: list[Row], measurement: Measurement
) -> None:
    scored = [row for row in rows if isinstance(row.outcome, Scored)]
    kept_cases = [row for row in rows if row in scored or any(s.case == row.case for s in scored)]
    if scored:
        assert compared(kept_cases, measurement).estimate == compared(scored, measurement).estimate


@given(
    estimate=st.floats(-1, 1),
    error=st.floats(1e-3, 0.5),
    groups=st.integers(2, 200),
    required=st.integers(6, 20),
    gain=st.sampled_from([0.0, 0.05, 0.2]),
)
def test_as_many_more_groups_as_reported_put_the_interval_on_one_side(
    estimate: float, error: float, groups: int, required: int, gain: float
) -> None:
    def needed(distance: float, spread: float) -> int | None:
        return more_groups(
            estimate=gain + distance,
            standard_error=spread,
            groups=groups,
            required=required,
            gain=gain,
            confidence=0.95,
        )

    def reach(total: int) -> float:
        return NormalDist().inv_cdf(0.975) * error * math.sqrt(groups / total)

    distance = estimate - gain
    found = needed(distance, error)
    if found is None:
        assert abs(distance) <= 1e-12 or reach(10_000) > abs(distance) * (1 - 1e-9)
        return
    assert found >= max(1, required - groups)
    assert reach(groups + found) <= abs(distance) * (1 + 1e-9)
    if found > max(1, required - groups):
        assert reach(groups + found - 1) > abs(distance) * (1 - 1e-9), "one fewer would not do"
    wider = needed(distance, error * 1.5)
    assert wider is None or wider >= found
    assert needed(-distance, error) == found


@given(rows=studies(), measurement=frozen, guardrails=floors)
@settings(deadline=None)
def test_more_groups_are_reported_only_where_they_could_help(
    rows: list[Row], measurement: Measurement, guardrails: list[Guardrail]
) -> None:
    found = compared(rows, measurement, guardrails)
    if found.more_groups is None:
        return
    assert found.verdict.decision in ("inconclusive", "discard")
    codes = {reason.code for reason in found.verdict.reasons}
    assert codes & {"interval_spans_gain", "too_few_groups"}
    assert found.paired_groups + found.more_groups >= found.required_groups


@given(rows=studies(), measurement=frozen, guardrails=floors, data=st.data())
@settings(deadline=None)
def test_no_unknown_value_can_undo_what_is_said_of_a_floor(
    rows: list[Row], measurement: Measurement, guardrails: list[Guardrail], data: st.DataObject
) -> None:
    for told in compared(rows, measurement, guardrails).guardrails:
        filled = [
            row
            if isinstance(row.outcome, Scored)
            else replace(row, outcome=Scored(data.draw(st.sampled_from([0.0, 0.3, 1.0]))))
            for row in with_every_trial(rows)
        ]
        (known,) = compared(filled, measurement, guardrails).guardrails
        assert known.unknown == 0
        assert known.candidate is not None
        assert told.low - 1e-6 <= known.candidate <= told.high + 1e-6
        assert known.status == ("held" if known.low >= known.floor else "regressed")
        if told.status != "unknown":
            assert known.status == told.status


@given(rows=studies(), measurement=frozen, floor=st.sampled_from(["0.3", "0.6", "0.9"]))
@settings(deadline=None)
def test_floors_decide_as_they_are_documented(
    rows: list[Row], measurement: Measurement, floor: str
) -> None:
    guardrail = Guardrail(name="task_contract", floor=Decimal(floor))
    free = compared(rows, measurement).verdict
    bound = compared(rows, measurement, [guardrail])
    (told,) = bound.guardrails
    codes = [reason.code for reason in bound.verdict.reasons]
    if free.decision == "invalid":
        assert bound.verdict.decision == "invalid"
    elif told.status == "regressed":
        assert (bound.verdict.decision, codes[0]) == ("discard", "guardrail_regressed")
    elif told.status == "unknown":
        assert bound.verdict.decision == "inconclusive"
        assert "guardrail_unknown" in codes
    else:
        assert bound.verdict == free


@given(rows=studies(), measurement=frozen)
@settings(deadline=None)
def test_a_check_that_nobody_reports_is_unknown_and_never_kept(
    rows: list[Row], measurement: Measurement
) -> None:
    found = compared(rows, measurement, [Guardrail(name="lint", floor=Decimal(0))])
    (told,) = found.guardrails
    assert (told.status, told.known, told.candidate) == ("unknown", 0, None)
    assert found.verdict.decision in ("inconclusive", "invalid")


def with_every_trial(rows: list[Row]) -> list[Row]:
    """The rows, and an unscored one for each trial of the protocol that lacks one."""
    missing = Unscored("not_run", "")
    found = {(row.case, row.condition, row.repeat): row for row in rows}
    for case, group in sorted({(row.case, row.group) for row in rows}):
        for condition in ("base", "cand"):
            for repeat in range(REPEATS):
                key = (case, condition, repeat)
                found.setdefault(key, Row(case, group, condition, repeat, missing))
    return list(found.values())


def replace_repeats(measurement: Measurement, repeats: int) -> Measurement:
    """The same measurement with another number of repeats."""
    return measurement.replaced(repeats=repeats)
