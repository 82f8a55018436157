"""The bytes on disk, each file read once, from one descriptor, and not through any link.

What a file holds is decided by the disk, not by Git's view of it (no filter, no line-end rule). A
file that changes while it is read, and anything that is not a file or a link, is refused with its
name: a frozen tree never mixes two states of one file (rule R5).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import DriftError, RefusedError

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_SPECIAL = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(frozen=True, slots=True)
class Found:
    """One file or link as it is on disk."""

    path: str
    """Path below the reader's root, in text form."""
    kind: Literal["file", "link"]
    executable: bool
    """Whether the owner may execute the file."""
    content: bytes
    """The file's bytes, or the link's target."""


class DiskReader:
    """Reads below one directory; a context manager that holds it open."""

    def __init__(self, root: Path) -> None:
        """Open the directory `root`; links on the way to it are the caller's choice."""
        self.root = root
        self._descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def kind(self, path: str) -> Literal["file", "link", "dir", "other"] | None:
        """Say what lies at `path`; None when nothing does, or only behind a link."""
        directory = self._open_parent(path)
        if directory is None:
            return None
        try:
            mode = os.lstat(_name(path), dir_fd=directory).st_mode
        except FileNotFoundError:
            return None
        finally:
            os.close(directory)
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "dir"
        return "file" if stat.S_ISREG(mode) else "other"

    def read(self, path: str) -> Found | None:
        """Return the file or link at `path`; None when nothing is there, or a directory.

        Raises:
            DriftError: E_FREEZE_RACE: it changed while it was read.
            RefusedError: E_FREEZE_SPECIAL_FILE: a pipe, socket or device;
                E_FREEZE_UNREADABLE: no permission.

        """
        directory = self._open_parent(path)
        if directory is None:
            return None
        try:
            return self._read_in(directory, path)
        except FileNotFoundError:
            return None
        except PermissionError as error:
            raise RefusedError(
                "a file cannot be read",
                code="E_FREEZE_UNREADABLE",
                where=self.place(path),
                found=error.strerror or "",
                fix="make it readable, or leave it out",
            ) from error
        finally:
            os.close(directory)

    def walk(self, path: str) -> Iterator[str]:
        """Return the paths of everything but directories below the directory `path`, sorted.

        Raises:
            RefusedError: E_FREEZE_NESTED_REPO: there is a `.git` below.

        """
        directory = os.open(path_bytes(path), _DIRECTORY, dir_fd=self._descriptor)
        try:
            with os.scandir(directory) as found:
                names = sorted((os.fsencode(item.name), item) for item in found)
            for name, item in names:
                if name.lower() == b".git":
                    raise nested_repository(self.place(path))
                below = f"{path}/{path_text(name)}"
                if item.is_dir(follow_symlinks=False):
                    yield from self.walk(below)
                else:
                    yield below
        finally:
            os.close(directory)

    def place(self, path: str) -> str:
        """Return a path as a person reads it."""
        return f"{self.root}/{path}"

    def _open_parent(self, path: str) -> int | None:
        """Open the directory of `path`, following no link; None when there is no such one."""
        current = os.dup(self._descriptor)
        for part in path_bytes(path).split(b"/")[:-1]:
            try:
                following = os.open(part, _DIRECTORY, dir_fd=current)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                raise RefusedError(
                    "a directory cannot be entered",
                    code="E_FREEZE_UNREADABLE",
                    where=self.place(path),
                    found=error.strerror or "",
                    fix="make it readable and no link, or leave it out",
                ) from error
            finally:
                os.close(current)
            current = following
        return current

    def _read_in(self, directory: int, path: str) -> Found | None:
        name = _name(path)
        seen = os.lstat(name, dir_fd=directory)
        kind = stat.S_IFMT(seen.st_mode)
        if kind == stat.S_IFDIR:
            return None
        if kind == stat.S_IFLNK:
            target = os.readlink(name, dir_fd=directory)
            require_unchanged(seen, os.lstat(name, dir_fd=directory), self.place(path))
            return Found(path, "link", executable=False, content=target)
        if kind != stat.S_IFREG:
            raise RefusedError(
                f"{_SPECIAL.get(kind, 'something special')} cannot be frozen",
                code="E_FREEZE_SPECIAL_FILE",
                where=self.place(path),
                expected="a file, a link or a directory",
                fix="remove it, or leave it out",
            )
        descriptor = os.open(name, _FILE, dir_fd=directory)
        try:
            before = os.fstat(descriptor)
            require_unchanged(seen, before, self.place(path))
            content = _read_all(descriptor)
            require_unchanged(before, os.fstat(descriptor), self.place(path), len(content))
        finally:
            os.close(descriptor)
        return Found(path, "file", bool(before.st_mode & stat.S_IXUSR), content)


def require_unchanged(
    before: os.stat_result, after: os.stat_result, place: str, size: int | None = None
) -> None:
    """Raise DriftError (E_FREEZE_RACE) unless both describe one state, of `size` bytes."""
    if _state(before) != _state(after) or size not in {None, after.st_size}:
        raise DriftError(
            "a file changed while it was frozen",
            code="E_FREEZE_RACE",
            where=place,
            expected=f"{before.st_size} bytes, unchanged from beginning to end",
            found=f"{after.st_size} bytes, changed meanwhile",
            fix="stop whatever writes there (an editor, a build, a watcher), then repeat",
        )


def nested_repository(place: str) -> RefusedError:
    """Return the refusal of a repository inside what is to be frozen."""
    return RefusedError(
        "there is another Git repository inside",
        code="E_FREEZE_NESTED_REPO",
        where=place,
        found="a .git of its own, or a submodule",
        fix="list narrower paths, or move it out: its history and state cannot be frozen here",
    )


def _state(found: os.stat_result) -> tuple[int, ...]:
    return (
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def _read_all(descriptor: int) -> bytes:
    chunks: list[bytes] = []
    while chunk := os.read(descriptor, _CHUNK):
        chunks.append(chunk)
    return b"".join(chunks)


def _name(path: str) -> bytes:
    return path_bytes(path).rpartition(b"/")[2]
