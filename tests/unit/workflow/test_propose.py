"""However much is wrong with a proposal, a reader gets a short list."""

from __future__ import annotations

from xgent_evolve.workflow.propose import shortened


def test_few_reasons_are_all_told() -> None:
    assert shortened(["a", "b"]) == ("a", "b")
    assert len(shortened(["x"] * 20)) == 20


def test_of_many_reasons_the_rest_is_counted() -> None:
    found = shortened([str(number) for number in range(1000)])
    assert found[:20] == tuple(map(str, range(20)))
    assert found[20:] == ("and 980 more",)
