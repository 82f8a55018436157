"""Parts are closed and immutable, and go through JSON without a loss."""

from __future__ import annotations

from decimal import Decimal

import pytest

from xgent_evolve.spec.parts import Guardrail, ProtectedRule
from xgent_evolve.spec.shape import fit


def rule() -> ProtectedRule:
    return ProtectedRule(path="AGENTS.md", text="Ask first.")


def test_a_part_has_its_fields_and_defaults_and_no_others() -> None:
    assert (rule().path, rule().match) == ("AGENTS.md", "exact")
    with pytest.raises(TypeError, match="needs text"):
        ProtectedRule(path="AGENTS.md")  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="has no surprise"):
        ProtectedRule(path="AGENTS.md", text="x", surprise=1)  # pyright: ignore[reportCallIssue]


def test_a_part_cannot_be_changed_and_equals_its_like() -> None:
    part = rule()
    with pytest.raises(AttributeError):
        part.text = "Do as you like."  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        del part.text
    assert part == rule() != part.replaced(match="contains")
    assert part.replaced(match="contains").match == "contains"
    assert "Ask first." in repr(part)


def test_decimals_are_texts_in_a_protocol_and_numbers_in_a_job_spec() -> None:
    part = Guardrail(name="task_contract", floor=Decimal("0.50"))
    assert part.document() == {"name": "task_contract", "floor": "0.50"}
    assert fit(Guardrail, part.document(), from_protocol=True) == (part, [])
    found, findings = fit(Guardrail, part.document())
    assert (found, [item.expected for item in findings]) == (None, ["a number"])
