"""docs/tasks.md names every key of task.toml with what becomes of it."""

from __future__ import annotations

import re
from pathlib import Path

from xgent_evolve.tasks.checks import MAX_SECONDS, VERSIONS
from xgent_evolve.tasks.fields import FIELDS
from xgent_evolve.tasks.findings import shown
from xgent_evolve.tasks.settings import MAX_TASK_FILE_BYTES

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "tasks.md").read_text()
ROWS = {
    key: (treatment, meaning)
    for key, treatment, meaning in re.findall(
        r"^\| `([a-z_.]+)` \| (\w+) \| ([^|]*)\|$", TEXT, re.MULTILINE
    )
}


def test_every_key_is_documented_with_its_treatment() -> None:
    assert {key: row[0] for key, row in ROWS.items()} == {
        field.path: field.treatment for field in FIELDS
    }


def test_the_values_that_ask_for_nothing_are_documented() -> None:
    for field in FIELDS:
        if field.treatment == "refused":
            written = [f"`{shown(value)}`" for value in (*field.harmless, *field.permitting)]
            assert re.findall(r"`[^`]+`", ROWS[field.path][1]) == written, field.path


def test_the_documented_bounds_are_the_real_ones() -> None:
    assert f"`{VERSIONS[0]}` to `{VERSIONS[-1]}`" in TEXT
    assert MAX_TASK_FILE_BYTES == 64 * 1024
    assert MAX_SECONDS == 86_400
