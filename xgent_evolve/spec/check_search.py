"""Rules of a search: its strategy's settings, its splits, and the bounded exploration."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from xgent_evolve.spec.bounds import compared_cases
from xgent_evolve.spec.faults import Finding, shown, shown_list
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath, Value
from xgent_evolve.spec.parts import PROVEN_GROUPS
from xgent_evolve.spec.strategies import Darwinx, Gepa, Optimizer, Rrsi

BOUNDED = "bounded_exploration_v1"
CANDIDATE_ID: Final = re.compile(r"candidate-[0-9]+")
"""Names of the conditions that a search makes."""


def search_findings(spec: JobSpec) -> Iterator[Finding]:
    """Yield every broken rule of the search."""
    if spec.optimizer is not None:
        yield from _settings(spec, spec.optimizer)
    if spec.measurement.search_policy == BOUNDED:
        yield from _bounded(spec)
    if spec.mode == "search":
        yield from _splits(spec)
        yield from _start(spec)
        yield from _group_counts(spec)


def _settings(spec: JobSpec, optimizer: Optimizer) -> Iterator[Finding]:
    blocks = {"rrsi": optimizer.rrsi, "darwinx": optimizer.darwinx, "gepa": optimizer.gepa}
    for name, block in blocks.items():
        if block is not None and name != optimizer.strategy:
            yield Finding(
                path=("optimizer", name),
                at_key=True,
                message="these are the settings of another strategy",
                expected=f"settings of {optimizer.strategy} alone",
                found=f"settings of {name}",
                fix=f'remove them, or set optimizer.strategy to "{name}"',
            )
    if optimizer.strategy == "rrsi":
        yield from _rrsi(spec, optimizer.rrsi or Rrsi())
    if optimizer.strategy == "darwinx" and optimizer.darwinx is not None:
        yield from _darwinx(optimizer.darwinx)
    if optimizer.strategy == "gepa" and optimizer.gepa is None:
        yield Finding(
            path=("optimizer", "gepa"),
            message="the strategy gepa needs the name and version of its cases",
            expected='{"dataset_id": ..., "dataset_version": ...}',
            found="none",
            fix="add optimizer.gepa",
        )
    if optimizer.gepa is not None:
        yield from _gepa(spec, optimizer.gepa)


def _rrsi(spec: JobSpec, settings: Rrsi) -> Iterator[Finding]:
    if settings.b_min > settings.b_max:
        yield Finding(
            path=("optimizer", "rrsi", "b_min"),
            message="the smallest budget of edits is above the largest",
            expected=f"at most b_max: {settings.b_max}",
            found=str(settings.b_min),
            fix="lower b_min, or raise b_max",
        )
    if settings.m_draft > settings.m:
        yield Finding(
            path=("optimizer", "rrsi", "m_draft"),
            message="more candidates are reserved for exploration than a round has",
            expected=f"at most m: {settings.m}",
            found=str(settings.m_draft),
            fix="lower m_draft, or raise m",
        )
    if settings.delta is None and spec.measurement.repeats < 2 and settings.calibration_evals < 2:
        yield Finding(
            path=("measurement", "repeats"),
            message="the noise band cannot be calibrated on single trials",
            expected="at least 2 repeats, 2 calibration_evals, or a measured delta",
            found=str(spec.measurement.repeats),
            fix="repeat every trial, or give optimizer.rrsi.delta",
        )


def _darwinx(settings: Darwinx) -> Iterator[Finding]:
    if settings.confirm_samples < settings.screen_samples:
        yield Finding(
            path=("optimizer", "darwinx", "confirm_samples"),
            message="a confirmation repeats less than the screening before it",
            expected=f"at least screen_samples: {settings.screen_samples}",
            found=str(settings.confirm_samples),
            fix="raise confirm_samples, or lower screen_samples",
        )


def _gepa(spec: JobSpec, settings: Gepa) -> Iterator[Finding]:
    held_out = [case.id for case in spec.cases if case.split == "confirmation"]
    for index, name in enumerate(settings.critical_cases):
        if name not in held_out:
            yield Finding(
                path=("optimizer", "gepa", "critical_cases", index),
                message="no confirmation case has this id",
                expected=f"one of {shown_list(held_out) or 'no cases'}",
                found=shown(name),
                fix="name a case with the split confirmation, or remove it",
            )
    if spec.mode == "search" and all(case.split != "validation" for case in spec.cases):
        yield Finding(
            path=("cases",),
            message="the strategy gepa chooses parents on validation cases",
            expected="a case with the split validation",
            found="none",
            fix="add one, or use another strategy",
        )


def _bounded(spec: JobSpec) -> Iterator[Finding]:
    """Hold a bounded exploration to one candidate that nothing adopts (requirement H9)."""
    budget, authority = spec.budget, spec.authority
    facts: dict[JsonPath, tuple[Value, str, bool]] = {
        ("mode",): (spec.mode, '"search"', spec.mode == "search"),
        ("budget", "max_candidates"): (budget.max_candidates, "1", budget.max_candidates == 1),
        ("budget", "confirmation_trials"): (
            budget.confirmation_trials,
            "0",
            not budget.confirmation_trials,
        ),
        ("authority", "allow_apply"): (authority.allow_apply, "false", not authority.allow_apply),
        ("authority", "write_paths"): (
            [*authority.write_paths],
            "[]",
            not authority.write_paths,
        ),
    }
    for path, (found, expected, holds) in facts.items():
        if not holds:
            yield Finding(
                path=path,
                message="a bounded exploration tries one candidate and adopts none",
                expected=expected,
                found=shown(found),
                fix=f'write {expected}, or set measurement.search_policy to "strict"',
            )


def _start(spec: JobSpec) -> Iterator[Finding]:
    """Require that the search starts from the text that is there, and leave it its names."""
    for index, condition in enumerate(spec.conditions):
        levels = {"skill": condition.skill, "agents": condition.agents}
        surface = spec.target.surface
        if condition.id == spec.baseline_condition and levels[surface] != "baseline":
            yield Finding(
                path=("conditions", index, surface),
                message="a search starts from the text as it is",
                expected='"baseline" in the baseline condition',
                found=shown(levels[surface]),
                fix="give the baseline condition the level baseline",
            )
        if CANDIDATE_ID.fullmatch(condition.id):
            yield Finding(
                path=("conditions", index, "id"),
                message="a search names its candidates like this",
                expected="another name than candidate- and a number",
                found=shown(condition.id),
                fix="rename the condition",
            )


def _group_counts(spec: JobSpec) -> Iterator[Finding]:
    """Require enough independent groups for a decision, before anything is paid."""
    if spec.measurement.search_policy == BOUNDED:
        return
    required = max(PROVEN_GROUPS, spec.measurement.min_groups)
    splits = {
        "search or validation": {case.group for case in compared_cases(spec)},
        "confirmation": {case.group for case in spec.cases if case.split == "confirmation"},
    }
    for name, groups in splits.items():
        if 0 < len(groups) < required:
            yield Finding(
                path=("cases",),
                message=f"the cases of the split {name} can never decide: too few groups",
                expected=f"at least {required} independent source groups"
                " (measurement.min_groups, and never fewer than the interval is proven for)",
                found=str(len(groups)),
                fix="add cases from other groups",
            )


def _splits(spec: JobSpec) -> Iterator[Finding]:
    first: dict[str, tuple[int, str]] = {}
    for index, case in enumerate(spec.cases):
        at, split = first.setdefault(case.group, (index, case.split))
        if split != case.split and "confirmation" not in (split, case.split):
            yield Finding(
                path=("cases", index, "group"),
                message="a group lies in the search split and in the validation split",
                expected="validation cases from groups that no feedback is given on",
                found=f"{shown(case.group)}, also at $.cases[{at}] in {split}",
                fix="move the whole group to one split",
            )
    if spec.measurement.search_policy == BOUNDED:
        return
    if all(case.split != "confirmation" for case in spec.cases):
        yield Finding(
            path=("cases",),
            message="a search is confirmed on cases that it never saw",
            expected="a case with the split confirmation",
            found="none",
            fix="add confirmation cases; version 2 can explore without (search_policy)",
        )
    elif not spec.budget.confirmation_trials:
        yield Finding(
            path=("budget", "confirmation_trials"),
            message="a search reserves its confirmation beforehand",
            expected="a reserve for the confirmation cases",
            found="0",
            fix="set budget.confirmation_trials; validate says how much it needs",
        )
