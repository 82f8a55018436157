"""What the JobSpecs of all versions have in common: read a study through this type.

Models are closed and immutable. The docstring under a field is its description in the published
JSON Schema. Relative paths are resolved against the directory of the JobSpec. Decimals are
written as JSON numbers and kept exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, override

from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.kinds import Name, Text
from xgent_evolve.spec.part import Limits, Part
from xgent_evolve.spec.parts import (
    Authority,
    Budget,
    Condition,
    Guardrail,
    Measurement,
    Source,
    Target,
)
from xgent_evolve.spec.runtime import Runtime
from xgent_evolve.spec.strategies import Optimizer


class JobSpec(Part):
    """One study, complete and closed. Versions narrow what a field may hold."""

    schema_: Annotated[str | None, Limits(key="$schema")] = None
    """Address of the JSON Schema, for editors; not used otherwise."""
    schema_version: Literal[1, 2]
    """Version of this format."""
    protocol_id: Name
    """The caller's name for the study."""
    question: Text
    """The question that the study answers."""
    mode: Literal["smoke", "compare", "search", "calibrate"]
    """What is done."""
    target: Target
    """What is studied."""
    source: Source
    """What is frozen of the repository."""
    runtime: Runtime
    """Where and with what it runs."""
    authority: Authority
    """What the caller allows."""
    budget: Budget
    """Hard limits."""
    measurement: Measurement
    """How it is judged."""
    guardrails: Annotated[list[Guardrail], Limits(max_length=100)]
    """Floors."""
    cases: Annotated[list[Case], Limits(min_length=1, max_length=10_000)]
    """The tasks."""
    conditions: Annotated[list[Condition], Limits(min_length=1, max_length=100)]
    """The arms."""
    baseline_condition: Name
    """The arm that others are compared with."""
    candidate_condition: Name | None = None
    """The arm under test (mode compare)."""
    optimizer: Optimizer | None = None
    """The proposer (mode search)."""

    @classmethod
    @override
    def model_for(cls, document: Mapping[str, object]) -> type[Part]:
        """Return the model of the version that a document names."""
        from xgent_evolve.spec.versions import VERSIONS, model_of

        version = document.get("schema_version")
        # bool and Decimal compare equal to 1, so the type is part of the question.
        return model_of(version) if type(version) is int and version in VERSIONS else cls
