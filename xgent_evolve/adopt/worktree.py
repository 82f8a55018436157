"""The disk below one repository, touched name by name and never through a link.

A file is changed by exchanging it with a finished file beside it in one step of the kernel. What
came out is kept until the whole adoption is durable, and is compared once more: a compare-and-swap
without a moment in which a person's edit could be lost unseen.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from blake3 import blake3

from xgent_evolve.adopt.plan import FileState, Observed
from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import RefusedError
from xgent_evolve.ids import Digest
from xgent_evolve.store.durable import write_all

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NOREPLACE, _EXCHANGE = 1, 2
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_CHUNK = 1 << 20


class BehindLinkError(OSError):
    """A directory on the way to a path is a link, or no directory."""


class WorkTree:
    """One repository's top directory, held open; a context manager."""

    def __init__(self, root: Path) -> None:
        """Open the directory `root`; links on the way to it are the caller's choice."""
        self.root = root
        self.descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)

    def observe(self, path: str) -> Observed:
        """Return what lies at `path` now."""
        try:
            directory = self._open_parent(path)
        except FileNotFoundError:
            return Observed("absent")
        except BehindLinkError:
            return Observed("absent", behind_link=True)
        try:
            return _observe(directory, _name(path))
        finally:
            os.close(directory)

    def read(self, path: str) -> bytes:
        """Return the bytes of the regular file at `path`.

        Raises:
            OSError: there is no such file, or only behind a link.

        """
        directory = self._open_parent(path)
        try:
            descriptor = os.open(_name(path), _FILE, dir_fd=directory)
        finally:
            os.close(directory)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read()

    def make_directory(self, path: str) -> bool:
        """Make the directory `path`; return False when it is there already."""
        directory = self._open_parent(path)
        try:
            os.mkdir(_name(path), 0o777, dir_fd=directory)
            os.fsync(directory)
        except FileExistsError:
            return False
        finally:
            os.close(directory)
        return True

    def remove_directory(self, path: str) -> None:
        """Remove the directory `path` when it is empty; else leave it."""
        with suppress(OSError):
            directory = self._open_parent(path)
            try:
                os.rmdir(_name(path), dir_fd=directory)
            finally:
                os.close(directory)

    def stage(self, path: str, content: bytes, *, executable: bool, like: str | None) -> None:
        """Write a durable file at `path`, which must be free, with the mode of the file `like`.

        Owner and group are those of `like` too; without it, the umask decides.

        Raises:
            OSError: the file system refused, or the owner cannot be kept.

        """
        directory = self._open_parent(path)
        try:
            descriptor = os.open(
                _name(path),
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                0o777 if executable else 0o666,
                dir_fd=directory,
            )
            try:
                write_all(descriptor, content)
                if like is not None:
                    old = os.lstat(_name(like), dir_fd=directory)
                    if (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
                        os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, _mode(stat.S_IMODE(old.st_mode), executable=executable))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.fsync(directory)
        finally:
            os.close(directory)

    def exchange(self, one: str, other: str) -> None:
        """Let two files of one directory swap names in one step, durably."""
        self._rename(one, other, _EXCHANGE)

    def move(self, source: str, target: str) -> None:
        """Give a file another name in its directory, which must be free, durably.

        Raises:
            FileExistsError: something has that name.
            FileNotFoundError: there is no such file.

        """
        self._rename(source, target, _NOREPLACE)

    def remove(self, path: str) -> None:
        """Remove the file at `path` when there is one, durably."""
        with suppress(FileNotFoundError):
            directory = self._open_parent(path)
            try:
                os.unlink(_name(path), dir_fd=directory)
                os.fsync(directory)
            finally:
                os.close(directory)

    def _rename(self, source: str, target: str, flag: int) -> None:
        directory = self._open_parent(source)
        try:
            rename = ctypes.CDLL(None, use_errno=True).renameat2
            if rename(directory, _name(source), directory, _name(target), flag) != 0:
                number = ctypes.get_errno()
                if number in _UNSUPPORTED:
                    raise _no_exchange(self.root)
                raise OSError(number, os.strerror(number), f"{self.root}/{target}")
            os.fsync(directory)
        finally:
            os.close(directory)

    def _open_parent(self, path: str) -> int:
        current = os.dup(self.descriptor)
        for part in path_bytes(path).split(b"/")[:-1]:
            try:
                following = os.open(part, _DIRECTORY, dir_fd=current)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise BehindLinkError(error.errno, error.strerror, path) from error
                raise
            finally:
                os.close(current)
            current = following
        return current


def _observe(directory: int, name: bytes) -> Observed:
    try:
        found = os.lstat(name, dir_fd=directory)
    except FileNotFoundError:
        return Observed("absent")
    if stat.S_ISLNK(found.st_mode):
        return Observed("link")
    if stat.S_ISDIR(found.st_mode):
        return Observed("directory")
    if not stat.S_ISREG(found.st_mode):
        return Observed("special")
    descriptor = os.open(name, _FILE, dir_fd=directory)
    try:
        hasher = blake3()
        while chunk := os.read(descriptor, _CHUNK):
            hasher.update(chunk)
    finally:
        os.close(descriptor)
    state = FileState(
        Digest(f"blake3:{hasher.hexdigest()}"), executable=bool(found.st_mode & stat.S_IXUSR)
    )
    read_only = not found.st_mode & stat.S_IWUSR
    return Observed("file", state, read_only=read_only, links=found.st_nlink)


def _mode(mode: int, *, executable: bool) -> int:
    """Return a file's mode with its executable bits as wanted, where it may be read."""
    if executable == bool(mode & stat.S_IXUSR):
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _name(path: str) -> bytes:
    return path_bytes(path).rpartition(b"/")[2]


def _no_exchange(root: Path) -> RefusedError:
    return RefusedError(
        "this file system cannot exchange two files in one step",
        code="E_APPLY_FILE_SYSTEM",
        where=str(root),
        expected="renameat2 with RENAME_EXCHANGE (ext4, xfs, btrfs, tmpfs and others)",
        fix="nothing was changed; apply to a clone on a local disk, then bring the change over",
    )
