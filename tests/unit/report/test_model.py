from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.report import studies
from xgent_evolve.report.inputs import Attempt, Auxiliary, Report, Tokens
from xgent_evolve.report.model import json_bytes, report_document

STUDIES = {
    "kept": studies.kept,
    "undecided": studies.undecided,
    "invalid": studies.invalid,
    "smoked": studies.smoked,
}


def document(report: Report) -> Any:
    return json.loads(json_bytes(report_document(report)))


def without_durations(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_durations(v) for k, v in value.items() if not k.endswith("_s")}
    return [without_durations(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", STUDIES)
def test_the_order_of_attempts_gaps_and_smoke_cases_does_not_matter(name: str) -> None:
    report = STUDIES[name]()
    attempts, gaps = list(report.attempts), list(report.gaps)
    random.Random(2).shuffle(attempts)
    smoke = None if report.smoke is None else tuple(reversed(report.smoke))
    shuffled = replace(report, attempts=attempts, gaps=gaps[::-1], smoke=smoke)
    assert json_bytes(report_document(shuffled)) == json_bytes(report_document(report))


def test_two_runs_of_one_protocol_differ_in_durations_alone() -> None:
    first = studies.undecided()
    slower = [
        replace(a, duration_s=None if a.duration_s is None else a.duration_s * 3)
        for a in first.attempts
    ]
    one, other = document(first), document(replace(first, attempts=slower))
    assert one != other
    assert without_durations(one) == without_durations(other)


@pytest.mark.parametrize("name", STUDIES)
def test_a_report_names_no_run_host_or_time_of_day(name: str) -> None:
    text = json_bytes(report_document(STUDIES[name]())).decode()
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-", text)
    assert not re.search(r"\d{2}:\d{2}:\d{2}", text)
    for word in ("run_id", "execution_id", "container", "hostname", "timestamp"):
        assert word not in text


def test_the_bytes_are_sorted_indented_and_end_in_one_newline() -> None:
    text = json_bytes({"b": 1, "a": [1.5, None]})
    assert text == b'{\n  "a": [\n    1.5,\n    null\n  ],\n  "b": 1\n}\n'


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_number_that_is_not_finite_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_bytes({"a": bad})


def test_unknown_usage_is_null_and_counted() -> None:
    agent = Attempt("agent", "b", "c", 1, 1, "valid", tokens=Tokens(10, None, 5, None))
    silent = Attempt("agent", "b", "c", 2, 1, "invalid", "agent_infrastructure")
    report = replace(studies.kept(), attempts=(agent, silent))
    tokens = document(report)["resources"]["agent"]["tokens"]
    assert tokens == {
        "executions": 2,
        "unknown_executions": 1,
        "input": 10,
        "cached_input": None,
        "output": 5,
        "reasoning_output": None,
    }
    gaps = [gap["code"] for gap in document(report)["evidence_gaps"]]
    assert gaps == ["usage_unknown"]


def test_a_grade_without_a_judge_uses_no_tokens() -> None:
    found = document(studies.kept())
    assert found["resources"]["evaluation"]["tokens"]["executions"] == 0
    assert found["resources"]["evaluation"]["tokens"]["unknown_executions"] == 0


def test_no_money_is_claimed() -> None:
    assert document(studies.kept())["resources"]["money"] is None


def test_auxiliary_usage_stands_apart() -> None:
    found = document(replace(studies.kept(), auxiliary=Auxiliary(3, None, 7)))["resources"]
    assert found["auxiliary"] == {"calls": 3, "input_tokens": None, "output_tokens": 7}


def test_counts_keep_behaviour_failures_and_invalid_attempts_apart() -> None:
    counts = document(studies.undecided())["counts"]
    assert counts["attempts"] == 60
    assert counts["invalid_attempts"] == 1
    assert counts["valid_behaviour_failures"] == 13
    assert counts["by_kind"]["agent"]["valid_behaviour_failures"] == 0


def test_an_interaction_is_null_when_the_conditions_are_not_crossed() -> None:
    assert document(studies.kept())["interaction"] is None
    assert document(studies.undecided())["interaction"] is not None


def test_confirmation_is_its_own_state() -> None:
    assert document(studies.kept())["confirmation"]["status"] == "not_run"


def test_control_characters_do_not_reach_the_document() -> None:
    for report in (studies.kept(), studies.smoked()):
        text = json.dumps(document(report), ensure_ascii=False)
        assert "\x1b" not in text
        assert "\\u001b" not in text


def test_smoke_says_that_it_never_qualifies() -> None:
    found = document(studies.smoked())
    assert "never qualifies a candidate for adoption" in found["verdict"]["sentence"]
    assert found["verdict"]["decision"] is None
    assert [case["case"] for case in found["smoke"]] == ["case-0", "case-1"]
    assert found["smoke"][1]["oracle"]["status"] == "failed"
