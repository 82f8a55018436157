"""The bytes on disk, each file read once, from one descriptor, and not through any link.

What a file holds is decided by the disk, not by Git's view of it (no filter, no line-end rule). A
file that changes while it is read, a directory that changes between the first look at it and the
last, and anything that is not a file or a link, is refused with its name: a frozen tree never
mixes two states (rule R5).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, NamedTuple, Self

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
class Link:
    """A symbolic link as it is on disk."""

    target: str
    """In text form."""


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that is being read."""

    place: str
    """Its path, for messages."""
    executable: bool
    """Whether the owner may execute it."""
    size: int
    """Bytes, when it was opened."""
    descriptor: int

    def pieces(self, piece_bytes: int = _CHUNK) -> Iterator[bytes]:
        """Return the content in pieces, from the start; more than `size` bytes is a race.

        Raises:
            DriftError: E_FREEZE_RACE: there are more or fewer bytes than `size`.

        """
        count = 0
        while count <= self.size:
            wanted = min(self.size - count + 1, piece_bytes)
            piece = os.pread(self.descriptor, wanted, count)
            count += len(piece)
            if piece and count <= self.size:
                yield piece
            if len(piece) < wanted:
                break
        if count != self.size:
            raise changed(self.place, f"{self.size} bytes", f"{count} bytes")


class _OpenDirectory(NamedTuple):
    name: bytes
    descriptor: int


class DiskReader:
    """Reads below one directory; a context manager that holds it open.

    The directories on the way to the last path stay open, so paths are best asked for in order.
    """

    def __init__(self, root: Path) -> None:
        """Open the directory `root`; links on the way to it are the caller's choice."""
        self.root = root
        self._descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._open: list[_OpenDirectory] = []
        self._seen = {b"": _directory_state(self._descriptor)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave(0)
        os.close(self._descriptor)

    def kind(self, path: str) -> Literal["file", "link", "dir", "other"] | None:
        """Say what lies at `path`; None when nothing does, or only behind a link."""
        found = self._enter(path)
        if found is None:
            return None
        directory, name = found
        try:
            mode = os.lstat(name, dir_fd=directory).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(mode):
            return "link"
        if stat.S_ISDIR(mode):
            return "dir"
        return "file" if stat.S_ISREG(mode) else "other"

    @contextmanager
    def opened(self, path: str) -> Generator[OpenFile | Link | None]:
        """Yield the file or link at `path`; None when nothing is there, or a directory.

        Raises:
            DriftError: E_FREEZE_RACE: it changed before the block ended.
            RefusedError: E_FREEZE_SPECIAL_FILE: a pipe, socket or device;
                E_FREEZE_UNREADABLE: no permission.

        """
        found = self._enter(path)
        if found is None:
            yield None
            return
        descriptor = -1
        try:
            opened, before, descriptor = self._open_in(*found, path)
            yield opened
            if before is not None:
                directory, name = found
                after = os.lstat(name, dir_fd=directory) if descriptor < 0 else os.fstat(descriptor)
                require_unchanged(before, after, self.place(path))
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def read(self, path: str) -> bytes | None:
        """Return the whole content of the file at `path`; None when there is no file.

        Raises:
            DriftError, RefusedError: as for `opened`.

        """
        with self.opened(path) as found:
            return b"".join(found.pieces()) if isinstance(found, OpenFile) else None

    def walk(self, path: str) -> Iterator[str]:
        """Return the paths of everything but directories below the directory `path`, sorted.

        Raises:
            RefusedError: E_FREEZE_NESTED_REPO: there is a repository below;
                E_FREEZE_UNREADABLE: a directory cannot be entered.

        """
        if self._enter(f"{path}/.") is None:
            raise _unreadable("directory", self.place(path), "not there any more, or a link")
        with os.scandir(self._top()) as found:
            names = sorted(
                (os.fsencode(item.name), item.is_dir(follow_symlinks=False)) for item in found
            )
        if is_repository({name for name, _ in names}):
            raise nested_repository(self.place(path))
        for name, is_directory in names:
            below = f"{path}/{path_text(name)}"
            if is_directory:
                yield from self.walk(below)
            else:
                yield below

    def require_still(self) -> None:
        """Compare every directory that was entered with its state at that time.

        Raises:
            DriftError: E_FREEZE_RACE: names came, went or were swapped meanwhile.

        """
        self._leave(0)
        for path, state in sorted(self._seen.items()):
            try:
                found = self._enter(path_text(path + b"/.").removeprefix("/"))
            except RefusedError:
                found = None
            if found is None or _directory_state(found[0]) != state:
                place = self.place(path_text(path)).rstrip("/")
                raise changed(place, "the same names from beginning to end", "a change meanwhile")

    def place(self, path: str) -> str:
        """Return a path as a person reads it."""
        return f"{self.root}/{path}"

    def _enter(self, path: str) -> tuple[int, bytes] | None:
        """Open the directory of `path`, following no link; None when there is no such one.

        Returns its descriptor, good until the next call, and the last name.
        """
        *parts, name = path_bytes(path).split(b"/")
        depth = 0
        while depth < min(len(parts), len(self._open)) and self._open[depth].name == parts[depth]:
            depth += 1
        self._leave(depth)
        for part in parts[depth:]:
            try:
                descriptor = os.open(part, _DIRECTORY, dir_fd=self._top())
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                raise _unreadable("directory", self.place(path), error.strerror) from error
            self._open.append(_OpenDirectory(part, descriptor))
            opened = b"/".join(item.name for item in self._open)
            if opened not in self._seen:
                self._seen[opened] = _directory_state(descriptor)
        return self._top(), name

    def _top(self) -> int:
        return self._open[-1].descriptor if self._open else self._descriptor

    def _leave(self, depth: int) -> None:
        while len(self._open) > depth:
            os.close(self._open.pop().descriptor)

    def _open_in(
        self, directory: int, name: bytes, path: str
    ) -> tuple[OpenFile | Link | None, os.stat_result | None, int]:
        """Return what is there, its state, and the descriptor of a file (-1 for a link)."""
        try:
            seen = os.lstat(name, dir_fd=directory)
            kind = stat.S_IFMT(seen.st_mode)
            if kind == stat.S_IFDIR:
                return None, None, -1
            if kind == stat.S_IFLNK:
                return Link(path_text(os.readlink(name, dir_fd=directory))), seen, -1
            if kind == stat.S_IFREG:
                descriptor = os.open(name, _FILE, dir_fd=directory)
                executable = bool(seen.st_mode & stat.S_IXUSR)
                opened = OpenFile(self.place(path), executable, seen.st_size, descriptor)
                return opened, seen, descriptor
        except FileNotFoundError:
            return None, None, -1
        except OSError as error:
            raise _unreadable("file", self.place(path), error.strerror) from error
        raise RefusedError(
            f"{_SPECIAL.get(kind, 'something special')} cannot be frozen",
            code="E_FREEZE_SPECIAL_FILE",
            where=self.place(path),
            expected="a file, a link or a directory",
            fix="remove it, or leave it out",
        )


def is_repository(names: set[bytes]) -> bool:
    """Say whether a directory with these names is a Git repository, with or without a tree."""
    return any(name.lower() == b".git" for name in names) or {b"HEAD", b"objects", b"refs"} <= names


def require_unchanged(before: os.stat_result, after: os.stat_result, place: str) -> None:
    """Raise DriftError (E_FREEZE_RACE) unless both describe one state of one file."""
    if _state(before) != _state(after):
        raise changed(
            place,
            f"{before.st_size} bytes, unchanged from beginning to end",
            f"{after.st_size} bytes, changed meanwhile",
        )


def changed(place: str, expected: str, found: str) -> DriftError:
    """Return the refusal of what did not stand still."""
    return DriftError(
        "a file or directory changed while it was frozen",
        code="E_FREEZE_RACE",
        where=place,
        expected=expected,
        found=found,
        fix="stop whatever writes there (an editor, a build, a watcher), then repeat",
    )


def nested_repository(place: str) -> RefusedError:
    """Return the refusal of a repository inside what is to be frozen."""
    return RefusedError(
        "there is another Git repository inside",
        code="E_FREEZE_NESTED_REPO",
        where=place,
        found="a .git of its own, a submodule, or a repository without a working tree",
        fix="list narrower paths, or move it out: its history and state cannot be frozen here",
    )


def _unreadable(kind: str, place: str, found: str | None) -> RefusedError:
    return RefusedError(
        f"a {kind} cannot be read",
        code="E_FREEZE_UNREADABLE",
        where=place,
        found=found or "",
        fix="make it readable and no link, or leave it out",
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


def _directory_state(descriptor: int) -> tuple[int, ...]:
    return _state(os.fstat(descriptor))
