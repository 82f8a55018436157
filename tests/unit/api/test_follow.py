"""What is new in an output that is looked at again and again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.api.follow import continuation

GAP = "[something between was not shown]\n"


@given(text=st.text(max_size=300), cut=st.integers(0, 300))
def test_the_parts_of_a_growing_output_are_the_output(text: str, cut: int) -> None:
    first = text[:cut]
    assert first + continuation(first, text) == text
    assert continuation(text, text) == ""


def test_an_output_of_which_the_beginning_is_gone_goes_on_where_it_was() -> None:
    lines = [f"line {number}\n" for number in range(2000)]
    shown, now = "".join(lines[:1000]), "".join(lines[900:1200])
    assert continuation(shown, now) == "".join(lines[1000:1200])


def test_what_was_missed_is_said() -> None:
    lines = [f"line {number}\n" for number in range(2000)]
    now = "".join(lines[1500:])
    assert continuation("".join(lines[:1000]), now) == GAP + now
    assert continuation("short", "other") == GAP + "other"


def test_nothing_is_new_when_nothing_can_be_seen() -> None:
    assert continuation("seen", "") == ""
