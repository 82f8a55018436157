"""From a path to line and column."""

from __future__ import annotations

import pytest

from xgent_evolve.spec.locate import path_text
from xgent_evolve.spec.scan import scan

TEXT = """{
  "cases": [
    {"id": "é", "n": 1},
    {"id": "two"}
  ]
}"""


@pytest.mark.parametrize(
    ("path", "value", "key"),
    [
        ((), (1, 1), (1, 1)),
        (("cases",), (2, 12), (2, 3)),
        (("cases", 0), (3, 5), (3, 5)),
        (("cases", 0, "n"), (3, 22), (3, 17)),
        (("cases", 1, "id"), (4, 12), (4, 6)),
    ],
)
def test_values_and_keys_are_found(
    path: tuple[str | int, ...], value: tuple[int, int], key: tuple[int, int]
) -> None:
    document = scan(TEXT)
    assert document.position(path) == value
    assert document.key_position(path) == key


def test_what_is_missing_is_placed_at_its_nearest_ancestor() -> None:
    document = scan(TEXT)
    assert document.position(("cases", 1, "source", "kind")) == (4, 5)
    assert document.position(("nowhere",)) == (1, 1)
    assert not document.holds(("cases", 2))


def test_a_path_is_written_the_way_people_write_it() -> None:
    assert path_text(()) == "$"
    assert path_text(("cases", 0, "id")) == "$.cases[0].id"
    assert path_text(("overrides", "skills/a b.md", "$x")) == '$.overrides["skills/a b.md"].$x'
