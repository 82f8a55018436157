"""Where new blobs wait: written by many, made durable by one barrier, named by one publisher.

`staging/<mark>/` has the layout of the store: `ab/<62 more digits>`. So several processes may stage
for one intake, equal bytes are written once, and where the store has no directory `ab` yet, the
whole directory gets its name at once.
"""

from __future__ import annotations

import functools
import os
import shutil
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from xgent_evolve.ids import Digest
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import store_errors, write_all

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_MODE = 0o444


class Staging:
    """The staged files of one intake into the store below `root`."""

    def __init__(self, root: Path, mark: str) -> None:
        """Stage below `root/staging/mark`."""
        self.root = root
        self.mark = mark
        self.directory = root / "staging" / mark
        self.is_first = not any(root.glob("[0-9a-f][0-9a-f]"))
        """Whether the store had no blob when the intake began."""
        self._store = os.fspath(root)
        self._staged = os.fspath(self.directory)
        self._serial = 0

    def path(self, digest: Digest) -> Path:
        """Return where the staged bytes of that digest lie."""
        return Path(self._path(digest))

    def holds(self, digest: Digest, size: int) -> bool:
        """Say whether the store has a file of that name and size (rule R1); it is not read."""
        if self.is_first:
            return False
        name = digest.removeprefix("blake3:")
        try:
            found = os.stat(f"{self._store}/{name[:2]}/{name[2:]}", follow_symlinks=False)
        except FileNotFoundError:
            return False
        return found.st_size == size and stat.S_ISREG(found.st_mode)

    def groups(self) -> Iterator[Path]:
        """Return the directories of staged files, sorted."""
        yield from sorted(self.directory.glob("[0-9a-f][0-9a-f]"))

    def discard(self) -> None:
        """Remove what this intake staged: a full disk gets its space back."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def write(self, digest: Digest, content: bytes) -> None:
        """Stage bytes of that digest, unless this intake has them already.

        Raises:
            StoreError: the file system refused or is full.

        """
        path = self._path(digest)
        crash_point("staging.write")
        with store_errors(self.root):
            try:
                descriptor = self._create(path)
            except FileExistsError:
                return
            try:
                write_all(descriptor, content)
            except BaseException:
                with suppress(OSError):
                    os.unlink(path)
                raise
            finally:
                os.close(descriptor)

    @contextmanager
    def stream(self) -> Generator[Stream]:
        """Yield a file for bytes whose digest is known only at their end; see `Stream.keep`.

        Raises:
            StoreError: the file system refused or is full.

        """
        self._serial += 1
        path = f"{self._staged}/stream-{os.getpid():x}-{self._serial:x}"
        with store_errors(self.root):
            stream = Stream(self, path, self._create(path))
            try:
                yield stream
            finally:
                os.close(stream.descriptor)
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def _path(self, digest: Digest) -> str:
        name = digest.removeprefix("blake3:")
        return f"{self._staged}/{name[:2]}/{name[2:]}"

    def _create(self, path: str) -> int:
        """Open a new file, in a directory that may be new too, with the mode of a blob."""
        try:
            descriptor = os.open(path, _NEW_FILE, _MODE)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(path, _NEW_FILE, _MODE)
        if _hides_bits():
            os.fchmod(descriptor, _MODE)
        return descriptor


class Stream:
    """A staged file that is being written."""

    def __init__(self, staging: Staging, path: str, descriptor: int) -> None:
        """Describe the open file; callers use `Staging.stream`."""
        self._staging = staging
        self._path = path
        self.descriptor = descriptor

    def write(self, piece: bytes) -> None:
        """Add bytes. Raises OSError, which `Staging.stream` turns into a StoreError."""
        write_all(self.descriptor, piece)

    def keep(self, digest: Digest) -> None:
        """Give what was written the name of its digest; unkept streams vanish."""
        target = self._staging.path(digest)
        target.parent.mkdir(exist_ok=True)
        os.rename(self._path, target)


@functools.cache
def _hides_bits() -> bool:
    """Say whether the process's umask would take bits of a blob's mode away."""
    mask = os.umask(0o077)
    os.umask(mask)
    return bool(mask & _MODE)
