"""Warnings about a frozen study: what is allowed and still not what its author will expect.

A warning has the form of a fault and a code that starts with `W_`; `STRICT` names the error that
it becomes when the caller wants none.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Final

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import InstalledSkill, Protocol
from xgent_evolve.freeze.reach import agents_warnings
from xgent_evolve.freeze.skill_trees import SKILL_FILE
from xgent_evolve.freeze.skills import skill_warnings
from xgent_evolve.freeze.tasks import task_warnings
from xgent_evolve.spec.bounds import compared_cases
from xgent_evolve.spec.faults import shown_list
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.parts import PROVEN_GROUPS
from xgent_evolve.spec.paths import last_name
from xgent_evolve.spec.surfaces import skill_root
from xgent_evolve.store.bundles import Blobs, load_bundle

STRICT: Final = {
    "W_AGENTS_IMPORT": "E_AGENTS_IMPORT",
    "W_AGENTS_NESTED": "E_AGENTS_NESTED",
    "W_AGENTS_TRUNCATED": "E_AGENTS_TRUNCATED",
    "W_HIDDEN_EDIT": "E_HIDDEN_EDIT",
    "W_LOW_CONFIDENCE": "E_LOW_CONFIDENCE",
    "W_SKILL_DESCRIPTION_LENGTH": "E_SKILL_DESCRIPTION_LENGTH",
    "W_SKILL_LINKED": "E_SKILL_LINKED",
    "W_SKILL_NAME": "E_SKILL_NAME",
    "W_TASK_IMAGE": "E_TASK_IMAGE",
    "W_TASK_LIMIT": "E_TASK_LIMIT",
    "W_TASK_NETWORK": "E_TASK_NETWORK",
    "W_TASK_UNCHECKED": "E_TASK_UNCHECKED",
    "W_TASK_UNKNOWN_KEY": "E_TASK_UNKNOWN_KEY",
    "W_TOO_FEW_GROUPS": "E_TOO_FEW_GROUPS",
}
"""The error of each warning under `validate --strict`."""

PROVEN_CONFIDENCE: Final = Decimal("0.9")
"""Lowest confidence at which the interval was shown to keep its level (docs/statistics.md)."""


def study_warnings(loaded: LoadedSpec, protocol: Protocol, blobs: Blobs) -> tuple[Fault, ...]:
    """Return every warning about a study, each once: evidence, skills, AGENTS.md, tasks. Pure."""
    found = [
        *_groups(loaded),
        *_confidence(loaded),
        *_hidden_edits(loaded, protocol),
        *_skills(loaded, protocol, blobs),
        *agents_warnings(loaded, protocol, blobs),
        *_tasks(loaded, protocol, blobs),
    ]
    return tuple(dict.fromkeys(found))


def require_no_warnings(warnings: Iterable[Fault]) -> None:
    """Raise SpecError (exit 2) with every warning as an error, when there is one."""
    if faults := tuple(replace(item, code=STRICT[item.code]) for item in warnings):
        raise SpecError(faults)


def _hidden_edits(loaded: LoadedSpec, protocol: Protocol) -> Iterator[Fault]:
    repo = loaded.resolve(loaded.spec.target.repo)
    for path in protocol.source.hidden:
        yield Fault(
            code="W_HIDDEN_EDIT",
            message="the file differs from the base commit, and Git was told not to look at it",
            where=f"{repo}/{path}",
            expected="a change that `git status` shows",
            found="skip-worktree or assume-unchanged; the bytes on disk are frozen",
            fix="nothing if you mean that edit; else restore the file with: "
            + " && ".join(
                f"git {command} -- {shlex.quote(path)}"
                for command in (
                    "update-index --no-skip-worktree",
                    "update-index --no-assume-unchanged",
                    "checkout",
                )
            ),
        )


def _groups(loaded: LoadedSpec) -> Iterator[Fault]:
    """Say when no trials could decide on a gain; a search like that is refused."""
    spec = loaded.spec
    required = max(PROVEN_GROUPS, spec.measurement.min_groups)
    groups = sorted({case.group for case in compared_cases(spec)})
    if spec.mode in ("compare", "search") and len(groups) < required:
        yield Fault(
            code="W_TOO_FEW_GROUPS",
            message="the comparison can show no gain and exclude none: too few independent source"
            " groups are measured",
            where=place(loaded, "cases"),
            expected=f"at least {required} groups (measurement.min_groups, and never fewer than"
            f" {PROVEN_GROUPS})",
            found=f"{len(groups)}: {shown_list(groups)}",
            fix="add cases from other groups, or take the run as a trial of the set-up",
        )


def _confidence(loaded: LoadedSpec) -> Iterator[Fault]:
    """Say when a false gain is likelier than the confidence that was asked for says."""
    spec = loaded.spec
    asked = spec.measurement.confidence
    if spec.mode in ("compare", "search") and asked < PROVEN_CONFIDENCE:
        yield Fault(
            code="W_LOW_CONFIDENCE",
            message="at so low a confidence a text without any effect is kept more often than the"
            " confidence says",
            where=place(loaded, "measurement", "confidence"),
            expected=f"at least {PROVEN_CONFIDENCE}",
            found=str(asked),
            fix="raise it, or take what is kept as a hint and not as a finding",
        )


def _skills(loaded: LoadedSpec, protocol: Protocol, blobs: Blobs) -> Iterator[Fault]:
    roots = {last_name(root): root for root in map(spec_path, loaded.spec.source.fixed_skill_roots)}
    repo = loaded.resolve(loaded.spec.target.repo)
    for number, condition in enumerate(protocol.conditions):
        for skill in condition.fixed_skills if number == 0 else ():
            root = roots.get(skill.name, skill.name)
            yield from _skill(skill, f"{repo}/{root}", f"{repo}/{root}/{SKILL_FILE}", blobs)
        studied = skill_root(loaded.spec.target)
        if condition.skill is not None and studied is not None:
            root = spec_path(studied)
            where = f"{repo}/{root}/{SKILL_FILE}"
            own = f"{studied}/{SKILL_FILE}"
            if own in loaded.spec.conditions[number].overrides:
                where = place(loaded, "conditions", number, "overrides", own)
            yield from _skill(condition.skill, f"{repo}/{root}", where, blobs)


def _skill(skill: InstalledSkill, directory: str, where: str, blobs: Blobs) -> Iterator[Fault]:
    main = next(
        (item for item in load_bundle(blobs, skill.bundle) if item.path == SKILL_FILE), None
    )
    if main is not None and main.blob is not None:
        yield from skill_warnings(blobs.get(main.blob), where, skill.name)
    if skill.links:
        links = [f"{path or '.'} -> {target}" for path, target in sorted(skill.links.items())]
        yield Fault(
            code="W_SKILL_LINKED",
            message="the skill is partly made of links; the agent gets what they lead to",
            where=directory,
            expected="a directory that holds all of its files",
            found=", ".join(links[:3]) + (f" and {len(links) - 3} more" if links[3:] else ""),
            fix="nothing, unless conditions must not find those files outside the skill",
        )


def _tasks(loaded: LoadedSpec, protocol: Protocol, blobs: Blobs) -> Iterator[Fault]:
    for item in task_warnings(protocol, blobs):
        yield Fault(code=item.code, message=item.message, where=item.where)
    for number, case in enumerate(protocol.spec.cases):
        if case.oracle_check == "unchecked":
            yield Fault(
                code="W_TASK_UNCHECKED",
                message=f"the task {case.id} is not checked, so nothing shows that its verifier"
                " can tell right from wrong",
                where=place(loaded, "cases", number, "oracle_check"),
                expected='"required", with a reference solution',
                found='"unchecked"',
                fix="add a reference solution, or read the verifier with care",
            )
