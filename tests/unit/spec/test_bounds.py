"""Upper bounds, with the arithmetic that a reader can follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xgent_evolve.spec.bounds import KINDS, Bounds, call_bounds
from xgent_evolve.spec.load import LoadedSpec

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]


def line(bounds: Bounds, kind: str) -> str:
    return next(text for text in bounds.lines if text.startswith(f"{kind} "))


def test_a_comparison_is_bounded_by_its_plan_its_retries_and_its_budget(
    study: Study, load: Load
) -> None:
    bounds = call_bounds(load(study).spec)
    assert (bounds.agent, bounds.confirmation, bounds.grade) == (16, 8, 40)
    assert line(bounds, "agent") == (
        "agent 12 = 3 conditions x 2 cases x 2 repeats; at most 16 with retries"
        " (budget.max_trials - 8 reserved for confirmation)"
    )
    assert line(bounds, "grade") == (
        "grade 20 = 1 for every finished agent execution + 2 checked cases x 2 (untouched,"
        " solved); at most 40 with 1 retry each"
    )
    assert line(bounds, "reference") == (
        "reference 2 = 2 checked cases x 1 run of the reference solution without a model;"
        " at most 4 with 1 retry each"
    )
    study["cases"][0]["oracle_check"] = "unchecked"
    assert line(call_bounds(load(study).spec), "reference").startswith("reference 1 = 1 checked")
    assert line(bounds, "confirmation") == (
        "confirmation 4 = 2 conditions x 1 case x 2 repeats; at most 8 with retries"
        " (budget.confirmation_trials)"
    )
    assert (bounds.judge, bounds.auxiliary, bounds.optimizer) == (0, 0, 0)


def test_the_budget_holds_where_retries_would_pass_it(study: Study, load: Load) -> None:
    study["budget"] |= {"max_trials": 22, "max_retries": 3}
    bounds = call_bounds(load(study).spec)
    assert bounds.agent == 14
    assert line(bounds, "agent").endswith(
        "; at most 14 with retries (budget.max_trials - 8 reserved for confirmation)"
    )


def test_without_retries_the_plan_is_the_bound(study: Study, load: Load) -> None:
    study["budget"] |= {"max_retries": 0, "confirmation_trials": 0}
    bounds = call_bounds(load(study).spec)
    assert line(bounds, "agent") == "agent 12 = 3 conditions x 2 cases x 2 repeats"
    assert line(bounds, "confirmation") == "confirmation 0 = budget.confirmation_trials is 0"
    assert (bounds.agent, bounds.confirmation) == (12, 0)


def test_a_search_pays_for_the_baseline_and_every_candidate(
    study: Study, load: Load, widened: Callable[[Study], Study]
) -> None:
    widened(study)
    study["mode"] = "search"
    study["optimizer"] = {
        "model": "m",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": "0" * 64,
    }
    study["budget"] |= {"max_candidates": 5, "max_trials": 84, "max_retries": 0}
    bounds = call_bounds(load(study).spec)
    assert (bounds.agent, bounds.optimizer, bounds.confirmation) == (60, 5, 24)
    assert line(bounds, "agent") == (
        "agent 72 = (1 baseline + 5 candidates) x 6 cases x 2 repeats; at most 60"
        " (budget.max_trials - 24 reserved for confirmation)"
    )
    assert line(bounds, "optimizer") == (
        "optimizer 5 = 1 for every candidate (budget.max_candidates)"
    )


def test_a_smoke_pays_for_one_login_at_most(study: Study, load: Load) -> None:
    study["mode"] = "smoke"
    study["budget"] |= {"max_retries": 0, "confirmation_trials": 0}
    bounds = call_bounds(load(study).spec)
    assert (bounds.agent, bounds.probe, bounds.reference, bounds.grade) == (1, 3, 3, 6)
    assert line(bounds, "grade") == (
        "grade 6 = 3 checked cases x 2 (the untouched workspace, the reference solution)"
    )
    study["runtime"] = {key: study["runtime"][key] for key in ("ssh", "remote_root", "docker",
                                                               "codex")}  # fmt: skip
    study["authority"]["auth_path"] = None
    bounds = call_bounds(load(study).spec)
    assert bounds.agent == 0
    assert line(bounds, "agent") == "agent 0 = no login start without runtime.model"


def test_every_kind_has_a_bound_and_one_to_explain_it(study: Study, load: Load) -> None:
    smoke = study | {"mode": "smoke"}
    for document in (study, smoke):
        bounds = call_bounds(load(document).spec)
        explained = {text.split(" ")[0] for text in bounds.lines}
        assert all(getattr(bounds, kind) == 0 or kind in explained for kind in KINDS)
        assert {"agent", "grade", "judge", "auxiliary", "optimizer", "confirmation"} <= explained
