"""Effects on disk that are finished when the function returns.

A file under its final name is whole and survives a power cut; a file that a crash interrupted is
only ever found under a temporary name (a leading dot and the suffix `.tmp`). A failing fsync is
never retried: after one, the kernel may call lost pages clean (requirement C3, rule R10).
"""

from __future__ import annotations

import ctypes
import errno
import functools
import itertools
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from xgent_evolve.errors import StoreError
from xgent_evolve.store.crashpoints import crash_point

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)

_serial = itertools.count()


def write_durable(path: Path, content: bytes, *, mode: int = 0o644) -> None:
    """Put `content` under `path`, replacing what is there, durably and in one step.

    Raises:
        StoreError: the file system refused or is full; `path` is as it was before.

    """
    temporary = temporary_sibling(path)
    with store_errors(path):
        try:
            write_new_file(temporary, content, mode=mode)
            crash_point("durable.rename")
            temporary.rename(path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        crash_point("durable.sync-directory")
        sync_directory(path.parent)
    crash_point("durable.written")


def write_new_file(path: Path, content: bytes, *, mode: int, sync: bool = True) -> None:
    """Create `path` with `content` and exactly `mode`; fsync it unless a later barrier does.

    Raises:
        OSError: it exists, or the file system refused.

    """
    crash_point("durable.create")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fchmod(descriptor, mode)
        if sync:
            crash_point("durable.sync-file")
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte of `content`, however few the kernel takes at once."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def make_directory_durable(path: Path) -> None:
    """Create `path` and its missing parents; each new name survives a power cut.

    Raises:
        StoreError: the file system refused, or a parent is not a directory.

    """
    with store_errors(path):
        missing = list(itertools.takewhile(lambda part: not part.is_dir(), (path, *path.parents)))
        for directory in reversed(missing):
            crash_point("durable.mkdir")
            directory.mkdir(exist_ok=True)
            crash_point("durable.sync-parent")
            sync_directory(directory.parent)


def sync_directory(path: Path) -> None:
    """Make the names in the directory `path` durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_filesystem(path: Path) -> bool:
    """Make everything written so far on the file system of `path` durable, in one barrier.

    Returns False where the platform has no such call; then nothing happened.
    """
    syncfs = _libc_function("syncfs")
    if syncfs is None:
        return False
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), os.fspath(path))
    finally:
        os.close(descriptor)
    return True


def rename_no_replace(source: Path, target: Path) -> None:
    """Rename a file or directory in one step; an existing `target` is never replaced.

    Raises:
        FileExistsError: something has that name.

    """
    rename = _libc_function("renameat2")
    if rename is not None:
        old, new = os.fsencode(source), os.fsencode(target)
        if rename(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in _UNSUPPORTED:
            raise OSError(number, os.strerror(number), os.fspath(target))
    if source.is_dir():
        # Without the kernel's help two creators may race here; the loser finds a full directory.
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
        source.rename(target)
    else:
        target.hardlink_to(source)
        source.unlink()


def temporary_sibling(path: Path) -> Path:
    """Return a name beside `path` that no other writer uses and `remove_leftovers` knows."""
    unique = f"{os.getpid():x}-{os.urandom(4).hex()}-{next(_serial):x}"
    return path.with_name(f".{path.name}.{unique}.tmp")


def remove_leftovers(directory: Path) -> int:
    """Remove what interrupted writers left directly in `directory`; return how many files.

    Only for the one who holds the run's lock: another writer's file looks the same.
    """
    leftovers = [path for path in directory.glob(".*.tmp") if path.is_file()]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


@contextmanager
def store_errors(path: Path) -> Generator[None]:
    """Turn an operating-system error about `path` into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        raise store_error(error, path) from error


def store_error(error: OSError, path: Path) -> StoreError:
    """Return the StoreError for an operating-system error about `path`."""
    place = str(error.filename or path)
    if error.errno in _NO_SPACE:
        return StoreError(
            "the disk is full",
            code="E_STORE_NO_SPACE",
            where=place,
            found=error.strerror or "",
            fix="free space on this file system, then resume; nothing was left half written",
        )
    return StoreError(
        "the store cannot be read or written",
        code="E_STORE_IO",
        where=place,
        found=error.strerror or str(error),
        fix="check permissions and the health of the disk; nothing was deleted",
    )


@functools.cache
def _libc_function(name: str) -> Callable[..., int] | None:
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), name)
    except (OSError, AttributeError):
        return None
    function.restype = ctypes.c_int
    return function
