"""Rules of the conditions: which levels an arm may have, and what may differ between two.

What the levels of a condition mean:

- A studied skill: `absent` leaves it out, `baseline` and `fixed` install it as frozen,
  `candidate` installs it with the overrides. Without a studied skill the level is `fixed` or
  `absent`, and the background skills are there in both cases.
- Studied AGENTS.md files: `baseline` and `fixed` are the frozen files, `minimal` the protected
  rules alone, `candidate` the files with the overrides. Otherwise they are background: as frozen,
  or `minimal`.

Two compared arms differ in one studied text, or in both when all four crossed arms are declared
(requirement B10): only then can it be told which of the two did what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from xgent_evolve.spec.faults import Finding, shown, shown_list
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath
from xgent_evolve.spec.parts import Condition, Target
from xgent_evolve.spec.paths import covered, last_name
from xgent_evolve.spec.surfaces import AGENTS_FILE, is_crossed, skill_root

FACTORS: Final = ("skill", "agents")
"""The two texts that a condition has a level for."""

CROSSED_LEVELS: Final = (
    ("baseline", "baseline"),
    ("baseline", "candidate"),
    ("candidate", "baseline"),
    ("candidate", "candidate"),
)
"""The levels of the four arms that an interaction needs: skill, agents."""

_BACKGROUND_LEVELS = {"skill": ("fixed", "absent"), "agents": ("fixed", "baseline", "minimal")}

type _Content = tuple[str, dict[str, str | None]]


@dataclass(frozen=True, slots=True)
class _Arm:
    """A condition with its overrides by the text that they change."""

    index: int
    id: str
    levels: dict[str, str]
    overrides: dict[str, dict[str, str | None]]
    studied: tuple[str, ...]
    """The factors that are studied."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.levels["skill"], self.levels["agents"]

    def content(self, factor: str) -> _Content:
        """Return what decides a factor's text: equal content, equal text."""
        level = self.levels[factor]
        if factor == "skill" and factor not in self.studied:
            return "background", {}
        if level == "candidate" and self.overrides[factor]:
            return "frozen", self.overrides[factor]
        return level if level in {"absent", "minimal"} else "frozen", {}

    def differs(self, other: _Arm) -> list[str]:
        """Return the factors whose text differs."""
        return [name for name in FACTORS if self.content(name) != other.content(name)]


def condition_findings(spec: JobSpec) -> Iterator[Finding]:
    """Yield every broken rule of the conditions."""
    arms = [_arm(spec.target, index, item) for index, item in enumerate(spec.conditions)]
    by_id = {arm.id: arm for arm in arms}
    yield from _named_conditions(spec)
    for arm, condition in zip(arms, spec.conditions, strict=True):
        yield from _levels(spec.target, arm)
        yield from _overrides(spec.target, arm, condition)
    baseline = by_id.get(spec.baseline_condition)
    candidate = by_id.get(spec.candidate_condition or "")
    if baseline and any(baseline.levels[name] == "candidate" for name in baseline.studied):
        yield Finding(
            path=("baseline_condition",),
            message="the baseline condition has the candidate's text",
            expected="a condition whose studied level is not candidate",
            found=shown(baseline.id),
            fix="name another condition as the baseline",
        )
    if spec.mode == "smoke":
        return
    yield from _crossing(spec, arms)
    if baseline and candidate and baseline is not candidate:
        yield from _difference(spec, arms, baseline, candidate)
    yield from _equal_arms(spec, arms)
    yield from _controls(spec)


def _arm(target: Target, index: int, condition: Condition) -> _Arm:
    root = skill_root(target)
    parts: dict[str, dict[str, str | None]] = {"skill": {}, "agents": {}}
    for path, text in condition.overrides.items():
        in_skill = root is not None and covered(path, [root])
        parts["skill" if in_skill else "agents"][path] = text
    studied = FACTORS if is_crossed(target) else (target.surface,)
    levels = {"skill": condition.skill, "agents": condition.agents}
    return _Arm(index, condition.id, levels, parts, studied)


def _named_conditions(spec: JobSpec) -> Iterator[Finding]:
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
                expected=f"one of {shown_list(known)}",
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


def _levels(target: Target, arm: _Arm) -> Iterator[Finding]:
    for name in FACTORS:
        allowed = _BACKGROUND_LEVELS[name]
        if name not in arm.studied and arm.levels[name] not in allowed:
            cross = "name AGENTS.md files beside the skill in target.paths to cross the two"
            yield Finding(
                path=("conditions", arm.index, name),
                message=f"{name} is background when the surface is {target.surface}",
                expected=" or ".join(map(shown, allowed)),
                found=shown(arm.levels[name]),
                fix=f"use one of these levels, or study the other surface; {cross}",
            )


def _overrides(target: Target, arm: _Arm, condition: Condition) -> Iterator[Finding]:
    root = skill_root(target)
    for key in condition.overrides:
        path: JsonPath = ("conditions", arm.index, "overrides", key)
        in_skill = root is not None and covered(key, [root])
        if not covered(key, target.paths):
            yield Finding(
                path=path,
                at_key=True,
                message="an override lies outside the target",
                expected=f"a path in target.paths: {shown_list(target.paths)}",
                found=shown(key),
                fix="change the target alone; tasks and grading material never vary",
            )
        elif not in_skill and last_name(key) != AGENTS_FILE:
            yield Finding(
                path=path,
                at_key=True,
                message="surface agents changes AGENTS.md files alone",
                expected='a path whose last part is "AGENTS.md"',
                found=shown(key),
                fix="put the text into an AGENTS.md, or study a skill",
            )
    for name in arm.studied:
        if arm.overrides[name] and arm.levels[name] != "candidate":
            yield Finding(
                path=("conditions", arm.index, "overrides"),
                at_key=True,
                message="only the level candidate has text of its own",
                expected=f'"{name}": "candidate", or no overrides',
                found=f'"{name}": {shown(arm.levels[name])} with overrides',
                fix="change the level, or remove the overrides",
            )


def _crossing(spec: JobSpec, arms: list[_Arm]) -> Iterator[Finding]:
    """Require all four crossed arms, each once and equal in what they share, if one has both."""
    if not is_crossed(spec.target):
        return
    if spec.mode == "search":
        yield Finding(
            path=("target", "paths"),
            message="a search changes one kind of text",
            expected="a skill root, or AGENTS.md files with surface agents",
            found=", ".join(map(shown, spec.target.paths)),
            fix="search for one text, then compare the two together",
        )
    four: dict[tuple[str, str], _Arm] = {}
    for arm in arms:
        if arm.pair in CROSSED_LEVELS and four.setdefault(arm.pair, arm) is not arm:
            yield Finding(
                path=("conditions", arm.index),
                message="two crossed conditions have the same levels",
                expected="each pair of levels once",
                found=f'"skill": {shown(arm.pair[0])}, "agents": {shown(arm.pair[1])}, '
                f"also in {shown(four[arm.pair].id)}",
                fix="remove one of the two",
            )
    both = four.get(("candidate", "candidate"))
    if both is None:
        return
    if missing := [pair for pair in CROSSED_LEVELS if pair not in four]:
        yield Finding(
            path=("conditions", both.index),
            message="a condition with both changes needs the other three crossed conditions",
            expected=" and ".join(f'"skill": "{s}", "agents": "{a}"' for s, a in missing),
            found="no such condition",
            fix="declare them, or change one text alone: which of the two did it cannot be told",
        )
        return
    for name, pair in (("skill", CROSSED_LEVELS[2]), ("agents", CROSSED_LEVELS[1])):
        if both.content(name) != four[pair].content(name):
            yield Finding(
                path=("conditions", both.index, "overrides"),
                at_key=True,
                message=f"the crossed conditions have different candidates for {name}",
                expected=f"the same overrides as in {shown(four[pair].id)}",
                found=", ".join(map(shown, both.overrides[name])) or "no overrides",
                fix="use one text for each candidate",
            )


def _difference(
    spec: JobSpec, arms: list[_Arm], baseline: _Arm, candidate: _Arm
) -> Iterator[Finding]:
    differing = candidate.differs(baseline)
    declared = {arm.pair for arm in arms}
    if len(differing) == 2 and is_crossed(spec.target):
        compared = {baseline.pair, candidate.pair}
        if compared != {CROSSED_LEVELS[0], CROSSED_LEVELS[3]} or not declared.issuperset(
            CROSSED_LEVELS
        ):
            yield Finding(
                path=("candidate_condition",),
                message="the compared conditions differ in both skill and agents",
                expected="one difference, or baseline and candidate of all four crossed conditions",
                found=f"{shown(list(baseline.pair))} and {shown(list(candidate.pair))}",
                fix="compare conditions that differ in one text, or declare the four",
            )
    elif background := [name for name in differing if name not in baseline.studied]:
        (key,) = background
        yield Finding(
            path=("candidate_condition",),
            message=f"the compared conditions differ in {key}, which is not studied",
            expected=f"the same level of {key} in both",
            found=f"{shown(baseline.levels[key])} in the baseline, "
            f"{shown(candidate.levels[key])} in the candidate",
            fix=f"give both conditions one level of {key}",
        )


def _equal_arms(spec: JobSpec, arms: list[_Arm]) -> Iterator[Finding]:
    """Refuse arms that would be paid for twice and differ in nothing."""
    for number, arm in enumerate(arms):
        twin = next((other for other in arms[:number] if not arm.differs(other)), None)
        if twin is None:
            continue
        compared = {arm.id, twin.id} == {spec.baseline_condition, spec.candidate_condition}
        yield Finding(
            path=("candidate_condition",) if compared else ("conditions", arm.index),
            code="E_SPEC_NO_DIFFERENCE",
            message="two conditions have the same content",
            expected="another level, or overrides that change something",
            found=f"{shown(twin.id)} and {shown(arm.id)} without a difference",
            fix="change or remove one; for repeats of one condition use measurement.repeats",
        )


def _controls(spec: JobSpec) -> Iterator[Finding]:
    if spec.mode == "calibrate" or spec.target.surface != "skill":
        return
    if all(condition.skill != "absent" for condition in spec.conditions):
        yield Finding(
            path=("conditions",),
            message="a skill comparison declares a control without the skill",
            expected='a condition with "skill": "absent"',
            found=f"levels {', '.join(sorted({shown(item.skill) for item in spec.conditions}))}",
            fix="add a condition without the skill",
        )
