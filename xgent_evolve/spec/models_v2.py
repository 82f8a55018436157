"""JobSpec version 2: the quality of what was delivered, judged by rubrics (requirement H)."""

# Models are frozen, so a version may narrow a field.
# pyright: reportIncompatibleVariableOverride=false

from __future__ import annotations

from typing import Annotated, Literal

from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.kinds import LocalPath, Name, RelativePath
from xgent_evolve.spec.part import Limits, Part
from xgent_evolve.spec.parts import Measurement
from xgent_evolve.spec.runtime import ControllerEnv


class MeasurementV2(Measurement):
    """How the comparison is judged, fixed before anything runs."""

    objective: Literal["task_quality"]
    """What is measured: the weighted quality of a delivery; 0 when its task or a gate failed."""
    search_policy: Literal["strict", "bounded_exploration_v1"] = "strict"
    """strict: as the diagnosis allows; bounded_exploration_v1: one candidate, never adopted."""


class Auxiliary(Part):
    """The auxiliary scorer: feedback for the search, never a part of the quality."""

    provider: Literal["typesafe"]
    """Who scores."""
    model: Literal["jev-1.14.0"]
    """The scorer's model."""
    criterion_ids: Annotated[list[Name], Limits(min_length=1, max_length=100)]
    """Judged criteria of the rubrics, not gates, that it scores too."""
    rubric_path: RelativePath
    """Its own rubric, relative to evaluation.root."""
    calibration_path: RelativePath
    """Manifest of its own calibration, relative to evaluation.root."""
    authentication: ControllerEnv
    """Where its key comes from: this process's environment alone."""
    long_context: bool = False
    """Whether every request uses the provider's long context; calibrated with it."""


class Evaluation(Part):
    """How deliveries are judged. Every file of it is frozen before the first call."""

    root: LocalPath
    """Directory of the judging material; must be authority.evaluation_root."""
    paths: Annotated[list[RelativePath], Limits(min_length=1, max_length=10_000)]
    """Every file or directory of the material, relative to the root."""
    rubrics: dict[Name, RelativePath]
    """The one rubric of every case, by case id, relative to the root."""
    calibration: RelativePath
    """Manifest of the calibration, relative to the root."""
    scoring: Literal["continuous_100_v1"] | None = None
    """How judges score: 0 to 100 in steps of 0.01; by three anchors when absent."""
    auxiliary: Auxiliary | None = None
    """The auxiliary scorer; none when absent."""


class JobSpecV2(JobSpec):
    """A JobSpec of version 2: one study of quality, complete and closed."""

    schema_version: Literal[2]
    """Version of this format."""
    mode: Literal["smoke", "calibrate", "compare", "search"]
    """smoke: does everything work; calibrate: is the judging fit; compare; search."""
    measurement: MeasurementV2
    """How it is judged."""
    evaluation: Evaluation
    """How deliveries are judged."""
