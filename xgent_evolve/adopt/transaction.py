"""Carry a plan out: all files or none, whatever interrupts it (requirement J2, invariant V13).

The record beside the evidence says what is under way:

- `staging`: new text is being written beside the files. Nothing has changed yet.
- `swapping`: all new text is durable; file by file it takes the place of the old, which stays
  beside it.
- `done`: every file is changed. What stayed beside them is being removed.

An adoption that was interrupted before `done` is undone by the next one, which then starts anew;
after `done` it only has to be tidied up. A file that a person changed meanwhile is left alone.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.adopt.plan import (
    Change,
    Conflict,
    already_adopted,
    find_conflicts,
    find_warnings,
)
from xgent_evolve.adopt.worktree import WorkTree
from xgent_evolve.canonical import canonical_bytes
from xgent_evolve.errors import BusyError, RefusedError, StoreError
from xgent_evolve.ids import Digest
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import write_durable

type Phase = Literal["staging", "swapping", "done"]


class Record(BaseModel):
    """Content of adoption.json."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    type: Literal["xgent-evolve/adoption/1"] = "xgent-evolve/adoption/1"
    phase: Phase
    repository: str
    """Top directory of the repository that is changed."""
    token: str
    """Part of the names of the files that lie beside the changed ones."""
    changes: list[Change]
    made: list[str]
    """Directories that this adoption makes, parents first."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """What an adoption came to."""

    changed: tuple[str, ...]
    """Paths that were changed; empty when everything was as wanted already."""
    warnings: tuple[str, ...]


def adopt(
    root: Path, changes: Sequence[Change], content: Callable[[Digest], bytes], record: Path
) -> Adopted:
    """Change the files of the repository `root`, or raise and leave every one as it was.

    `content` gives the verified bytes of a digest. `record` is where the state of the adoption is
    kept, on a disk that survives a crash.

    Raises:
        RefusedError: E_APPLY_CONFLICT, E_APPLY_LINK, E_APPLY_READONLY (with all files that are in
            the way), E_APPLY_FILE_SYSTEM, E_APPLY_INTERRUPTED, E_APPLY_IO.
        BusyError: another adoption is at work in this repository.
        StoreError: stored bytes are damaged, or the record cannot be written.

    """
    with lock_repository(root), WorkTree(root) as tree:
        warnings = settle_interrupted(tree, record)
        now = {change.path: tree.observe(change.path) for change in changes}
        if already_adopted(changes, now):
            return Adopted((), tuple(warnings))
        require_free(find_conflicts(changes, now), root)
        warnings += find_warnings(changes, now)
        texts = {
            change.after.digest: content(change.after.digest) for change in changes if change.after
        }
        entry = Record(
            phase="staging",
            repository=str(root),
            token=secrets.token_hex(4),
            changes=list(changes),
            made=_missing_directories(tree, changes),
        )
        _keep(record, entry)
        try:
            with _io_errors(root):
                _stage(tree, entry, texts)
                entry = entry.model_copy(update={"phase": "swapping"})
                _keep(record, entry)
                for number in range(len(changes)):
                    _swap(tree, entry, number)
        except BaseException as error:
            _give_up(tree, entry, record, error)
            raise
        entry = entry.model_copy(update={"phase": "done"})
        _keep(record, entry)
        warnings += _tidy(tree, entry)
        return Adopted(tuple(change.path for change in changes), tuple(warnings))


def settle_interrupted(tree: WorkTree, record: Path) -> list[str]:
    """Undo or tidy up what an earlier adoption left; return what a person should know.

    Raises:
        RefusedError: E_APPLY_INTERRUPTED: it was in another repository.
        StoreError: E_STORE_CORRUPT: the record cannot be read.

    """
    entry = _read(record)
    if entry is None:
        return []
    if entry.phase == "done":
        return _tidy(tree, entry) if entry.repository == str(tree.root) else []
    if entry.repository != str(tree.root):
        raise RefusedError(
            "an adoption into another repository was interrupted",
            code="E_APPLY_INTERRUPTED",
            where=str(record),
            expected=str(tree.root),
            found=entry.repository,
            fix=f"apply to {entry.repository} first: that undoes what was begun there",
        )
    warnings = _give_up(tree, entry, record, None)
    return [*warnings, "W_APPLY_UNDONE: an interrupted adoption was undone first"]


def require_free(conflicts: Sequence[Conflict], root: Path) -> None:
    """Raise one RefusedError that lists every file that is in the way."""
    if not conflicts:
        return
    first = conflicts[0]
    listed = "\n".join(
        f"{conflict.path}: {conflict.found} (expected {conflict.expected})"
        for conflict in conflicts
    )
    fixes = {
        "E_APPLY_CONFLICT": "keep your edit and start another run from it, or restore the files",
        "E_APPLY_LINK": "links are never written through; make it a file, or apply by hand",
        "E_APPLY_READONLY": "make the file writable if you want it changed",
    }
    raise RefusedError(
        f"{len(conflicts)} of the files cannot be changed",
        code=first.code,
        where=str(root),
        expected="files as they were frozen",
        found=listed,
        fix=f"nothing was changed; {fixes[first.code]}",
    )


@contextmanager
def lock_repository(root: Path) -> Generator[None]:
    """Hold the kernel's lock on a directory; no file is made.

    Raises:
        BusyError: another adoption holds it.

    """
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                "another adoption is at work in this repository",
                where=str(root),
                fix="wait for it to end",
            ) from None
        yield
    finally:
        os.close(descriptor)


# The steps.


def _stage(tree: WorkTree, entry: Record, texts: dict[Digest, bytes]) -> None:
    for directory in entry.made:
        crash_point("adopt.mkdir")
        tree.make_directory(directory)
    for number, change in enumerate(entry.changes):
        if change.after is not None:
            crash_point("adopt.stage")
            tree.stage(
                _beside(entry, number),
                texts[change.after.digest],
                executable=change.after.executable,
                like=None if change.before is None else change.path,
            )


def _swap(tree: WorkTree, entry: Record, number: int) -> None:
    """Put one file's new state in the place of the old, if the old one is still there."""
    change, beside = entry.changes[number], _beside(entry, number)
    crash_point("adopt.swap")
    try:
        if change.before is None:
            tree.move(beside, change.path)
            return
        if change.after is None:
            tree.move(change.path, beside)
        else:
            tree.exchange(beside, change.path)
    except (FileExistsError, FileNotFoundError):
        require_free(find_conflicts([change], {change.path: tree.observe(change.path)}), tree.root)
        raise
    crash_point("adopt.swapped")
    # What came out decides: between the look and the step, a person may have saved the file.
    out = tree.observe(beside)
    if out.state != change.before:
        if change.after is None:
            tree.move(beside, change.path)
        else:
            tree.exchange(beside, change.path)
        require_free(find_conflicts([change], {change.path: out}), tree.root)


def _give_up(tree: WorkTree, entry: Record, record: Path, cause: BaseException | None) -> list[str]:
    """Undo everything and forget the record; when even that fails, keep it for the next time."""
    try:
        warnings = _undo(tree, entry)
    except OSError as error:
        raise RefusedError(
            "an adoption was begun and cannot be undone now",
            code="E_APPLY_INTERRUPTED",
            where=str(error.filename or tree.root),
            found=error.strerror or str(error),
            fix=f"correct that and apply again: what {record} describes is undone first",
        ) from (cause or error)
    record.unlink(missing_ok=True)
    return warnings


def _undo(tree: WorkTree, entry: Record) -> list[str]:
    """Bring every file back to what it was before; never over a later edit."""
    warnings: list[str] = []
    for number in reversed(range(len(entry.changes))):
        crash_point("adopt.undo")
        if entry.phase == "staging":
            if entry.changes[number].after is not None:
                tree.remove(_beside(entry, number))
        else:
            warnings += _undo_swap(tree, entry, number)
    for directory in reversed(entry.made):
        tree.remove_directory(directory)
    return warnings


def _undo_swap(tree: WorkTree, entry: Record, number: int) -> list[str]:
    change, beside = entry.changes[number], _beside(entry, number)
    now, kept = tree.observe(change.path), tree.observe(beside)
    if change.before is None:
        if kept.kind == "absent" and now.state == change.after:
            tree.move(change.path, beside)
        elif kept.kind == "absent" and now.kind != "absent":
            return [f"W_APPLY_LATE_EDIT: {change.path} was edited meanwhile and is kept"]
        tree.remove(beside)
        return []
    if kept.kind == "absent" or (change.after is not None and kept.state == change.after):
        tree.remove(beside)  # it had not been swapped
        return []
    if change.after is None and now.kind == "absent":
        tree.move(beside, change.path)
        return []
    if change.after is not None and now.state == change.after:
        tree.exchange(beside, change.path)
        tree.remove(beside)
        return []
    return [
        f"W_APPLY_LATE_EDIT: {change.path} was edited meanwhile and is kept; "
        f"the text before it is in {beside}"
    ]


def _tidy(tree: WorkTree, entry: Record) -> list[str]:
    """Remove the old files that stayed beside the new ones."""
    warnings: list[str] = []
    for number, change in enumerate(entry.changes):
        beside = _beside(entry, number)
        kept = tree.observe(beside)
        if change.before is None or kept.kind == "absent":
            continue
        if kept.state == change.before:
            crash_point("adopt.tidy")
            tree.remove(beside)
        else:
            warnings.append(
                f"W_APPLY_LATE_EDIT: something wrote into the old {change.path}; "
                f"that text is in {beside}"
            )
    return warnings


# The record.


def _keep(record: Path, entry: Record) -> None:
    crash_point("adopt.record")
    write_durable(record, canonical_bytes(entry.model_dump(mode="json")) + b"\n")


def _read(record: Path) -> Record | None:
    try:
        content = record.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return Record.model_validate(json.loads(content))
    except (ValueError, ValidationError) as error:
        raise StoreError(
            "the record of an adoption cannot be read",
            code="E_STORE_CORRUPT",
            where=str(record),
            found=type(error).__name__,
            fix="look at the repository with git status, then move this file away",
        ) from error


def _beside(entry: Record, number: int) -> str:
    """Return the path of the file that lies beside the changed one meanwhile."""
    parent = entry.changes[number].path.rpartition("/")[0]
    name = f".xgent-adopt-{entry.token}-{number}"
    return f"{parent}/{name}" if parent else name


def _missing_directories(tree: WorkTree, changes: Sequence[Change]) -> list[str]:
    parents = {
        "/".join(parts[:depth])
        for parts in (change.path.split("/") for change in changes if change.after is not None)
        for depth in range(1, len(parts))
    }
    return [path for path in sorted(parents) if tree.observe(path).kind == "absent"]


@contextmanager
def _io_errors(root: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise RefusedError(
            "the disk is full" if full else "the repository cannot be written",
            code="E_APPLY_IO",
            where=str(error.filename or root),
            found=error.strerror or str(error),
            fix="every file is as it was before; free space or permissions, then apply again",
        ) from error
