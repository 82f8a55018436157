"""docs/crash-matrix.md states what the matrix tests check."""

from __future__ import annotations

import re
from pathlib import Path

from tests.payload.test_engine_away import RESTARTS
from tests.payload.test_faults import ALL, PLACES
from tests.payload.test_matrix import CELLS, MATRIX, STEPS, WHOLE

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "crash-matrix.md").read_text()


def rows(first: str) -> list[list[str]]:
    """Return the cells of the table whose header begins with `first`."""
    block = TEXT[TEXT.index(f"| {first} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]


def test_the_table_of_the_host_is_the_one_that_is_tested() -> None:
    header, _, *body = rows("step | kill")
    words = {WHOLE: "same"}
    for step, *cells in body:
        for trouble, cell in zip(header[1:], cells, strict=True):
            expected = {**MATRIX, **RESTARTS}[trouble].get(step, WHOLE)
            assert cell == words.get(expected, expected), (step, trouble)
    assert [row[0] for row in body] == list(STEPS)
    assert header[1:] == [*MATRIX, *RESTARTS]
    assert f"{len(CELLS)} cells" in TEXT
    assert f"{len(RESTARTS) * len(STEPS)} cells" in TEXT


def test_the_failing_disks_of_the_host_are_counted() -> None:
    assert f"{len(PLACES)} points, {len(ALL)} cells" in TEXT


def test_every_test_file_that_is_named_exists() -> None:
    for name in set(re.findall(r"`(tests/[\w/.]+)`", TEXT)):
        assert (ROOT / name).exists(), name
