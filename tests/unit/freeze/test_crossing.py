"""Crossed conditions show every pairing of the two texts, and nothing else differs."""

from __future__ import annotations

import hashlib

import pytest

from xgent_evolve.api.analysis import interaction_of
from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.measure.outcomes import Row, Scored
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs


def build(study):
    blobs = MemoryBlobs()
    return build_protocol(study.load(), blobs), blobs


def refused(study):
    with pytest.raises(InvalidError) as caught:
        build(study)
    return caught.value


def text(blobs, digest, path):
    return next(blobs.get(entry.blob) for entry in load_bundle(blobs, digest) if entry.path == path)


def test_four_crossed_conditions_are_every_pairing_of_the_two_texts(study):
    study.cross()
    protocol, blobs = build(study)
    none, bb, bc, cb, cc = protocol.conditions
    assert bb.skill == bc.skill != cb.skill == cc.skill
    assert none.agents == bb.agents == cb.agents != bc.agents == cc.agents
    assert none.skill is None
    assert b"Check twice." in text(blobs, cc.skill.bundle, "SKILL.md")
    assert b"Be brief." in text(blobs, cc.agents, "AGENTS.md")
    assert b"Be brief." not in text(blobs, cb.agents, "AGENTS.md")


def test_a_crossed_candidate_that_changes_nothing_is_refused(study):
    study.cross()
    agents = (study.repo / "AGENTS.md").read_text()
    for number in (2, 4):
        study.spec["conditions"][number]["overrides"]["AGENTS.md"] = agents
    assert refused(study).code == "E_SPEC_NO_DIFFERENCE"


def test_a_crossed_condition_keeps_protected_rules_of_both_texts(study):
    study.cross()
    study.spec["target"]["protected_rules"] = [
        {"path": "AGENTS.md", "text": "Never touch secrets."},
        {"path": "skills/demo/SKILL.md", "text": "Never push."},
    ]
    build(study)
    for number in (2, 4):
        study.spec["conditions"][number]["overrides"]["AGENTS.md"] = "Be brief.\n"
    assert refused(study).code == "E_SPEC_PROTECTED_RULE"


def test_a_crossed_target_names_text_that_is_there(study):
    study.cross()
    study.spec["target"]["paths"][1] = "src/AGENTS.md"
    study.spec["cases"][0]["scope_paths"] = ["src"]
    for number in (2, 4):
        overrides = study.spec["conditions"][number]["overrides"]
        overrides["src/AGENTS.md"] = overrides.pop("AGENTS.md")
    build(study)
    study.write("src/AGENTS.override.md", "hidden\n")
    study.commit()
    assert refused(study).code == "E_SPEC_TARGET"


def test_the_interaction_is_computed_from_the_four_and_only_then(study):
    study.cross()
    protocol, _ = build(study)
    scores = {"none": 0, "bb": 0, "bc": 0, "cb": 0, "cc": 1}
    rows = [
        Row(f"c{number}", f"g{number}", condition, 1, Scored(score))
        for number in range(8)
        for condition, score in scores.items()
    ]
    found = interaction_of(protocol, rows)
    assert found is not None
    assert (found.estimate, found.cases) == (1.0, 8)
    assert (found.crossing.skill, found.crossing.agents) == ("cb", "bc")

    del study.spec["conditions"][4]
    study.spec["candidate_condition"] = "cb"
    protocol, _ = build(study)
    assert interaction_of(protocol, rows) is None


def test_a_search_over_a_directory_needs_a_task_at_every_nested_file(study):
    study.study_agents()
    for number in range(6):
        study.add_case(f"seen-{number}")
        study.add_case(f"held-{number}", split="confirmation")
    study.spec["budget"] |= {"max_trials": 60, "confirmation_trials": 12}
    study.spec["budget"]["max_candidates"] = 1
    study.spec["mode"] = "search"
    method = study.root / "method.md"
    method.write_text("Improve it.\n")
    study.spec["optimizer"] = {
        "model": "gpt-6.1-sol",
        "effort": "high",
        "method_path": "method.md",
        "method_sha256": hashlib.sha256(b"Improve it.\n").hexdigest(),
    }
    error = refused(study)
    assert error.code == "E_SPEC_TARGET"
    assert "none in src" in error.found
    study.spec["cases"][0]["scope_paths"] = ["src"]
    build(study)
