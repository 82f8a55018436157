"""Two runs side by side: described, never decided on."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from tests.unit.report import studies
from xgent_evolve.canonical import digest_bytes
from xgent_evolve.report.inputs import Report
from xgent_evolve.report.model import report_document
from xgent_evolve.report.run_comparison import (
    LIMIT,
    FinishedRun,
    compared_runs,
    comparison_lines,
)


def side(report: Report, name: str, *, model: str = "a", other_case: str = "") -> FinishedRun:
    cases: Any = {f"case-{n}": {"frozen": n} for n in range(8)}
    if other_case:
        cases[other_case] = {"frozen": "changed"}
    frozen: Any = {"spec": {"runtime": {"model": model}}, "cases": cases}
    return FinishedRun(name, frozen, report_document(report), "computed")


def compared(first: FinishedRun, second: FinishedRun) -> Any:
    return json.loads(json.dumps(compared_runs(first, second)))


def test_a_run_beside_itself_differs_in_nothing() -> None:
    found = compared(side(studies.kept(), "a"), side(studies.kept(), "b"))
    assert found["same_protocol"] is True
    assert found["frozen_differences"] == []
    assert [s["first_condition"] for s in found["shared"]] == ["baseline", "candidate"]
    assert all(s["same_text"] and s["mean_difference"] == 0 for s in found["shared"])
    assert all(s["paired_groups"] == 8 for s in found["shared"])


def test_what_was_frozen_differently_is_named_with_both_values() -> None:
    report = studies.kept()
    other = replace(report, study=replace(report.study, protocol_digest=digest_bytes(b"other")))
    found = compared(side(report, "a"), side(other, "b", model="b"))
    assert found["same_protocol"] is False
    assert found["frozen_differences"] == [
        {"where": "$.spec.runtime.model", "first": "a", "second": "b"}
    ]
    text = "\n".join(comparison_lines(found))
    assert "another protocol: 1 differences" in text
    assert "$.spec.runtime.model" in text


def test_only_the_very_same_tasks_are_paired() -> None:
    found = compared(side(studies.kept(), "a"), side(studies.kept(), "b", other_case="case-3"))
    for shared in found["shared"]:
        assert shared["shared_cases"] == 7
        assert shared["cases_that_differ_or_are_in_one_run"] == 1
        assert "case-3" not in [case["case"] for case in shared["cases"]]


def test_the_worst_comes_first_and_what_is_missing_is_not_0() -> None:
    found = compared(side(studies.kept(), "a"), side(studies.undecided(), "b"))
    candidate = next(s for s in found["shared"] if s["first_condition"] == "candidate")
    differences = [case["difference"] for case in candidate["cases"]]
    known = [difference for difference in differences if difference is not None]
    assert known == sorted(known)
    assert differences[-1] is None, "case-7 was lost in the second run"
    assert candidate["paired_cases"] == 7


def test_another_text_under_one_name_is_said_to_be_one() -> None:
    report = studies.kept()
    conditions = (("baseline", digest_bytes(b"b")), ("candidate", digest_bytes(b"new")))
    other = replace(report, digests=replace(report.digests, conditions=conditions))
    found = compared(side(report, "a"), side(other, "b"))
    texts = {s["first_condition"]: (s["same_text"], s["meaning"]) for s in found["shared"]}
    assert texts["baseline"][0] is True
    assert texts["candidate"][0] is False
    assert "cannot be told apart" in texts["candidate"][1]


def test_no_interval_and_no_verdict_is_given_between_runs() -> None:
    found = compared(side(studies.kept(), "a"), side(studies.invalid(), "b"))
    for shared in found["shared"]:
        assert not {"interval", "verdict", "decision", "p_value"} & set(shared)
    assert found["limit"] == LIMIT
    lines = comparison_lines(found)
    assert max(map(len, lines)) <= 80
    assert "no interval, no verdict" in " ".join(" ".join(lines).split())


def test_two_smokes_share_no_condition() -> None:
    found = compared(side(studies.smoked(), "a"), side(studies.smoked(), "b"))
    assert found["shared"] == []
    assert "no condition was measured in both runs" in "\n".join(comparison_lines(found))
