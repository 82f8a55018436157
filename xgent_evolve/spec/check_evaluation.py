"""Rules of the judging material and the auxiliary scorer (version 2, requirements H1, H7).

None of them reads a file: what rubrics and manifests say is checked when they are frozen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from xgent_evolve.spec.check_paths import repeated, same_place
from xgent_evolve.spec.faults import Finding, shown, shown_list
from xgent_evolve.spec.locate import JsonPath, path_text
from xgent_evolve.spec.models_v2 import Auxiliary, Evaluation, JobSpecV2
from xgent_evolve.spec.paths import Places, covered
from xgent_evolve.spec.runtime import ControllerEnv

if TYPE_CHECKING:
    from xgent_evolve.spec.load import LoadedSpec


def evaluation_findings(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield every broken rule of the evaluation block; nothing for another version."""
    spec = loaded.spec
    if not isinstance(spec, JobSpecV2):
        return
    evaluation = spec.evaluation
    yield from _root(loaded, evaluation)
    yield from _listed(evaluation)
    yield from _rubrics(spec)
    yield from _secret(loaded, evaluation)
    if evaluation.auxiliary is not None:
        yield from _auxiliary(spec, evaluation.auxiliary)
    elif spec.budget.max_auxiliary_calls:
        yield Finding(
            path=("budget", "max_auxiliary_calls"),
            message="auxiliary calls are budgeted, and no auxiliary scorer is declared",
            expected="0, or evaluation.auxiliary",
            found=str(spec.budget.max_auxiliary_calls),
            fix="set it to 0, or declare the scorer",
        )


def _root(loaded: LoadedSpec, evaluation: Evaluation) -> Iterator[Finding]:
    allowed = loaded.spec.authority.evaluation_root
    if allowed is None or not same_place(loaded.resolve(allowed), loaded.resolve(evaluation.root)):
        yield Finding(
            path=("authority", "evaluation_root"),
            message="the caller does not allow this judging material",
            expected=f"evaluation.root: {shown(evaluation.root)}",
            found=shown(allowed),
            fix="write the same directory here, if the caller may use that material",
        )


def _listed(evaluation: Evaluation) -> Iterator[Finding]:
    yield from repeated(("evaluation", "paths"), evaluation.paths)
    named: dict[JsonPath, str] = {
        ("evaluation", "rubrics", case): path for case, path in evaluation.rubrics.items()
    }
    named["evaluation", "calibration"] = evaluation.calibration
    if auxiliary := evaluation.auxiliary:
        named["evaluation", "auxiliary", "rubric_path"] = auxiliary.rubric_path
        named["evaluation", "auxiliary", "calibration_path"] = auxiliary.calibration_path
    listed = frozenset(evaluation.paths)
    for path, name in named.items():
        if not covered(name, listed):
            yield Finding(
                path=path,
                message="the file is not listed in evaluation.paths",
                expected=f"a path within {shown_list(evaluation.paths)}",
                found=shown(name),
                fix="add it to evaluation.paths, so that it is frozen",
            )


def _rubrics(spec: JobSpecV2) -> Iterator[Finding]:
    cases = [case.id for case in spec.cases]
    rubrics = spec.evaluation.rubrics
    for name in rubrics:
        if name not in cases:
            yield Finding(
                path=("evaluation", "rubrics", name),
                at_key=True,
                message="no case has this id",
                expected=f"one of {shown_list(cases)}",
                found=shown(name),
                fix="name a case, or remove the rubric",
            )
    if missing := [case for case in dict.fromkeys(cases) if case not in rubrics]:
        yield Finding(
            path=("evaluation", "rubrics"),
            message="a case has no rubric",
            expected="one rubric for every case",
            found=f"none for {shown_list(missing)}",
            fix="add a rubric for each of them",
        )


def _secret(loaded: LoadedSpec, evaluation: Evaluation) -> Iterator[Finding]:
    """Keep the judging material out of everything that an agent or an optimizer gets."""
    spec = loaded.spec
    repository = loaded.resolve(spec.target.repo)
    seen: dict[JsonPath, Path] = {}
    for key in ("paths", "new_paths", "fixed_skill_roots"):
        for index, path in enumerate(getattr(spec.source, key)):
            seen["source", key, index] = repository / path
    for number, case in enumerate(spec.cases):
        for index, path in enumerate(case.public_paths):
            task = loaded.resolve(case.task_path)
            seen["cases", number, "public_paths", index] = task / path
    root = loaded.resolve(evaluation.root)
    material = Places(os.path.normpath(root / path) for path in evaluation.paths)
    for place, directory in seen.items():
        index = material.find_overlap(os.path.normpath(directory))
        if index is not None:
            yield Finding(
                path=("evaluation", "paths", index),
                message="judging material would reach the agent",
                expected="files apart from the source and from the public files of tasks",
                found=f"{shown(evaluation.paths[index])}, which overlaps {path_text(place)}",
                fix="move the material out, or list narrower paths there",
            )


def _auxiliary(spec: JobSpecV2, auxiliary: Auxiliary) -> Iterator[Finding]:
    yield from repeated(("evaluation", "auxiliary", "criterion_ids"), auxiliary.criterion_ids)
    if not spec.authority.allow_typesafe_auxiliary:
        yield Finding(
            path=("authority", "allow_typesafe_auxiliary"),
            message="the caller does not allow material to go to the auxiliary scorer",
            expected="true",
            found="false",
            fix="write true, if the material's owner agrees; or remove evaluation.auxiliary",
        )
    if not spec.budget.max_auxiliary_calls:
        yield Finding(
            path=("budget", "max_auxiliary_calls"),
            message="the auxiliary scorer has no budget",
            expected="at least 1 call",
            found="0",
            fix="set budget.max_auxiliary_calls; the calls count in max_trials too",
        )
    if spec.budget.max_auxiliary_calls >= spec.budget.max_trials:
        yield Finding(
            path=("budget", "max_auxiliary_calls"),
            message="the auxiliary calls would use up the whole budget",
            expected=f"less than budget.max_trials: {spec.budget.max_trials}",
            found=str(spec.budget.max_auxiliary_calls),
            fix="lower it, or raise budget.max_trials",
        )
    model = spec.runtime.authentication
    if isinstance(model, ControllerEnv) and model.name == auxiliary.authentication.name:
        yield Finding(
            path=("evaluation", "auxiliary", "authentication", "name"),
            message="one key would be sent to two services",
            expected="a variable of its own",
            found=shown(model.name),
            fix="put the scorer's key into another variable",
        )
