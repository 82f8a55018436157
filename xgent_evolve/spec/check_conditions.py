"""Rules of the conditions: which levels an arm may have, and what may differ between two.

What the levels of a condition mean:

- surface skill: one skill is studied. `absent` leaves it out, `baseline` and `fixed` install it
  as frozen, `candidate` installs it with the overrides. AGENTS.md is background: `baseline` and
  `fixed` as frozen, `minimal` the protected rules alone.
- surface agents: AGENTS.md files are studied. `baseline` and `fixed` are the frozen files,
  `minimal` the protected rules alone, `candidate` the files with the overrides. No skill is
  studied; the background skills are there whether skill says `fixed` or `absent`.

Two compared arms differ in what is studied alone: the background is the same in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xgent_evolve.spec.faults import Finding, shown
from xgent_evolve.spec.locate import JsonPath
from xgent_evolve.spec.models_v1 import Condition, JobSpecV1
from xgent_evolve.spec.paths import covered, last_name

_BACKGROUND_KEY = {"skill": "agents", "agents": "skill"}
_BACKGROUND_LEVELS = {"skill": ("fixed", "baseline", "minimal"), "agents": ("fixed", "absent")}


@dataclass(frozen=True, slots=True)
class _Arm:
    """A condition, seen from the surface that is studied."""

    id: str
    studied: str
    background: str
    overrides: dict[str, str | None]

    def content(self) -> tuple[str, dict[str, str | None]]:
        """Return what decides the studied text: equal content, equal text."""
        unchanged = self.studied in {"baseline", "fixed"} or not self.overrides
        level = self.studied if self.studied in {"absent", "minimal"} else "frozen"
        return level, {} if unchanged else self.overrides

    def same_background(self, other: _Arm) -> bool:
        """Return whether both have the same text beside what is studied."""
        return (self.background == "minimal") == (other.background == "minimal")


def condition_findings(spec: JobSpecV1) -> Iterator[Finding]:
    """Yield every broken rule of the conditions."""
    arms = [_arm(spec, condition) for condition in spec.conditions]
    by_id = {arm.id: arm for arm in arms}
    yield from _named_conditions(spec)
    for index, arm in enumerate(arms):
        yield from _levels(spec, ("conditions", index), arm)
    baseline = by_id.get(spec.baseline_condition)
    candidate = by_id.get(spec.candidate_condition or "")
    if baseline and baseline.studied == "candidate":
        yield Finding(
            path=("baseline_condition",),
            message="the baseline condition has the candidate's text",
            expected="a condition whose studied level is not candidate",
            found=shown(baseline.id),
            fix="name another condition as the baseline",
        )
    if baseline and candidate and baseline is not candidate:
        yield from _difference(spec, baseline, candidate)
    yield from _controls(spec)


def _arm(spec: JobSpecV1, condition: Condition) -> _Arm:
    if spec.target.surface == "skill":
        return _Arm(condition.id, condition.skill, condition.agents, condition.overrides)
    return _Arm(condition.id, condition.agents, condition.skill, condition.overrides)


def _named_conditions(spec: JobSpecV1) -> Iterator[Finding]:
    known = [condition.id for condition in spec.conditions]
    named = {
        "baseline_condition": spec.baseline_condition,
        "candidate_condition": spec.candidate_condition,
    }
    for key, name in named.items():
        if name is not None and name not in known:
            yield Finding(
                path=(key,),
                message="no condition has this id",
                expected=f"one of {', '.join(map(shown, known))}",
                found=shown(name),
                fix="name a declared condition, or declare this one",
            )
    if spec.candidate_condition == spec.baseline_condition:
        yield Finding(
            path=("candidate_condition",),
            message="the candidate condition is the baseline condition",
            expected="two different conditions",
            found=shown(spec.candidate_condition),
            fix="name another condition; for repeats of one condition use measurement.repeats",
        )


def _levels(spec: JobSpecV1, path: JsonPath, arm: _Arm) -> Iterator[Finding]:
    surface = spec.target.surface
    allowed = _BACKGROUND_LEVELS[surface]
    if arm.background not in allowed:
        yield Finding(
            path=(*path, _BACKGROUND_KEY[surface]),
            message=f"{_BACKGROUND_KEY[surface]} is background when the surface is {surface}",
            expected=" or ".join(map(shown, allowed)),
            found=shown(arm.background),
            fix="use one of these levels, or study the other surface",
        )
    if arm.overrides and arm.studied != "candidate":
        yield Finding(
            path=(*path, "overrides"),
            at_key=True,
            message="only the level candidate has text of its own",
            expected=f'"{surface}": "candidate", or no overrides',
            found=f'"{surface}": {shown(arm.studied)} with overrides',
            fix="change the level, or remove the overrides",
        )
    for key in arm.overrides:
        yield from _override(spec, (*path, "overrides", key), key)


def _override(spec: JobSpecV1, path: JsonPath, key: str) -> Iterator[Finding]:
    if not covered(key, spec.target.paths):
        yield Finding(
            path=path,
            at_key=True,
            message="an override lies outside the target",
            expected=f"a path in target.paths: {', '.join(map(shown, spec.target.paths))}",
            found=shown(key),
            fix="change the target alone; tasks and grading material never vary",
        )
    elif spec.target.surface == "agents" and last_name(key) != "AGENTS.md":
        yield Finding(
            path=path,
            at_key=True,
            message="surface agents changes AGENTS.md files alone",
            expected='a path whose last part is "AGENTS.md"',
            found=shown(key),
            fix="put the text into an AGENTS.md, or study a skill",
        )


def _difference(spec: JobSpecV1, baseline: _Arm, candidate: _Arm) -> Iterator[Finding]:
    key = _BACKGROUND_KEY[spec.target.surface]
    if not baseline.same_background(candidate):
        yield Finding(
            path=("candidate_condition",),
            message=f"the compared conditions differ in {key}, which is not studied",
            expected=f"the same level of {key} in both",
            found=f"{shown(baseline.background)} in the baseline, "
            f"{shown(candidate.background)} in the candidate",
            fix=f"give both conditions one level of {key}",
        )
    if spec.mode == "compare" and baseline.content() == candidate.content():
        yield Finding(
            path=("candidate_condition",),
            message="the compared conditions have the same content",
            expected="another level, or overrides that change something",
            found=f"{shown(baseline.studied)} and {shown(candidate.studied)} without a difference",
            fix="change the candidate; for repeats of one condition use measurement.repeats",
        )


def _controls(spec: JobSpecV1) -> Iterator[Finding]:
    if spec.mode == "smoke" or spec.target.surface != "skill":
        return
    if all(condition.skill != "absent" for condition in spec.conditions):
        yield Finding(
            path=("conditions",),
            message="a skill comparison declares a control without the skill",
            expected='a condition with "skill": "absent"',
            found=f"levels {', '.join(sorted({shown(item.skill) for item in spec.conditions}))}",
            fix="add a condition without the skill",
        )
