"""The views of a task: what the agent, the grader and the oracle check get, kept apart.

Only listed files are taken, each in exactly one view, so that no grading byte can reach an agent
(requirements F1, B13, V11). A task of a public benchmark is checked, file by file and byte by
byte, against the pinned commit's objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from xgent_evolve.errors import TaskError
from xgent_evolve.freeze.crew import take_present
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.pinned import require_pinned
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.reading import Taken, take
from xgent_evolve.freeze.snapshot import (
    intake,
    keep,
    read_again,
    require_distinct_names,
    require_fetched,
    require_no_secrets,
)
from xgent_evolve.ids import Digest
from xgent_evolve.spec.cases import Case, PublicSource
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered
from xgent_evolve.store.bundles import Blobs, Tree, link_destination, link_stays_inside, make_tree
from xgent_evolve.tasks.prompt import prompt_of
from xgent_evolve.tasks.settings import TASK_FILE

type ViewName = Literal["public", "grader", "oracle"]

VIEWS: tuple[ViewName, ...] = ("public", "grader", "oracle")

INSTRUCTION = "instruction.md"
"""The prompt; part of the public view."""

REQUIRED: dict[ViewName, str] = {
    "public": INSTRUCTION,
    "grader": "tests/test.sh",
    "oracle": "solution/solve.sh",
}
"""The file that each view must have."""


class TaskViews(NamedTuple):
    """A task, frozen."""

    prompt: Digest
    """Blob of what the agent is asked."""
    public: Tree
    """What the agent may read; paths, as in the others, relative to the task directory."""
    grader: Tree
    """What only the grader gets."""
    oracle: Tree
    """What only the oracle check gets."""


def freeze_views(loaded: LoadedSpec, number: int, blobs: Blobs) -> TaskViews:
    """Freeze the views of the JobSpec's case of that number.

    Raises:
        TaskError: E_SPEC_TASK_FILE: a listed or required file is absent; E_SPEC_TASK_VIEWS: a
            file is in two views, or a link leads out of its view.
        DriftError: E_FREEZE_PUBLIC: a file differs from the pinned commit; E_FREEZE_RACE.
        RefusedError: another E_FREEZE_ code: something there cannot be frozen.

    """
    case = loaded.spec.cases[number]
    root = loaded.resolve(case.task_path)
    if not root.is_dir():
        raise _missing(loaded, number, "task_path", str(root))
    with intake(blobs) as staging, DiskReader(root) as reader:
        paths = _listed_files(loaded, number, reader)
        _require_disjoint(loaded, number, paths)
        listed = [path for view in VIEWS for path in paths[view]]
        found = take_present(reader, listed, staging)
        for view in VIEWS:
            if view != "oracle" or case.oracle_check == "required":
                _require_file(loaded, number, view, found, paths)
        task_file = take(reader, TASK_FILE, None)
        _require_allowed(loaded, number, [*found.values(), *filter(None, [task_file])], root)
        if isinstance(case.source, PublicSource):
            named = [spec_path(path) for view in VIEWS for path in _paths(case, view)]
            settings = {} if task_file is None else {TASK_FILE: task_file}
            require_pinned(loaded, number, root, [*named, TASK_FILE], found | settings)
        entries = keep(found.values(), str(root), staging, blobs, partial(read_again, root))
    prompt = _require_prompt(loaded, number, blobs.get(found[INSTRUCTION].blob))
    require_distinct_names(entries, str(root))
    trees = {view: make_tree(entries[path] for path in paths[view]) for view in VIEWS}
    for view in VIEWS:
        _require_links_inside(loaded, number, view, trees[view])
    return TaskViews(blobs.put(prompt.encode()), trees["public"], trees["grader"], trees["oracle"])


def _listed_files(loaded: LoadedSpec, number: int, reader: DiskReader) -> dict[ViewName, list[str]]:
    """Return the files of each view; a listed directory means everything in it."""
    case = loaded.spec.cases[number]
    return {
        view: sorted(
            {
                path
                for position, listed in enumerate(_paths(case, view))
                for path in _files_at(loaded, number, (f"{view}_paths", position), listed, reader)
            }
        )
        for view in VIEWS
    }


def _paths(case: Case, view: ViewName) -> list[str]:
    match view:
        case "public":
            return case.public_paths
        case "grader":
            return case.grader_paths
        case "oracle":
            return case.oracle_paths


def _files_at(
    loaded: LoadedSpec,
    number: int,
    field: tuple[str, int],
    listed: str,
    reader: DiskReader,
) -> Iterator[str]:
    path = spec_path(listed)
    kind = reader.kind(path)
    if kind is None:
        raise _missing(loaded, number, *field, reader.place(path))
    if kind == "dir":
        yield from reader.walk(path)
    else:
        yield path


def _require_allowed(loaded: LoadedSpec, number: int, taken: list[Taken], root: Path) -> None:
    """Refuse what only stands for a file, and secrets that were not allowed to leave."""
    for item in taken:
        require_fetched(item, str(root))
    allowed = [spec_path(path) for path in loaded.spec.authority.allow_secrets_in]
    require_no_secrets(taken, str(root), allowed, f"{loaded.spec.cases[number].id}/")


def _require_disjoint(loaded: LoadedSpec, number: int, paths: dict[ViewName, list[str]]) -> None:
    owner: dict[str, ViewName] = {}
    for view in VIEWS:
        for path in paths[view]:
            first = owner.setdefault(path, view)
            if first != view:
                raise TaskError(
                    "a file of the task is in two views",
                    code="E_SPEC_TASK_VIEWS",
                    where=_where(loaded, number, f"{view}_paths"),
                    expected="each file in one of public_paths, grader_paths and oracle_paths",
                    found=f"{path} in {first}_paths and {view}_paths",
                    fix="list it once",
                )


def _require_file(
    loaded: LoadedSpec,
    number: int,
    view: ViewName,
    found: dict[str, Taken],
    paths: dict[ViewName, list[str]],
) -> None:
    path = REQUIRED[view]
    if path not in paths[view] or found[path].kind != "file":
        raise TaskError(
            f"the {view} view has no {path}",
            code="E_SPEC_TASK_FILE",
            where=_where(loaded, number, f"{view}_paths"),
            expected=f"the file {path}",
            found=", ".join(paths[view][:5]) or "no file",
            fix=f"add {path} to the task directory and list it in {view}_paths"
            + (', or set "oracle_check" to "unchecked"' if view == "oracle" else ""),
        )


def _require_prompt(loaded: LoadedSpec, number: int, instruction: bytes) -> str:
    try:
        text = prompt_of(instruction.decode("utf-8"))
    except UnicodeDecodeError as error:
        text, found = "", f"{error.reason} at byte {error.start}"
    else:
        found = "nothing but white space and canary lines"
    if not text.strip():
        raise TaskError(
            "the instruction is not a prompt",
            code="E_SPEC_TASK_FILE",
            where=f"{_where(loaded, number, 'public_paths')}: {INSTRUCTION}",
            expected="UTF-8 text",
            found=found,
            fix="write the task into instruction.md",
        )
    return text


def _require_links_inside(loaded: LoadedSpec, number: int, view: ViewName, tree: Tree) -> None:
    names = {entry.path for entry in tree}
    for entry in tree:
        if entry.kind != "link":
            continue
        target = entry.target or ""
        reached = link_destination(entry.path, target)
        if not link_stays_inside(entry.path, target) or not any(
            covered(name, [reached]) for name in names
        ):
            raise TaskError(
                "a link of the task leads out of its view",
                code="E_SPEC_TASK_VIEWS",
                where=f"{_where(loaded, number, f'{view}_paths')}: {entry.path}",
                expected="a relative link to a file of the same view",
                found=f"-> {target}",
                fix="replace the link by a copy",
            )


def _where(loaded: LoadedSpec, number: int, *field: str | int) -> str:
    case = loaded.spec.cases[number]
    return f"{place(loaded, 'cases', number, *field)} (case {case.id})"


def _missing(loaded: LoadedSpec, number: int, *field_and_found: str | int) -> TaskError:
    *field, found = field_and_found
    return TaskError(
        "a listed file of the task does not exist",
        code="E_SPEC_TASK_FILE",
        where=_where(loaded, number, *field),
        expected=f"a file or directory at {found}",
        found="nothing there",
        fix="correct the path, or add the file to the task directory",
    )
