"""The golden cases of RRSI: what its description and its published code come to, boundaries too."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.strategies.rrsi.aggregate import Trial, aggregate
from xgent_evolve.strategies.rrsi.calibration import (
    BOOTSTRAP_REPETITIONS,
    BOOTSTRAP_SEED,
    calibrate,
)
from xgent_evolve.strategies.rrsi.history import (
    EditRecord,
    Prediction,
    attribute,
    prune_advice,
    recent_yield,
    tried,
    untried,
    won_before,
)
from xgent_evolve.strategies.rrsi.labels import Signal, normalise
from xgent_evolve.strategies.rrsi.schedule import edit_budget, reserved_slots, stalled
from xgent_evolve.strategies.rrsi.selection import (
    Candidate,
    Gated,
    Guard,
    SelectionRule,
    Standing,
    novelty,
    select,
)
from xgent_evolve.strategies.rrsi.traces import representatives

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[3] / "vectors" / "rrsi.json").read_text()
)["vectors"]


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    found = [vector for vector in VECTORS if vector["kind"] in kinds]
    return pytest.mark.parametrize("vector", found, ids=[vector["name"] for vector in found])


def near(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=0, abs_tol=1e-9)


def test_every_case_is_of_a_kind_that_is_tested_here() -> None:
    assert Counter(vector["kind"] for vector in VECTORS) == {
        "budget_table": 1,
        "budget": 1,
        "aggregate": 4,
        "aggregate_validity": 1,
        "select": 19,
        "calibrate": 8,
        "stall": 1,
        "reserved": 1,
        "history": 1,
        "attribute": 1,
        "traces": 1,
        "normalize": 1,
        "loop": 1,
    }


def trials_of(task: dict[str, Any]) -> list[Trial]:
    """The last `missing` trials of a task failed."""
    count = len(task["rewards"])
    weights = task.get("weights", [1.0] * count)
    from_here = count - task.get("missing", 0)
    return [
        Trial(task["rewards"][at] if at < from_here else None, task["tokens"][at], weights[at])
        for at in range(count)
    ]


def scored(rewards: dict[str, list[float]]) -> dict[str, list[Trial]]:
    return {task: [Trial(reward, 1) for reward in runs] for task, runs in rewards.items()}


@of_kind("aggregate")
def test_aggregates(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    trials = {task: trials_of(runs) for task, runs in given["per_task"].items()}
    found = aggregate(trials, given["k"], given["invalid_missing_frac"])
    assert near(found.score, expected["S"])
    assert found.cost == expected["C"]
    assert (found.expected, found.missing) == (expected["n_expected"], expected["missing"])
    assert (found.fault is None, found.fault) == (expected["valid"], expected["invalid_reason"])


@of_kind("aggregate_validity")
def test_the_limit_of_missing_trials_may_be_reached(vector: dict[str, Any]) -> None:
    given = vector["input"]
    total = given["tasks"] * given["k"]
    for missing, expected in zip(given["missing_trials"], vector["expected"]["cases"], strict=True):
        runs = [
            Trial(None if at < missing else given["all_other_rewards"], 1) for at in range(total)
        ]
        trials = {
            f"t{number}": runs[number * given["k"] : (number + 1) * given["k"]]
            for number in range(given["tasks"])
        }
        found = aggregate(trials, given["k"], given["invalid_missing_frac"])
        assert near(found.score, expected["S"])
        assert found.missing == expected["n_missing"]
        assert (found.fault is None, found.fault) == (expected["valid"], expected["invalid_reason"])


@of_kind("budget_table")
def test_budget_tables(vector: dict[str, Any]) -> None:
    found = [
        [
            edit_budget(t, rounds=row["T"], b_min=row["b_min"], b_max=row["b_max"])
            for t in range(row["T"] + 1)
        ]
        for row in vector["input"]
    ]
    assert found == vector["expected"]["tables"]


@of_kind("budget")
def test_budgets_at_the_edges(vector: dict[str, Any]) -> None:
    found = [
        edit_budget(row["t"], rounds=row["T"], b_min=row["b_min"], b_max=row["b_max"])
        for row in vector["input"]
    ]
    assert found == [row["b"] for row in vector["expected"]]


def candidates_of(rows: list[dict[str, Any]]) -> list[Candidate | Gated]:
    return [
        Gated(row["variant"], row["gate_failure"])
        if "gate_failure" in row
        else Candidate(
            row["variant"], row["S"], row["C"], tuple(row["components"]), row.get("metrics", {})
        )
        for row in rows
    ]


@of_kind("select")
def test_selections(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    guards = tuple(Guard(**guard) for guard in given.get("guards", ()))
    rule = SelectionRule(delta=given["delta"], guards=guards, **given["config"])
    standing = Standing(
        given["incumbent"]["S"],
        given["incumbent"]["C"],
        given["S_star"],
        given["incumbent"].get("metrics", {}),
    )
    candidates = candidates_of(given["candidates"])
    found = select(rule, standing, candidates, given.get("accepted_counts", {}))
    assert found.winner == expected["winner"]
    assert near(found.standing.score, expected["S_next"])
    assert near(found.standing.best_score, expected["S_star_next"])
    for one, row in zip(found.judgements, expected["decisions"], strict=True):
        assert one.variant == row["variant"]
        assert one.branch == row["branch"]
        assert one.admissible == row["admissible"]
        assert one.failed_check == row["failed_check"]
        assert one.outcome == row["outcome"]
        assert one.novelty == row.get("novelty")
        assert list(one.violated) == row.get("violated", [])
        for value, key in (
            (one.delta_score, "delta_S"),
            (one.delta_cost, "delta_C"),
            (one.cost_allowance, "budget"),
            (one.shaped_gain, "shaped"),
        ):
            assert (value is None) == (key not in row), key
            assert value is None or near(value, row[key]), key


@of_kind("calibrate")
def test_calibrations(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    assert (given["bootstrap_reps"], given["seed"]) == (BOOTSTRAP_REPETITIONS, BOOTSTRAP_SEED)
    weights = given["weights"]
    baselines = [
        {
            task: [
                Trial(reward, 1, weights[task][at] if weights else 1)
                for at, reward in enumerate(rewards)
            ]
            for task, rewards in one.items()
        }
        for one in given["base_evaluations"]
    ]
    if "error" in expected:
        with pytest.raises(ValueError, match=expected["error"]):
            calibrate(baselines, given["delta_z"])
        return
    found = calibrate(baselines, given["delta_z"])
    assert found.method == expected["method"]
    assert list(found.scores) == pytest.approx(expected["S_per_eval"], abs=1e-9)
    for name in ("delta", "sd_null", "se_bootstrap", "sd_null_bootstrap"):
        assert getattr(found, name) == pytest.approx(expected[name], abs=2e-6), name


@of_kind("stall")
def test_stalls(vector: dict[str, Any]) -> None:
    found = [
        [
            int(stalled(case["trajectory"], t, window=window, delta=delta))
            for t, window, delta in case["queries_t_w_delta"]
        ]
        for case in vector["input"]["cases"]
    ]
    assert found == vector["expected"]["sigma"]


@of_kind("reserved")
def test_reserved_slots(vector: dict[str, Any]) -> None:
    found = [
        list(
            reserved_slots(
                case["m"], case["m_draft"], stalled=bool(case["sigma"]), untried=case["untried"]
            )
        )
        for case in vector["input"]["cases"]
    ]
    assert found == vector["expected"]["reserved_variant_indexes"]


@of_kind("history")
def test_histories(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    records = [
        EditRecord(
            row["t"],
            row["edit_id"],
            row["component"],
            "ACCEPTED" if row["accepted"] else row.get("outcome", "REJECTED"),
            row["delta_S"],
        )
        for row in given["records"]
    ]
    assert sorted(tried(records)) == expected["tried"]
    assert list(untried(records)) == expected["untried"]
    for t in given["query_t"]:
        row = expected["by_t"][str(t)]
        for component, best in row["yield"].items():
            found = recent_yield(records, component, t, given["n_prune"])
            assert found == (-math.inf if best is None else best), (t, component)
        advice = prune_advice(records, t, given["n_prune"])
        assert [one.component for one in advice] == row["prune"], t
        for one in advice:
            accepted = expected["accepted_edits"].get(one.component, [])
            assert [record.id for record in one.accepted] == accepted
    for t, count in expected["novelty_of_subagent_at_t"].items():
        assert novelty(["subagent"], won_before(records, int(t))) == count


@of_kind("attribute")
def test_attributions(vector: dict[str, Any]) -> None:
    for case, expected in zip(vector["input"]["cases"], vector["expected"]["cases"], strict=True):
        predictions = [
            Prediction(edit["id"], tuple(edit["predicted_affected"])) for edit in case["edits"]
        ]
        before, after = scored(case["incumbent"]), scored(case["candidate"])
        found = attribute(predictions, before, after, case["k"])
        assert [
            {
                "n_predicted": one.known,
                "predicted_hit": list(one.hits),
                "hit_rate": one.hit_rate,
                "unpredicted_regressions": list(one.unpredicted_regressions),
            }
            for one in found
        ] == expected["rows"]


@of_kind("traces")
def test_choices_of_traces(vector: dict[str, Any]) -> None:
    trials = scored(vector["input"]["per_task"])
    found = [
        [[one.task, one.trial] for one in representatives(trials, *numbers)]
        for numbers in vector["input"]["n_fail_success"]
    ]
    assert found == vector["expected"]["selected_task_trial"]


@of_kind("normalize")
def test_labels(vector: dict[str, Any]) -> None:
    found = [
        normalise(
            case["declared"],
            case["diff"],
            [Signal(label, tuple(patterns)) for label, patterns in case["domain_signals"]],
        )
        for case in vector["input"]["cases"]
    ]
    assert found == vector["expected"]["labels"]


@of_kind("loop")
def test_four_rounds(vector: dict[str, Any]) -> None:
    given, expected = vector["input"], vector["expected"]
    rule = SelectionRule(delta=given["delta"], **given["config"])
    standing = Standing(given["incumbent"]["S"], given["incumbent"]["C"], given["incumbent"]["S"])
    trajectory = [standing.score]
    records: list[EditRecord] = []
    for t, (rows, row) in enumerate(zip(given["rounds"], expected["rounds"], strict=True)):
        budget = edit_budget(t, rounds=given["T"], b_min=given["b_min"], b_max=given["b_max"])
        sigma = stalled(trajectory, t, window=given["w"], delta=given["delta"])
        assert (t, budget, int(sigma)) == (row["t"], row["b_t"], row["sigma"])
        found = select(rule, standing, candidates_of(rows), won_before(records, t))
        assert found.winner == row["winner"]
        assert [one.failed_check for one in found.judgements] == row["checks"]
        standing = found.standing
        assert near(standing.score, row["incumbent_S"])
        assert near(standing.best_score, row["S_star"])
        trajectory.append(standing.score)
        records += [
            EditRecord(t, f"C{at}", component, one.outcome, one.delta_score)
            for one, candidate in zip(found.judgements, rows, strict=True)
            for at, component in enumerate(candidate["components"], 1)
        ]
    assert trajectory == pytest.approx(expected["trajectory"], abs=1e-9)
    counts = Counter(record.component for record in records if record.accepted)
    assert counts == expected["accepted_counts"]
