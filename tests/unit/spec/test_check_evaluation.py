"""Rules of a study of quality: each is told at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xgent_evolve.spec.bounds import call_bounds
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.models_v2 import JobSpecV2

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]
type Edit = Callable[[Study], object]
type Refused = Callable[[Study, Edit, str, str], None]


def evaluation(study: Study) -> Study:
    return study["evaluation"]


def as_bounded(study: Study) -> Study:
    """Turn a study of quality into the search for one candidate."""
    study |= {"mode": "search"}
    study["conditions"].append({"id": "none", "skill": "absent", "agents": "fixed"})
    study["measurement"]["search_policy"] = "bounded_exploration_v1"
    study["budget"] |= {"max_candidates": 1, "max_trials": 100}
    study["optimizer"] = {
        "model": "gpt-6.1-sol",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": "0" * 64,
    }
    for case in study["cases"]:
        case["split"] = "search"
    return study


RULES: dict[str, tuple[Edit, str, str]] = {
    "a root that the caller did not allow": (
        lambda s: s["authority"].update(evaluation_root="elsewhere"),
        "$.authority.evaluation_root",
        "does not allow",
    ),
    "no allowed root": (
        lambda s: s["authority"].pop("evaluation_root"),
        "$.authority.evaluation_root",
        "does not allow",
    ),
    "a case without a rubric": (
        lambda s: evaluation(s)["rubrics"].pop("task-two"),
        "$.evaluation.rubrics",
        "no rubric",
    ),
    "a rubric of no case": (
        lambda s: evaluation(s)["rubrics"].update({"task-ten": evaluation(s)["paths"][0]}),
        "$.evaluation.rubrics.task-ten",
        "no case has this id",
    ),
    "a rubric that is not listed": (
        lambda s: evaluation(s)["rubrics"].update({"task-one": "other.json"}),
        "$.evaluation.rubrics.task-one",
        "not listed",
    ),
    "a calibration that is not listed": (
        lambda s: evaluation(s).update(calibration="other.json"),
        "$.evaluation.calibration",
        "not listed",
    ),
    "an auxiliary rubric that is not listed": (
        lambda s: evaluation(s)["auxiliary"].update(rubric_path="other.json"),
        "$.evaluation.auxiliary.rubric_path",
        "not listed",
    ),
    "a path twice": (
        lambda s: evaluation(s)["paths"].append("auxiliary"),
        "$.evaluation.paths[5]",
        "listed twice",
    ),
    "a criterion twice": (
        lambda s: evaluation(s)["auxiliary"]["criterion_ids"].append("change-scope"),
        "$.evaluation.auxiliary.criterion_ids[1]",
        "listed twice",
    ),
    "an auxiliary scorer without authority": (
        lambda s: s["authority"].update(allow_typesafe_auxiliary=False),
        "$.authority.allow_typesafe_auxiliary",
        "does not allow",
    ),
    "an auxiliary scorer without a budget": (
        lambda s: s["budget"].update(max_auxiliary_calls=0),
        "$.budget.max_auxiliary_calls",
        "no budget",
    ),
    "auxiliary calls that use up the budget": (
        lambda s: s["budget"].update(max_auxiliary_calls=60),
        "$.budget.max_auxiliary_calls",
        "whole budget",
    ),
    "auxiliary calls of nobody": (
        lambda s: evaluation(s).pop("auxiliary"),
        "$.budget.max_auxiliary_calls",
        "no auxiliary scorer is declared",
    ),
    "one key for two services": (
        lambda s: (
            s["runtime"].update(authentication=evaluation(s)["auxiliary"]["authentication"])
            or s["authority"].pop("auth_path")
        ),
        "$.evaluation.auxiliary.authentication.name",
        "two services",
    ),
    "judging material in the source": (
        lambda s: (
            evaluation(s).update(root="repo/skills")
            or s["authority"].update(evaluation_root="repo/skills")
            or evaluation(s)["paths"].__setitem__(4, "review/auxiliary")
            or evaluation(s)["auxiliary"].update(
                rubric_path="review/auxiliary/r.json", calibration_path="review/auxiliary/c.json"
            )
        ),
        "$.evaluation.paths[4]",
        "would reach the agent",
    ),
    "judging material among public files": (
        lambda s: s["cases"][0].update(
            task_path="evaluation", public_paths=["instruction.md", "auxiliary"]
        ),
        "$.evaluation.paths[4]",
        "would reach the agent",
    ),
    "a budget that covers no judges": (
        lambda s: s["budget"].update(max_trials=27),
        "$.budget.max_trials",
        "at least 28 = 2 conditions x 2 cases x 2 repeats x 3 (agent and judges)",
    ),
    "another platform for a task of no repository": (
        lambda s: s["cases"][0].update(platform="linux/arm64"),
        "$.cases[0].platform",
        "only a task of the target repository",
    ),
    "another objective": (
        lambda s: s["measurement"].update(objective="task_success"),
        "$.measurement.objective",
        "task_quality",
    ),
    "another scorer": (
        lambda s: evaluation(s)["auxiliary"].update(model="jev-2"),
        "$.evaluation.auxiliary.model",
        "jev-1.14.0",
    ),
    "no evaluation": (lambda s: s.pop("evaluation"), "$.evaluation", "missing"),
}

BOUNDED: dict[str, tuple[Edit, str]] = {
    "no search": (lambda s: s.update(mode="calibrate"), "$.mode"),
    "two candidates": (
        lambda s: s["budget"].update(max_candidates=2),
        "$.budget.max_candidates",
    ),
    "an adoption": (
        lambda s: s["authority"].update(allow_apply=True, write_paths=s["target"]["paths"]),
        "$.authority.allow_apply",
    ),
    "paths to write": (
        lambda s: s["authority"].update(write_paths=s["target"]["paths"]),
        "$.authority.write_paths",
    ),
    "a confirmation": (
        lambda s: (
            s["cases"][1].update(split="confirmation") or s["budget"].update(confirmation_trials=12)
        ),
        "$.budget.confirmation_trials",
    ),
}


def test_the_template_breaks_no_rule(quality_study: Study, load: Load) -> None:
    spec = load(quality_study).spec
    assert isinstance(spec, JobSpecV2)
    assert spec.evaluation.auxiliary is not None
    assert spec.evaluation.auxiliary.long_context is False


@pytest.mark.parametrize("broken", RULES)
def test_a_study_of_quality_is_refused_with(
    quality_study: Study, refused: Refused, broken: str
) -> None:
    refused(quality_study, *RULES[broken])


def test_one_candidate_may_be_explored_on_search_cases_alone(
    quality_study: Study, load: Load
) -> None:
    spec = load(as_bounded(quality_study)).spec
    assert spec.measurement.search_policy == "bounded_exploration_v1"


@pytest.mark.parametrize("broken", BOUNDED)
def test_a_bounded_exploration_is_refused_with(
    quality_study: Study, refused: Refused, broken: str
) -> None:
    edit, path = BOUNDED[broken]
    refused(as_bounded(quality_study), edit, path, "adopts none")


def test_a_strict_search_needs_its_confirmation(quality_study: Study, refused: Refused) -> None:
    def strict(study: Study) -> None:
        as_bounded(study)["measurement"]["search_policy"] = "strict"
        model = study["cases"][0]
        for number in range(6):
            own = {"id": f"more-{number}", "group": f"more-{number}", "task_path": f"more/{number}"}
            study["cases"].append({**model, **own})
            study["evaluation"]["rubrics"][own["id"]] = study["evaluation"]["rubrics"][model["id"]]
        study["budget"]["max_trials"] = 400

    refused(quality_study, strict, "$.cases", "never saw")


def test_a_task_of_the_repository_may_have_another_platform(
    quality_study: Study, load: Load
) -> None:
    quality_study["source"]["paths"].append("src")
    quality_study["authority"]["export_paths"].append("src")
    quality_study["cases"][0] |= {
        "platform": "linux/arm64",
        "source": {"kind": "repo", "repo": "repo", "base": "a" * 40},
    }
    assert load(quality_study).spec.cases[0].platform == "linux/arm64"


def test_a_comparison_of_quality_counts_its_diagnosis_and_its_judges(
    quality_study: Study, load: Load
) -> None:
    quality_study |= {"mode": "compare", "candidate_condition": "none"}
    quality_study["conditions"].append({"id": "none", "skill": "absent", "agents": "fixed"})
    quality_study["budget"]["max_trials"] = 90
    bounds = call_bounds(load(quality_study).spec)
    assert (bounds.agent, bounds.judge, bounds.auxiliary) == (32, 90, 10)
    assert bounds.lines[0] == (
        "agent 16 = 2 equal conditions (noise) x 2 cases x 2 repeats + 2 conditions x 2 cases x"
        " 2 repeats; at most 32 with 1 retry each"
    )
