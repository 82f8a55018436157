"""Rules of the repository's paths: what is studied, frozen, exported and written.

Each list lies within the one that allows it: the target and the background skills within the
source, the source within authority.export_paths, and what apply changes within
authority.write_paths. Only the caller widens a list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from xgent_evolve.spec.faults import Finding, shown, shown_list
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath, path_text
from xgent_evolve.spec.paths import covered, last_name, overlaps
from xgent_evolve.spec.surfaces import agents_paths, skill_root

if TYPE_CHECKING:
    from xgent_evolve.spec.load import LoadedSpec


def path_findings(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield every broken rule of the repository's paths."""
    spec = loaded.spec
    yield from _same_repository(loaded)
    yield from _target(spec)
    yield from _duplicates(spec)
    yield from _fixed_skills(spec)
    frozen = [*spec.source.paths, *spec.source.new_paths]
    export = spec.authority.export_paths
    rules = [rule.path for rule in spec.target.protected_rules]
    yield from _inside(("target", "paths"), spec.target.paths, "source.paths", spec.source.paths)
    yield from _inside(("source", "paths"), spec.source.paths, "authority.export_paths", export)
    yield from _inside(
        ("source", "new_paths"), spec.source.new_paths, "authority.export_paths", export
    )
    yield from _inside(
        ("source", "fixed_skill_roots"),
        spec.source.fixed_skill_roots,
        "source.paths",
        spec.source.paths,
    )
    yield from _inside(
        ("target", "protected_rules"), rules, "source.paths or source.new_paths", frozen, ("path",)
    )
    if spec.authority.allow_apply:
        yield from _write_authority(spec)


def same_place(left: os.PathLike[str], right: os.PathLike[str]) -> bool:
    """Return whether two absolute paths are the same text once `.` and `..` are gone."""
    return os.path.normpath(left) == os.path.normpath(right)


def _same_repository(loaded: LoadedSpec) -> Iterator[Finding]:
    target, spoken_for = loaded.spec.target.repo, loaded.spec.authority.repo
    if not same_place(loaded.resolve(target), loaded.resolve(spoken_for)):
        yield Finding(
            path=("authority", "repo"),
            message="the authority is for another repository than the target",
            expected=f"target.repo: {shown(target)}",
            found=shown(spoken_for),
            fix="write the target's repository here, if the caller may speak for it",
        )


def _target(spec: JobSpec) -> Iterator[Finding]:
    target = spec.target
    if target.surface == "agents":
        return
    texts = agents_paths(target)
    roots = [path for path in target.paths if path not in texts]
    if len(roots) != 1:
        yield Finding(
            path=("target", "paths"),
            message="surface skill studies exactly one skill",
            expected="the directory that holds SKILL.md, and AGENTS.md files only if they are "
            "crossed with it",
            found=f"{len(roots)} directories",
            fix="name the root of the skill alone; further skills are source.fixed_skill_roots",
        )
    for index, path in enumerate(target.paths):
        if path in texts and covered(path, roots):
            yield Finding(
                path=("target", "paths", index),
                message="the file belongs to the skill",
                expected="AGENTS.md files outside the skill",
                found=shown(path),
                fix="remove it; the skill's own files are in the target already",
            )


def _duplicates(spec: JobSpec) -> Iterator[Finding]:
    target, source, authority = spec.target, spec.source, spec.authority
    lists: dict[JsonPath, Sequence[str]] = {
        ("target", "paths"): target.paths,
        ("target", "compatible_bases"): target.compatible_bases,
        ("target", "protected_rules"): [f"{r.path}: {r.text}" for r in target.protected_rules],
        ("source", "paths"): source.paths,
        ("source", "new_paths"): source.new_paths,
        ("authority", "export_paths"): authority.export_paths,
        ("authority", "write_paths"): authority.write_paths,
    }
    for number, case in enumerate(spec.cases):
        for view in ("scope_paths", "public_paths", "grader_paths", "oracle_paths"):
            lists["cases", number, view] = getattr(case, view)
    for path, items in lists.items():
        yield from repeated(path, items)
    if target.base_commit in target.compatible_bases:
        yield Finding(
            path=("target", "compatible_bases", target.compatible_bases.index(target.base_commit)),
            message="the base is always compatible with itself",
            expected="older commits",
            found=shown(target.base_commit),
            fix="remove it",
        )


def repeated(path: JsonPath, items: Sequence[str]) -> Iterator[Finding]:
    """Yield every item of a list that stands in it before."""
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(item, index)
        if first < index:
            yield Finding(
                path=(*path, index),
                message="this is listed twice",
                expected="every item once",
                found=f"{shown(item)}, also at {path_text((*path, first))}",
                fix="remove one of the two",
            )


def _fixed_skills(spec: JobSpec) -> Iterator[Finding]:
    roots = spec.source.fixed_skill_roots
    taken = {last_name(path).casefold(): path for path in filter(None, [skill_root(spec.target)])}
    for index, root in enumerate(roots):
        path: JsonPath = ("source", "fixed_skill_roots", index)
        if any(overlaps(root, other) for other in spec.target.paths):
            yield Finding(
                path=path,
                message="a background skill overlaps the target",
                expected="a directory apart from target.paths",
                found=shown(root),
                fix="remove it; the target's own text varies with the condition",
            )
            continue
        name = last_name(root).casefold()
        if name in taken:
            yield Finding(
                path=path,
                message="two skills would be installed under one name",
                expected="last parts that differ, whatever their case",
                found=f"{shown(root)} and {shown(taken[name])}",
                fix="remove one of the two",
            )
        elif any(overlaps(root, other) for other in roots[:index]):
            yield Finding(
                path=path,
                message="one background skill lies inside another",
                expected="separate directories",
                found=shown(root),
                fix="name the outer one alone",
            )
        taken.setdefault(name, root)


def _inside(
    path: JsonPath,
    inner: Sequence[str],
    outer_name: str,
    outer: Sequence[str],
    suffix: JsonPath = (),
) -> Iterator[Finding]:
    allowed = frozenset(outer)
    for index, item in enumerate(inner):
        if not covered(item, allowed):
            yield Finding(
                path=(*path, index, *suffix),
                message=f"the path is not within {outer_name}",
                expected=f"a path within {shown_list(outer)}",
                found=shown(item),
                fix=f"add it to {outer_name}, or remove it here",
            )


def _write_authority(spec: JobSpec) -> Iterator[Finding]:
    writable = spec.authority.write_paths
    if not writable:
        yield Finding(
            path=("authority", "write_paths"),
            message="apply is allowed, but there is nothing that it may write",
            expected=f"paths that cover {shown_list(spec.target.paths)}",
            found="none",
            fix="list the target's paths, or set authority.allow_apply to false",
        )
        return
    for path in spec.target.paths:
        if not covered(path, writable):
            yield Finding(
                path=("authority", "write_paths"),
                message="apply could not write a part of the target",
                expected=f"paths that cover {shown(path)}",
                found=", ".join(map(shown, writable)),
                fix="add it, or set authority.allow_apply to false",
            )
