"""Rules of crossed texts, searches, lists and scopes: each is told at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xgent_evolve.errors import Fault
from xgent_evolve.spec.load import LoadedSpec

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]
type Edit = Callable[[Study], object]
type Refused = Callable[[Study, Edit, str, str], None]


def optimizer(study: Study, strategy: str, **settings: Any) -> Study:
    """Turn a comparison into a search with a strategy."""
    study["mode"] = "search"
    study["budget"]["max_candidates"] = 3
    study["optimizer"] = {
        "strategy": strategy,
        "model": "gpt-6.1-sol",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": "0" * 64,
        **settings,
    }
    return study


GEPA = {"dataset_id": "tasks", "dataset_version": "1"}

CROSSED: dict[str, tuple[Edit, str, str]] = {
    "both changes and not the other three": (
        lambda s: s["conditions"].pop(2),
        "$.conditions[3]",
        "needs the other three",
    ),
    "a second candidate": (
        lambda s: s["conditions"].append(
            s["conditions"][3] | {"id": "again", "overrides": {"skills/review/SKILL.md": "Thrice."}}
        ),
        "$.conditions[5]",
        "the same levels",
    ),
    "another skill text in the condition with both": (
        lambda s: s["conditions"][4]["overrides"].update({"skills/review/SKILL.md": "Thrice."}),
        "$.conditions[4].overrides",
        "different candidates for skill",
    ),
    "another AGENTS.md in the condition with both": (
        lambda s: s["conditions"][4]["overrides"].update({"AGENTS.md": "Long."}),
        "$.conditions[4].overrides",
        "different candidates for agents",
    ),
    "a skill text where the skill is the baseline": (
        lambda s: s["conditions"][2]["overrides"].update({"skills/review/notes.md": "x"}),
        "$.conditions[2].overrides",
        "only the level candidate",
    ),
    "a comparison across both that is not the crossing's": (
        lambda s: (
            s.update(baseline_condition="baseline-candidate")
            or s["conditions"][2].update(agents="minimal", overrides={})
        ),
        "$.candidate_condition",
        "differ in both",
    ),
    "tasks that AGENTS.md does not reach": (
        lambda s: s["cases"][0].update(source={"kind": "local", "origin": "elsewhere"}),
        "$.cases[0].source.kind",
        "their own repository",
    ),
    "an AGENTS.md of the skill itself": (
        lambda s: s["target"]["paths"].append("skills/review/AGENTS.md"),
        "$.target.paths[2]",
        "belongs to the skill",
    ),
    "a search": (
        lambda s: optimizer(s, "hillclimb"),
        "$.target.paths",
        "one kind of text",
    ),
}

SEARCHES: dict[str, tuple[Edit, str, str]] = {
    "settings of another strategy": (
        lambda s: optimizer(s, "hillclimb", rrsi={}),
        "$.optimizer.rrsi",
        "another strategy",
    ),
    "rrsi with a smallest budget above the largest": (
        lambda s: optimizer(s, "rrsi", rrsi={"b_min": 5}),
        "$.optimizer.rrsi.b_min",
        "at most b_max: 4",
    ),
    "rrsi with more reserved candidates than it has": (
        lambda s: optimizer(s, "rrsi", rrsi={"m_draft": 3}),
        "$.optimizer.rrsi.m_draft",
        "at most m: 2",
    ),
    "rrsi without a band": (
        lambda s: optimizer(s, "rrsi")["measurement"].update(repeats=1),
        "$.measurement.repeats",
        "cannot be calibrated",
    ),
    "darwinx with a weak confirmation": (
        lambda s: optimizer(s, "darwinx", darwinx={"confirm_samples": 1, "screen_samples": 2}),
        "$.optimizer.darwinx.confirm_samples",
        "at least screen_samples: 2",
    ),
    "gepa without its cases' name": (
        lambda s: optimizer(s, "gepa"),
        "$.optimizer.gepa",
        "name and version",
    ),
    "gepa with a critical case that is not held out": (
        lambda s: optimizer(s, "gepa", gepa=GEPA | {"critical_cases": ["task-one"]}),
        "$.optimizer.gepa.critical_cases[0]",
        "no confirmation case",
    ),
    "gepa without validation": (
        lambda s: optimizer(s, "gepa", gepa=GEPA)["cases"][1].update(split="search"),
        "$.cases",
        "validation",
    ),
    "a group on both sides of validation": (
        lambda s: optimizer(s, "hillclimb")["cases"][1].update(group="origin-one"),
        "$.cases[1].group",
        "validation split",
    ),
    "no confirmation cases": (
        lambda s: (
            optimizer(s, "hillclimb").update(
                cases=[case for case in s["cases"] if case["split"] != "confirmation"]
            )
            or s["budget"].update(confirmation_trials=0)
        ),
        "$.cases",
        "never saw",
    ),
    "too few groups to select": (
        lambda s: [case.update(group="one") for case in optimizer(s, "hillclimb")["cases"][3:8]],
        "$.cases",
        "can never decide",
    ),
    "too few groups to confirm": (
        lambda s: optimizer(s, "hillclimb")["cases"].pop(),
        "$.cases",
        "can never decide",
    ),
    "a baseline without the skill": (
        lambda s: optimizer(s, "hillclimb").update(baseline_condition="absent"),
        "$.conditions[0].skill",
        "starts from the text as it is",
    ),
    "a condition with a candidate's name": (
        lambda s: optimizer(s, "hillclimb")["conditions"][0].update(id="candidate-1"),
        "$.conditions[0].id",
        "names its candidates",
    ),
    "no reserve for confirmation": (
        lambda s: optimizer(s, "hillclimb")["budget"].update(confirmation_trials=0),
        "$.budget.confirmation_trials",
        "reserves its confirmation",
    ),
    "a setting that no strategy has": (
        lambda s: optimizer(s, "rrsi", rrsi={"repair_round": 2}),
        "$.optimizer.rrsi.repair_round",
        '"repair_rounds"',
    ),
}

LISTS = {
    "target.paths": lambda s: s["target"]["paths"],
    "target.protected_rules": lambda s: s["target"]["protected_rules"],
    "source.paths": lambda s: s["source"]["paths"],
    "authority.export_paths": lambda s: s["authority"]["export_paths"],
    "authority.write_paths": lambda s: s["authority"]["write_paths"],
    "cases[0].public_paths": lambda s: s["cases"][0]["public_paths"],
    "cases[0].grader_paths": lambda s: s["cases"][0]["grader_paths"],
    "cases[0].oracle_paths": lambda s: s["cases"][0]["oracle_paths"],
}


def test_a_crossed_study_breaks_no_rule(crossed_study: Study, load: Load) -> None:
    assert len(load(crossed_study).spec.conditions) == 5


def test_one_of_two_crossed_texts_may_be_compared_alone(crossed_study: Study, load: Load) -> None:
    del crossed_study["conditions"][4]
    crossed_study["candidate_condition"] = "candidate-baseline"
    load(crossed_study)


@pytest.mark.parametrize("broken", CROSSED)
def test_a_crossed_study_is_refused_with(
    crossed_study: Study, refused: Refused, broken: str
) -> None:
    refused(crossed_study, *CROSSED[broken])


@pytest.mark.parametrize(
    ("strategy", "settings"),
    [
        ("hillclimb", {}),
        ("rrsi", {}),
        ("rrsi", {"rrsi": {"T": 3, "delta": 0.02}}),
        ("darwinx", {}),
        ("gepa", {"gepa": GEPA | {"critical_cases": ["task-three"]}}),
    ],
)
def test_every_strategy_can_be_asked_for(
    study: Study, load: Load, widened: Edit, strategy: str, settings: Study
) -> None:
    found = load(optimizer(widened(study), strategy, **settings)).spec.optimizer
    assert found is not None
    assert found.strategy == strategy


def test_a_search_needs_the_groups_that_its_measurement_asks_for(
    study: Study, faults: Callable[[object], list[Fault]], widened: Edit
) -> None:
    optimizer(widened(study), "hillclimb")["measurement"]["min_groups"] = 7
    found = faults(study)
    assert [fault.found for fault in found] == ["6", "6"]
    assert "at least 7 independent" in found[0].expected


@pytest.mark.parametrize("broken", SEARCHES)
def test_a_search_is_refused_with(
    study: Study, refused: Refused, widened: Edit, broken: str
) -> None:
    refused(widened(study), *SEARCHES[broken])


@pytest.mark.parametrize("name", LISTS)
def test_an_item_that_is_listed_twice_is_refused(study: Study, refused: Refused, name: str) -> None:
    study["target"]["protected_rules"] = [{"path": "skills/review/SKILL.md", "text": "Look."}]
    for case in study["cases"]:
        case |= {"public_paths": ["instruction.md"], "grader_paths": ["tests"]}
        case |= {"oracle_paths": ["solution"]}
    items = LISTS[name](study)
    count = len(items)
    refused(study, lambda s: items.append(items[0]), f"$.{name}[{count}]", "listed twice")


@pytest.mark.parametrize(
    ("bases", "path"),
    [(["b" * 40, "b" * 40], "[1]"), (["a" * 40], "[0]")],
    ids=["twice", "the base itself"],
)
def test_compatible_bases_are_other_commits_each_once(
    study: Study, refused: Refused, bases: list[str], path: str
) -> None:
    def edit(study: Study) -> None:
        study["target"]["compatible_bases"] = bases

    refused(study, edit, f"$.target.compatible_bases{path}", "")


def test_nested_instructions_need_a_task_in_their_directory(
    agents_study: Study, refused: Refused, load: Load
) -> None:
    agents_study["target"]["paths"].append("src/AGENTS.md")
    agents_study["source"]["paths"].append("docs")
    agents_study["authority"] |= {
        "export_paths": ["AGENTS.md", "src", "docs"],
        "write_paths": ["AGENTS.md", "src"],
    }
    agents_study["cases"][0]["scope_paths"] = ["src/parser"]
    load(agents_study)

    def elsewhere(study: Study) -> None:
        study["cases"][0]["scope_paths"] = ["docs"]
        study["cases"][2]["scope_paths"] = ["src"]  # a confirmation case is not measured

    refused(agents_study, elsewhere, "$.target.paths[1]", "nested instructions")


def test_an_override_of_nested_instructions_needs_a_task_there(
    agents_study: Study, refused: Refused
) -> None:
    def edit(study: Study) -> None:
        study["target"]["paths"].append("src")
        study["authority"]["write_paths"].append("src")
        study["conditions"][1]["overrides"] = {"src/AGENTS.md": "Be brief."}

    path = '$.conditions[1].overrides["src/AGENTS.md"]'
    refused(agents_study, edit, path, "nested instructions")


@pytest.mark.parametrize(
    ("source", "scope", "words"),
    [
        ({"kind": "local", "origin": "here"}, "skills/review", "of the target repository"),
        ({"kind": "repo", "repo": "repo", "base": "a" * 40}, "docs", "nothing of this directory"),
    ],
)
def test_a_scope_is_a_frozen_directory_of_the_target(
    study: Study, refused: Refused, source: Study, scope: str, words: str
) -> None:
    def edit(study: Study) -> None:
        study["cases"][0] |= {"source": source, "scope_paths": [scope]}

    refused(study, edit, "$.cases[0].scope_paths[0]", words)


def test_two_conditions_of_one_content_are_refused(study: Study, refused: Refused) -> None:
    def edit(study: Study) -> None:
        study["conditions"].append({"id": "again", "skill": "fixed", "agents": "baseline"})

    refused(study, edit, "$.conditions[3]", "the same content")
