"""The golden cases of DarwinX, boundaries too."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.spec.strategies import Darwinx
from xgent_evolve.strategies.darwinx.admission import (
    Admission,
    confirm,
    confirm_recombination,
    screen,
)
from xgent_evolve.strategies.darwinx.cost import Prices
from xgent_evolve.strategies.darwinx.population import (
    Entry,
    best_lineage,
    choose_parent,
    lineage_gains,
    members,
    pairs,
    parent_draws,
    promoted,
    screening_draws,
    screening_tasks,
    step_kind,
)
from xgent_evolve.strategies.darwinx.scores import difference, overall, solved, task_means

type Json = Any

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[3] / "vectors" / "darwinx.json").read_text()
)["vectors"]
DEFAULTS = Darwinx()


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    found = [vector for vector in VECTORS if vector["kind"] in kinds]
    return pytest.mark.parametrize("vector", found, ids=[vector["name"] for vector in found])


def near(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=0, abs_tol=1e-9)


def test_every_case_is_of_a_kind_that_is_tested_here() -> None:
    assert Counter(vector["kind"] for vector in VECTORS) == {
        "means": 2,
        "validation": 1,
        "delta": 1,
        "confirm": 13,
        "screen": 3,
        "recombine": 5,
        "parent": 2,
        "parent_rng": 2,
        "lineage": 1,
        "pairs": 3,
        "cadence": 1,
        "cost": 1,
        "final": 1,
        "archive": 1,
    }


@of_kind("means")
def test_means(vector: dict[str, Json]) -> None:
    given, expected = vector["input"], vector["expected"]
    means = task_means(given["trials"])
    assert means == pytest.approx(expected["means"], abs=1e-15)
    assert sorted(solved(means, given["solved_threshold"])) == expected["solved"]
    if "total" in expected:
        assert near(overall(means), expected["total"])


@of_kind("validation")
def test_scores_and_tasks_that_cannot_be(vector: dict[str, Json]) -> None:
    """What concerns a JobSpec's settings is in tests/unit/spec/test_check_search.py."""
    cases = zip(vector["input"]["cases"], vector["expected"]["ok"], strict=True)
    seen = 0
    for case, ok in cases:
        if "score" in case or case.get("train") == []:
            seen += 1
            assert not ok
            trials = {task: [float(case["score"])] for task in case["train"]}
            with pytest.raises(ValueError, match=r"no task|not between 0 and 1"):
                task_means(trials)
        if "screen_size" in case:
            seen += 1
            tasks = [str(number) for number in range(case["train_size"])]
            chosen = screening_tasks(tasks, case["screen_size"], random.Random(1))
            assert ok
            assert sorted(chosen) == tasks
    assert seen == 5


@of_kind("delta")
def test_differences_are_sums(vector: dict[str, Json]) -> None:
    given, expected = vector["input"], vector["expected"]
    found = difference(given["parent"], given["candidate"])
    assert (found.gain, found.regression_mass) == (expected["gain"], expected["regression_mass"])
    assert list(found.improved) == expected["improved"]
    assert list(found.regressed) == expected["regressed"]


def check_admission(found: Admission, expected: dict[str, Json]) -> None:
    assert near(found.gain, expected["gain"])
    assert near(found.regression_mass, expected["regression_mass"])
    assert found.reference == expected["reference"]
    assert sorted(found.invariant) == expected["invariant"]
    assert list(found.lost_solved) == expected["lost_solved"]
    assert list(found.objections) == expected["reasons"]
    assert found.admitted is expected["accept"]
    if found.admitted:
        assert sorted(found.child_invariant) == expected["child_invariant"]


@of_kind("confirm")
def test_confirmation(vector: dict[str, Json]) -> None:
    given = vector["input"]
    found = confirm(
        given["parent"],
        given["candidate"],
        invariant=set(given["invariant"]),
        threshold=given["solved_threshold"],
        tolerance=given["regression_tolerance"],
    )
    check_admission(found, vector["expected"])


@of_kind("recombine")
def test_confirmation_of_a_recombination(vector: dict[str, Json]) -> None:
    given = vector["input"]
    found = confirm_recombination(
        given["primary"],
        given["donor"],
        given["candidate"],
        invariants=(set(given["primary_invariant"]), set(given["donor_invariant"])),
        threshold=given["solved_threshold"],
        tolerance=given["regression_tolerance"],
    )
    check_admission(found, vector["expected"])


@of_kind("screen")
def test_screening(vector: dict[str, Json]) -> None:
    given, expected = vector["input"], vector["expected"]
    tolerance = given["screen_regression_tolerance"]
    found = screen(given["parent"], given["candidate"], tolerance=tolerance)
    assert list(found.improved) == expected["positive_tasks"]
    assert near(found.regression_mass, expected["regression_mass"])
    assert near(found.gain, expected["gain"])
    assert found.passed is expected["pass"]


def test_the_screening_of_a_recombination_counts_what_the_donor_would_lose() -> None:
    primary, donor = {"a": 1.0, "b": 0.0}, {"a": 0.0, "b": 1.0}
    found = screen(primary, {"a": 1.0, "b": 0.5}, tolerance=0.4, donor=donor)
    assert (found.improved, found.regression_mass, found.passed) == (("b",), 0.5, False)


@dataclass
class Script:
    """Draws that a golden case prescribes; another draw than those is an error."""

    u: float
    index: int | None = None
    used: list[str] = field(default_factory=list)

    def random(self) -> float:
        self.used.append("random")
        return self.u

    def randrange(self, _stop: int, /) -> int:
        assert self.index is not None, "no second draw is made for the best lineage"
        self.used.append("randrange")
        return self.index

    def sample(self, population: Json, k: int) -> Json:
        raise AssertionError("a parent needs no sample")


def population_of(given: list[dict[str, Json]]) -> tuple[list[Entry], dict[str, float]]:
    entries = [Entry(item["id"], None) for item in given]
    return entries, {item["id"]: item["lineage_gain"] for item in given}


@of_kind("parent")
def test_parents(vector: dict[str, Json]) -> None:
    given = vector["input"]
    population, gains = population_of(given["population"])
    draws = given.get("draws") or given["cases"]
    for draw, pick in zip(draws, vector["expected"]["picks"], strict=True):
        script = Script(draw["u"], draw.get("uniform_index"))
        chance = draw.get("p", given.get("exploration_probability"))
        found = choose_parent(population, gains, chance, script)
        assert found.id == (pick["id"] if isinstance(pick, dict) else pick)
        if isinstance(pick, dict):
            assert (len(script.used) == 2) == (pick["mode"] == "explore")


@of_kind("parent_rng")
def test_draws(vector: dict[str, Json]) -> None:
    given = vector["input"]
    population, gains = population_of(given["population_fixed"])
    tasks = [str(number) for number in range(given["train_size"])]
    one = random.Random(given["seed"])
    derived = "derived" in vector["name"]
    for step in vector["expected"]["steps"]:
        number = step["step"]
        parent = parent_draws(given["seed"], number) if derived else one
        assert choose_parent(population, gains, 0.5, parent).id == step["parent"]
        subset = screening_draws(given["seed"], number) if derived else one
        chosen = screening_tasks(tasks, given["screen_size"], subset)
        assert chosen == [str(index) for index in step["screen_indices"]]
        if derived:
            assert parent_draws(given["seed"], number).random() == step["u"]


@of_kind("lineage")
def test_lineage_gain(vector: dict[str, Json]) -> None:
    archive = [
        Entry(node["id"], node["parent"], gain=node["gain"], donor=node.get("donor"))
        for node in vector["input"]["nodes"]
    ]
    gains = lineage_gains(archive)
    assert gains == vector["expected"]["lineage_gain"]
    assert best_lineage(members(archive), gains).id == vector["expected"]["exploit_pick"]


@of_kind("pairs")
def test_pairs(vector: dict[str, Json]) -> None:
    given, expected = vector["input"], vector["expected"]
    archive = [
        Entry(
            item["id"],
            item["parent"],
            "confirm_rejected" if item["confirmed"] else "screen_rejected",
            mean=item["mean"],
            solved=frozenset(item["solved"]),
        )
        for item in given["archive"]
    ]
    found = pairs(archive, [frozenset(names) for names in given["tried_pairs"]])
    assert [
        {"primary": pair.primary.id, "donor": pair.donor.id, "union": sorted(pair.union)}
        for pair in found
    ] == expected["pairs"]
    if "step_kind" in expected:
        assert step_kind(3, 3, has_pair=bool(found)) == expected["step_kind"]


@of_kind("cadence")
def test_kinds_of_steps(vector: dict[str, Json]) -> None:
    for case, expected in zip(vector["input"]["cases"], vector["expected"]["steps"], strict=True):
        steps = range(1, case["max_steps"] + 1)
        found = [step_kind(step, case["merge_every"], has_pair=True) for step in steps]
        assert [name.replace("recombination", "recombine") for name in found] == expected


@of_kind("cost")
def test_cost_identities(vector: dict[str, Json]) -> None:
    given, expected = vector["input"], vector["expected"]
    prices = Prices(
        given["N"], given["screen_size"], given["screen_samples"], given["confirm_samples"]
    )
    assert prices.start == expected["seed"]
    found = [
        prices.step(
            "recombination" if "recombination" in name else "mutation",
            measured="illegal" not in name,
            passed_screen="confirmed" in name,
        )
        for name in given["steps"]
    ]
    assert found == expected["per_step"]
    assert prices.most(3, 3) == 267 + 2 * 540 + 810


@of_kind("final")
def test_promotion(vector: dict[str, Json]) -> None:
    given = vector["input"]
    archive = [Entry(item["id"], None, mean=item["mean"]) for item in given["confirmed_members"]]
    archive += [
        Entry(item["id"], "seed", "confirm_rejected", mean=item["mean"])
        for item in given["rejected_archive"]
    ]
    assert promoted(members(archive)).id == vector["expected"]["promoted"]


@of_kind("archive")
def test_who_is_a_member_and_who_may_be_recombined(vector: dict[str, Json]) -> None:
    """Which edits are measured and learned from is the search's part, not a rule over entries."""
    expected = vector["expected"]
    statuses = {("pass", "pass"): "admitted", ("pass", "fail"): "confirm_rejected"}
    archive = [Entry("seed", None)]
    for number, step in enumerate(vector["input"]["steps"], start=1):
        if step["edit"] != "valid":
            continue
        status: Json = statuses.get((step["screen"], step.get("confirm")), "screen_rejected")
        name = f"m{number}" if status == "admitted" else f"step{number}"
        archive.append(Entry(name, step["parent"], status))
    assert [entry.id for entry in members(archive)] == expected["population"]
    shown = [
        entry.id if entry.status == "admitted" else f"{entry.id} ({entry.status})"
        for entry in archive
    ]
    assert shown == expected["archive_entries"]
    assert [entry.id for entry in archive if entry.confirmed] == expected["fully_confirmed"]


def test_the_defaults_are_those_of_the_text() -> None:
    assert (DEFAULTS.max_steps, DEFAULTS.merge_every, DEFAULTS.seed) == (10, 3, 42)
    assert float(DEFAULTS.screen_regression_tolerance) == 1.0
    assert float(DEFAULTS.regression_tolerance) == 0.0
