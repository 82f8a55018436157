"""Rules of the study and its conditions: each is told at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xgent_evolve.errors import Fault
from xgent_evolve.spec.load import LoadedSpec

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]
type Faults = Callable[[object], list[Fault]]
type Edit = Callable[[Study], object]
type Refused = Callable[[Study, Edit, str, str], None]


def case(study: Study, index: int = 0) -> Study:
    return study["cases"][index]


def condition(study: Study, index: int) -> Study:
    return study["conditions"][index]


def as_search(study: Study) -> bool:
    study["mode"] = "search"
    study["budget"]["max_candidates"] = 3
    study["optimizer"] = {
        "model": "gpt-6.1-sol",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": "0" * 64,
    }
    return True


STUDY_RULES: dict[str, tuple[Edit, str, str]] = {
    "two cases of one name": (
        lambda s: case(s, 1).update(id="Task-One"),
        "$.cases[1].id",
        "used twice",
    ),
    "two conditions of one name": (
        lambda s: s["conditions"].append({"id": "absent", "skill": "absent", "agents": "fixed"}),
        "$.conditions[3].id",
        "used twice",
    ),
    "two guardrails of one name": (
        lambda s: s["guardrails"].append({"name": "task_contract", "floor": 1}),
        "$.guardrails[1].name",
        "used twice",
    ),
    "a baseline that is not declared": (
        lambda s: s.update(baseline_condition="nobody"),
        "$.baseline_condition",
        "no condition has this id",
    ),
    "a candidate that is not declared": (
        lambda s: s.update(candidate_condition="nobody"),
        "$.candidate_condition",
        "no condition has this id",
    ),
    "a candidate that is the baseline": (
        lambda s: s.update(candidate_condition="present"),
        "$.candidate_condition",
        "is the baseline condition",
    ),
    "a baseline with the candidate's text": (
        lambda s: s.update(baseline_condition="edited", candidate_condition="present"),
        "$.baseline_condition",
        "has the candidate's text",
    ),
    "AGENTS.md that varies in a skill study": (
        lambda s: condition(s, 0).update(agents="candidate"),
        "$.conditions[0].agents",
        "agents is background",
    ),
    "a background that differs between the compared arms": (
        lambda s: condition(s, 2).update(agents="minimal"),
        "$.candidate_condition",
        "which is not studied",
    ),
    "overrides without the level candidate": (
        lambda s: condition(s, 0).update(overrides={"skills/review/SKILL.md": "x"}),
        "$.conditions[0].overrides",
        "only the level candidate",
    ),
    "an override outside the target": (
        lambda s: condition(s, 2)["overrides"].update({"tests/test.sh": "exit 0"}),
        '$.conditions[2].overrides["tests/test.sh"]',
        "outside the target",
    ),
    "a candidate without any change": (
        lambda s: condition(s, 2).update(overrides={}),
        "$.candidate_condition",
        "the same content",
    ),
    "a skill comparison without an absent control": (
        lambda s: s["conditions"].pop(0),
        "$.conditions",
        "a control without the skill",
    ),
    "a weight of an unknown group": (
        lambda s: s["measurement"].update(weights={"nobody": 2}),
        "$.measurement.weights.nobody",
        "no case belongs",
    ),
    "a group on both sides of confirmation": (
        lambda s: case(s, 2).update(group="origin-one"),
        "$.cases[2].group",
        "confirmation split",
    ),
    "a comparison without a candidate": (
        lambda s: s.pop("candidate_condition"),
        "$.candidate_condition",
        "needs the condition under test",
    ),
    "a comparison of confirmation cases alone": (
        lambda s: (
            [item.update(split="confirmation") for item in s["cases"]]
            and s["budget"].update(max_trials=99, confirmation_trials=12)
        ),
        "$.cases",
        "not confirmation",
    ),
    "a search without optimizer": (
        lambda s: s.update(mode="search", budget=s["budget"] | {"max_candidates": 1}),
        "$.optimizer",
        "needs the proposer",
    ),
    "a search without candidates": (
        lambda s: as_search(s) and s["budget"].update(max_candidates=0),
        "$.budget.max_candidates",
        "at least 1 candidate",
    ),
    "a budget below the plan": (
        lambda s: s["budget"].update(max_trials=15),
        "$.budget.max_trials",
        "does not cover",
    ),
    "a reserve below one confirmation": (
        lambda s: s["budget"].update(confirmation_trials=3),
        "$.budget.confirmation_trials",
        "does not cover one confirmation",
    ),
    "a reserve without confirmation cases": (
        lambda s: s["cases"].pop(2),
        "$.budget.confirmation_trials",
        "needs confirmation cases",
    ),
}

AGENTS_RULES: dict[str, tuple[Edit, str, str]] = {
    "a skill that varies in an AGENTS.md study": (
        lambda s: condition(s, 0).update(skill="candidate"),
        "$.conditions[0].skill",
        "skill is background",
    ),
    "an override of another file than AGENTS.md": (
        lambda s: (
            s["target"].update(paths=["AGENTS.md", "src"])
            or s["authority"].update(write_paths=["AGENTS.md", "src"])
            or condition(s, 1)["overrides"].update({"src/main.py": "x"})
        ),
        '$.conditions[1].overrides["src/main.py"]',
        "AGENTS.md files alone",
    ),
    "a task of no repository": (
        lambda s: case(s).update(source={"kind": "local", "origin": "elsewhere"}),
        "$.cases[0].source.kind",
        "their own repository",
    ),
    "overrides of the level minimal": (
        lambda s: condition(s, 1).update(agents="minimal"),
        "$.conditions[1].overrides",
        "only the level candidate",
    ),
}


def test_the_template_breaks_no_rule(study: Study, load: Load) -> None:
    assert load(study).spec.mode == "compare"


def test_an_agents_study_breaks_no_rule(agents_study: Study, load: Load) -> None:
    assert load(agents_study).spec.target.surface == "agents"


def test_a_search_breaks_no_rule(study: Study, load: Load, widened: Edit) -> None:
    as_search(widened(study))
    assert load(study).spec.optimizer is not None


def test_a_search_needs_search_cases(study: Study, faults: Faults, widened: Edit) -> None:
    as_search(widened(study))
    for item in study["cases"]:
        if item["split"] == "search":
            item["split"] = "validation"
    assert [fault.message for fault in faults(study)] == [
        "mode search needs a case with the split search"
    ]


@pytest.mark.parametrize("broken", STUDY_RULES)
def test_the_study_is_refused_with(study: Study, refused: Refused, broken: str) -> None:
    refused(study, *STUDY_RULES[broken])


@pytest.mark.parametrize("broken", AGENTS_RULES)
def test_an_agents_study_is_refused_with(
    agents_study: Study, refused: Refused, broken: str
) -> None:
    refused(agents_study, *AGENTS_RULES[broken])


def test_the_present_skill_may_be_compared_with_none(study: Study, load: Load) -> None:
    study["conditions"].pop(2)
    study |= {"baseline_condition": "absent", "candidate_condition": "present"}
    load(study)


def test_minimal_may_be_compared_with_the_present_agents_text(
    agents_study: Study, load: Load
) -> None:
    agents_study["conditions"][1] = {"id": "edited", "skill": "absent", "agents": "minimal"}
    load(agents_study)


def test_a_smoke_needs_no_candidate_no_control_and_no_model(study: Study, load: Load) -> None:
    study["mode"] = "smoke"
    study["conditions"] = [study["conditions"][1]]
    for key in ("model", "effort", "tools", "authentication"):
        del study["runtime"][key]
    del study["authority"]["auth_path"], study["candidate_condition"]
    study["budget"] |= {"max_trials": 1, "confirmation_trials": 0}
    load(study)


def test_many_broken_rules_are_told_at_once_in_the_order_of_the_file(
    study: Study, faults: Faults
) -> None:
    study["authority"]["repo"] = "other"
    study["budget"]["max_trials"] = 1
    study["conditions"].pop(0)
    paths = [fault.where.split(": ", 1)[1] for fault in faults(study)]
    assert paths == ["$.authority.repo", "$.budget.max_trials", "$.conditions"]
