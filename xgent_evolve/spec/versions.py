"""The versions of the JobSpec format, each with its model; a model loads when it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xgent_evolve.errors import InvalidError
from xgent_evolve.spec.job_spec import JobSpec

if TYPE_CHECKING:
    from xgent_evolve.spec.models_v2 import Evaluation

VERSIONS: Final = (1, 2)
"""Every version that is understood."""


def model_of(version: int) -> type[JobSpec]:
    """Return the model of a version.

    Raises:
        InvalidError: E_SPEC_VERSION: there is no such version.

    """
    match version:
        case 1:
            from xgent_evolve.spec.models_v1 import JobSpecV1

            return JobSpecV1
        case 2:
            from xgent_evolve.spec.models_v2 import JobSpecV2

            return JobSpecV2
        case _:
            raise InvalidError(
                "this version of the format is unknown",
                code="E_SPEC_VERSION",
                expected=" or ".join(map(str, VERSIONS)),
                found=str(version),
                fix="ask for a version that exists",
            )


def evaluation_of(spec: JobSpec) -> Evaluation | None:
    """Return the evaluation block; None for a version without one."""
    if spec.schema_version == 1:
        return None
    from xgent_evolve.spec.models_v2 import JobSpecV2

    return spec.evaluation if isinstance(spec, JobSpecV2) else None
