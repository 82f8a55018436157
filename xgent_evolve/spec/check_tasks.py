"""Rules of the cases: the views of a task directory, its origin, its place in the container."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from typing import TYPE_CHECKING

from xgent_evolve.spec.check_paths import same_place
from xgent_evolve.spec.faults import Finding, shown
from xgent_evolve.spec.locate import JsonPath
from xgent_evolve.spec.models_v1 import Case, RepoSource
from xgent_evolve.spec.paths import covered, overlaps

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
        yield from _origin(loaded, path, case)
    yield from _distinct_tasks(loaded)


def _views(path: JsonPath, case: Case) -> Iterator[Finding]:
    views = {
        "public_paths": case.public_paths,
        "grader_paths": case.grader_paths,
        "oracle_paths": case.oracle_paths,
    }
    for name, required in _VIEWS.items():
        if not covered(required, views[name]):
            yield Finding(
                path=(*path, name),
                message=f"{name} does not cover {required}",
                expected=f"{shown(required)} or a directory that holds it",
                found=", ".join(map(shown, views[name])) or "no paths",
                fix=f"add {shown(required)}",
            )
    for left, right in combinations(_VIEWS, 2):
        for index, item in enumerate(views[right]):
            if shared := next((other for other in views[left] if overlaps(item, other)), None):
                yield Finding(
                    path=(*path, right, index),
                    message="two views of the task share files",
                    expected=f"{left} and {right} without a common file",
                    found=f"{shown(item)} here, {shown(shared)} in {left}",
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
        if target.surface == "agents" and loaded.spec.mode != "smoke":
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
