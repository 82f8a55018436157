"""The lists in docs/receipts.md and docs/report.md are those of the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from xgent_evolve.execution.facts import FactModel
from xgent_evolve.harbor.artifacts import ExitRecord
from xgent_evolve.measure.comparison import ReasonCode
from xgent_evolve.measure.outcomes import CAUSES

ROOT = Path(__file__).resolve().parents[2]
RECEIPTS = (ROOT / "docs" / "receipts.md").read_text()
RUNNER = ROOT / "xgent_evolve" / "payload" / "host_runner"


def section(text: str, title: str) -> str:
    return re.split(r"^## ", text.partition(f"\n## {title}\n")[2], maxsplit=1, flags=re.MULTILINE)[
        0
    ]


def first_cells(table: str) -> set[str]:
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_every_fact_is_listed_with_its_fields() -> None:
    table = section(RECEIPTS, "The journal's facts")
    union = get_args(FactModel.__value__)[0]
    models = {model.model_fields["type"].default: model for model in get_args(union)}
    assert first_cells(table) == set(models)
    for name, model in models.items():
        row = next(line for line in table.splitlines() if line.startswith(f"| `{name}` |"))
        for field in set(model.model_fields) - {"type"}:
            assert f"`{field}`" in row, (name, field)


def test_every_receipt_is_listed() -> None:
    text = (RUNNER / "faults.py").read_text()
    listed = re.search(r"^RECEIPTS = \(([^)]*)\)", text, re.MULTILINE)
    assert listed is not None
    written = set(re.findall(r'"([a-z_]+)"', listed[1]))
    assert first_cells(section(RECEIPTS, "The host's receipts")) == written


def test_every_field_of_the_supervisors_record_is_named() -> None:
    for field in ExitRecord.model_fields:
        assert f"`{field}`" in RECEIPTS, field


def test_every_verb_of_the_host_session_is_listed() -> None:
    answered = set(re.findall(r"def verb_([a-z_]+)", (RUNNER / "server.py").read_text()))
    controller = (ROOT / "xgent_evolve" / "remote" / "host.py").read_text()
    asked = set(re.findall(r"(?:_call|\.call)\(\s*\"([a-z_]+)\"", controller))
    assert first_cells(section(RECEIPTS, "The host session")) == answered | asked


def keys(value: object) -> Iterator[str]:
    """Yield the keys of a report document; names of conditions, cases and causes are data."""
    match value:
        case dict():
            for key, item in value.items():
                yield key
                if key not in ("conditions", "causes") and not (
                    key == "cases" and isinstance(item, dict)
                ):
                    yield from keys(item)
        case list():
            for item in value:
                yield from keys(item)


@pytest.mark.parametrize("name", ["kept", "invalid", "smoked", "undecided"])
def test_every_field_of_a_report_is_described(name: str) -> None:
    golden = ROOT / "tests" / "unit" / "report" / "golden" / f"{name}.json"
    described = set(re.findall(r"`([^`]+)`", (ROOT / "docs" / "report.md").read_text()))
    assert set(keys(json.loads(golden.read_text()))) - described == set()


def test_reasons_and_causes_are_described() -> None:
    report = (ROOT / "docs" / "report.md").read_text()
    statistics = (ROOT / "docs" / "statistics.md").read_text()
    assert [code for code in get_args(ReasonCode.__value__) if f"`{code}`" not in report] == []
    assert [cause for cause in CAUSES if f"`{cause}`" not in statistics] == []
