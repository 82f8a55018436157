"""Rules of the cases: the views of a task directory, its origin, its place in the container."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from datetime import date
from itertools import combinations
from typing import TYPE_CHECKING

from xgent_evolve.spec.bounds import compared_cases
from xgent_evolve.spec.cases import Case, RepoSource
from xgent_evolve.spec.check_paths import same_place
from xgent_evolve.spec.faults import Finding, shown
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath
from xgent_evolve.spec.paths import Places, covered, last_name, overlaps, within
from xgent_evolve.spec.surfaces import AGENTS_FILE, agents_paths, skill_root

if TYPE_CHECKING:
    from xgent_evolve.spec.load import LoadedSpec

RESERVED_PATHS = (
    "/xgent",
    "/evolution-input",
    "/opt/codex",
    "/home/agent",
    "/tests",
    "/solution",
    "/logs",
    "/etc",
    "/tmp",  # noqa: S108 - a place in a container that is refused
    "/proc",
    "/sys",
    "/dev",
)
"""Places in the container that the study or the system needs."""

_VIEWS = {
    "public_paths": "instruction.md",
    "grader_paths": "tests/test.sh",
    "oracle_paths": "solution/solve.sh",
}


def task_findings(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield every broken rule of the cases."""
    for index, case in enumerate(loaded.spec.cases):
        path: JsonPath = ("cases", index)
        yield from _views(path, case)
        yield from _workspace(path, case)
        yield from _cutoff(path, case)
        yield from _platform(path, case)
        yield from _origin(loaded, path, case)
        yield from _scope(loaded, path, case)
    yield from _distinct_tasks(loaded)
    yield from _nested_instructions(loaded.spec)


def _views(path: JsonPath, case: Case) -> Iterator[Finding]:
    views = {
        "public_paths": case.public_paths,
        "grader_paths": case.grader_paths,
        "oracle_paths": case.oracle_paths,
    }
    for name, required in _VIEWS.items():
        needed = name != "oracle_paths" or case.oracle_check == "required"
        if needed and not covered(required, views[name]):
            yield Finding(
                path=(*path, name),
                message=f"{name} does not cover {required}",
                expected=f"{shown(required)} or a directory that holds it",
                found=", ".join(map(shown, views[name])) or "no paths",
                fix=f"add {shown(required)}"
                + (
                    ', or set "oracle_check" to "unchecked" for a task without a solution'
                    if name == "oracle_paths"
                    else ""
                ),
            )
    for left, right in combinations(_VIEWS, 2):
        places = Places(views[left])
        for index, item in enumerate(views[right]):
            if (found := places.find_overlap(item)) is not None:
                yield Finding(
                    path=(*path, right, index),
                    message="two views of the task share files",
                    expected=f"{left} and {right} without a common file",
                    found=f"{shown(item)} here, {shown(views[left][found])} in {left}",
                    fix="put every file into one view; list files one by one where needed",
                )


def _workspace(path: JsonPath, case: Case) -> Iterator[Finding]:
    place = case.repo_path
    if posixpath.normpath(place) != place or place.startswith("//") or place == "/":
        yield Finding(
            path=(*path, "repo_path"),
            message="the working directory is not a plain directory below the root",
            expected='a path such as "/app", without "..", "." or a slash at the end',
            found=shown(place),
            fix=f"write {shown(posixpath.normpath(place))}" if place.strip("/.") else "change it",
        )
        return
    reserved = next((item for item in RESERVED_PATHS if overlaps(place, item)), None)
    if reserved is not None:
        yield Finding(
            path=(*path, "repo_path"),
            message="the working directory overlaps a reserved place of the container",
            expected=f"a directory apart from {', '.join(RESERVED_PATHS)}",
            found=f"{shown(place)}, which overlaps {reserved}",
            fix='use a directory such as "/app" or "/workspace"',
        )


def _cutoff(path: JsonPath, case: Case) -> Iterator[Finding]:
    try:
        date.fromisoformat(case.information_cutoff)
    except ValueError:
        yield Finding(
            path=(*path, "information_cutoff"),
            message="there is no such date",
            expected="a date of the calendar, YYYY-MM-DD",
            found=shown(case.information_cutoff),
            fix="write the date up to which the material was known",
        )


def _origin(loaded: LoadedSpec, path: JsonPath, case: Case) -> Iterator[Finding]:
    source, target = case.source, loaded.spec.target
    if not isinstance(source, RepoSource):
        if agents_paths(target) and loaded.spec.mode != "smoke":
            yield Finding(
                path=(*path, "source", "kind"),
                message="AGENTS.md files are measured on tasks of their own repository",
                expected='"repo"',
                found=shown(source.kind),
                fix="use tasks of the target repository",
            )
        return
    if not same_place(loaded.resolve(source.repo), loaded.resolve(target.repo)):
        yield Finding(
            path=(*path, "source", "repo"),
            message="the task belongs to another repository than the target",
            expected=f"target.repo: {shown(target.repo)}",
            found=shown(source.repo),
            fix="use a task of the target repository, or another kind of source",
        )
    bases = [target.base_commit, *target.compatible_bases]
    if source.base not in bases:
        yield Finding(
            path=(*path, "source", "base"),
            message="the task starts from a commit that is not declared",
            expected=f"target.base_commit or one of target.compatible_bases: {', '.join(bases)}",
            found=shown(source.base),
            fix="declare the commit in target.compatible_bases, if the instructions suit it",
        )


def _platform(path: JsonPath, case: Case) -> Iterator[Finding]:
    if case.platform != "linux/amd64" and not isinstance(case.source, RepoSource):
        yield Finding(
            path=(*path, "platform"),
            message="only a task of the target repository may name another platform",
            expected='"linux/amd64", or source.kind "repo"',
            found=f"{shown(case.platform)} with source.kind {shown(case.source.kind)}",
            fix="use the task's own platform; scores of different platforms are not comparable",
        )


def _scope(loaded: LoadedSpec, path: JsonPath, case: Case) -> Iterator[Finding]:
    source = loaded.spec.source
    frozen = Places([*source.paths, *source.new_paths]) if case.scope_paths else Places([])
    for index, scope in enumerate(case.scope_paths):
        item: JsonPath = (*path, "scope_paths", index)
        if not isinstance(case.source, RepoSource):
            yield Finding(
                path=item,
                message="only a task of the target repository has a scope in it",
                expected='source.kind "repo", or no scope_paths',
                found=f"source.kind {shown(case.source.kind)}",
                fix="remove scope_paths",
            )
        elif frozen.find_overlap(scope) is None:
            yield Finding(
                path=item,
                message="nothing of this directory is frozen",
                expected="a directory within source.paths",
                found=shown(scope),
                fix="correct it, or add the directory to source.paths",
            )


def uncovered_directories(spec: JobSpec, directories: Iterable[str]) -> list[str]:
    """Return which of the directories of AGENTS.md files no compared task works in; pure.

    Instructions of the top, the empty directory, are in force in every task.
    """
    scopes = [scope for case in compared_cases(spec) for scope in case.scope_paths]
    return [
        directory
        for directory in directories
        if directory and not any(within(scope, directory) for scope in scopes)
    ]


def _nested_instructions(spec: JobSpec) -> Iterator[Finding]:
    """Require a task in the scope of every nested AGENTS.md that is studied (requirement B11)."""
    if spec.mode == "smoke":
        return
    places: dict[str, JsonPath] = {}
    for index, name in enumerate(spec.target.paths):
        places.setdefault(name, ("target", "paths", index))
    for number, condition in enumerate(spec.conditions):
        for name in condition.overrides:
            places.setdefault(name, ("conditions", number, "overrides", name))
    texts = [
        name
        for name in places
        if last_name(name) == AGENTS_FILE
        and not within(name, skill_root(spec.target) or name + "/")
    ]
    for name in texts:
        directory = name.removesuffix(AGENTS_FILE).rstrip("/")
        if uncovered_directories(spec, [directory]):
            yield Finding(
                path=places[name],
                at_key="overrides" in places[name],
                message="no measured task works where these nested instructions apply",
                expected=f"a case of kind repo with scope_paths in {shown(directory)}",
                found="scope_paths that do not lie there, or none",
                fix="say in cases[].scope_paths where the task works, or add such a task",
            )


def _distinct_tasks(loaded: LoadedSpec) -> Iterator[Finding]:
    """Yield tasks that count twice and would pass for independent evidence."""
    seen: dict[tuple[str, str, str], int] = {}
    for index, case in enumerate(loaded.spec.cases):
        directory = os.path.normpath(loaded.resolve(case.task_path))
        start = case.source.base if isinstance(case.source, RepoSource) else ""
        first = seen.setdefault((directory, start, case.image), index)
        if first != index:
            yield Finding(
                path=("cases", index, "task_path"),
                message="this task is already a case",
                expected="one case for every task",
                found=f"{shown(case.task_path)}, also at $.cases[{first}].task_path",
                fix="remove one of the two; to repeat a task use measurement.repeats",
            )
