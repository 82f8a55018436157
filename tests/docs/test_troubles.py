"""docs/troubles.md: every row names tests that exist, and every id in the code has a row."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "troubles.md").read_text()
ROWS = {
    row[0]: re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row[3])
    for row in re.findall(r"^\| ([A-Z]+-\d\d) \| (.+?) \| (.+?) \| (.+?) \|$", TEXT, re.MULTILINE)
}
_ID = re.compile(r"\b(?:SPEC|FRZ|SKL|PAT|CDX|SSH|RUN|DUR|APP|SEC|STA)-\d\d\b")


@pytest.mark.parametrize("name", ROWS)
def test_a_row_names_tests_that_exist(name: str) -> None:
    assert ROWS[name], "no test"
    for path, test in ROWS[name]:
        tree = ast.parse((ROOT / path).read_text())
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_id_in_the_code_has_a_row() -> None:
    files = [path for part in ("xgent_evolve", "tests") for path in (ROOT / part).rglob("*.py")]
    used = {name for path in files for name in _ID.findall(path.read_text())}
    assert used - set(ROWS) == set()
    assert len(ROWS) >= 20
