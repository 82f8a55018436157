"""JobSpec version 1: a task succeeds or fails (requirements B2 to B10)."""

# Models are frozen, so a version may narrow a field.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Annotated, Literal

from xgent_evolve.spec.cases import Case, CaseSource, LocalSource, PublicSource, RepoSource
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.part import Limits
from xgent_evolve.spec.parts import (
    Authority,
    Budget,
    Condition,
    Guardrail,
    Measurement,
    ProtectedRule,
    Source,
    Target,
)
from xgent_evolve.spec.runtime import (
    Authentication,
    Codex,
    ControllerEnv,
    Docker,
    Effort,
    HostFile,
    Runtime,
    Sampling,
    Ssh,
)
from xgent_evolve.spec.strategies import Optimizer

__all__ = [
    "Authentication",
    "Authority",
    "Budget",
    "Case",
    "CaseSource",
    "CaseV1",
    "Codex",
    "Condition",
    "ControllerEnv",
    "Docker",
    "Effort",
    "Guardrail",
    "HostFile",
    "JobSpecV1",
    "LocalSource",
    "Measurement",
    "MeasurementV1",
    "Optimizer",
    "ProtectedRule",
    "PublicSource",
    "RepoSource",
    "Runtime",
    "Sampling",
    "Source",
    "Ssh",
    "Target",
]


class MeasurementV1(Measurement):
    """How the comparison is judged, fixed before anything runs."""

    objective: Literal["task_success"]
    """What is measured: the share of tasks whose verifier says 1."""
    search_policy: Literal["strict"] = "strict"
    """Rule of the search (version 2 has another)."""


class CaseV1(Case):
    """One task of the study."""

    platform: Literal["linux/amd64"] = "linux/amd64"
    """Platform of the image."""


class JobSpecV1(JobSpec):
    """A JobSpec of version 1: one study, complete and closed."""

    schema_version: Literal[1]
    """Version of this format."""
    mode: Literal["smoke", "compare", "search"]
    """smoke: does everything work; compare: two conditions; search: find better text."""
    measurement: MeasurementV1
    """How it is judged."""
    cases: Annotated[list[CaseV1], Limits(min_length=1, max_length=10_000)]
    """The tasks."""
