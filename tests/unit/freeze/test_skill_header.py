"""A plain header is read as YAML reads it, and everything else is left to YAML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.freeze.skill_header import MAX_NAME, plain_reading
from xgent_evolve.freeze.skill_yaml import yaml_reading

words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30) | st.sampled_from(
    ["null", "Null", "yes", "a: b", "a #b", "a:", "- a", "a ", " a", "'a'", "a  b", "~", "1:30"]
)
keys = st.sampled_from(["name", "description", "x"])
lines = st.builds("{}{}{}".format, keys, st.sampled_from([": ", ":", " : "]), words)
headers = st.lists(lines, max_size=3).map("\n".join)


@given(headers)
def test_a_plain_header_says_what_yaml_says(header: str) -> None:
    plain = plain_reading(header)
    assert plain is None or plain == yaml_reading(header, "SKILL.md")


@pytest.mark.parametrize(
    ("header", "is_plain"),
    [
        ("name: demo\ndescription: Reads twice, then asks; see a-b.md.", True),
        ("description: d\nname: demo\n", True),
        ("name: demo", False),
        ("name: demo\nname: demo", False),
        ("name: demo\ndescription: a: b", False),
        ("name: demo\ndescription: a #b", False),
        ("name: demo\ndescription: 'a'", False),
        ("name: demo\ndescription: null", False),
        ("name: demo\ndescription: über", False),
        ("name: demo\ndescription: a\n  b", False),
        ("name: demo\ndescription: a\nmetadata: b", False),
        (f"name: {'n' * (MAX_NAME + 1)}\ndescription: a", False),
    ],
)
def test_what_is_not_plain_is_left_to_yaml(header: str, is_plain: bool) -> None:
    assert (plain_reading(header) is not None) is is_plain
