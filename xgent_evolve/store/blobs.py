"""Content-addressed bytes on disk.

Layout below the root: `ab/<62 more digits>` holds the bytes whose BLAKE3 starts with `ab`, mode
0444; `staging/` holds what is being written; `quarantine/` what turned out damaged.

**A blob under its name is whole and durable** (rule R2): bytes are staged, made durable by a
barrier, and only then renamed; the directory is synced before `put` returns. A blob that another
process published may lack that last sync, so a hit syncs the directory too, once. Many files at
once come through `staging` and `receive`: two barriers for all of them, however many there are.

**Reading verifies** (R8): damaged bytes are moved to `quarantine/`, never deleted, and count as
absent from then on, so that putting the same bytes again heals the store. No answer comes from a
cache of file times (R6).
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import StoreError
from xgent_evolve.ids import Digest
from xgent_evolve.store.bundles import Arrival
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import (
    make_directory_durable,
    rename_no_replace,
    store_error,
    store_errors,
    sync_directory,
    sync_filesystem,
    write_new_file,
)
from xgent_evolve.store.staging import Staging

EMPTY = digest_bytes(b"")
"""Digest of no bytes: the only blob whose file may be empty (R1)."""

type _Gathered = dict[Path, tuple[Staging, dict[Digest, int]]]

_DIGEST = re.compile(r"blake3:([0-9a-f]{64})")
_ONE_BY_ONE = 16
"""Up to so many files, one fsync each is cheaper than syncing the whole file system."""


class BlobStore:
    """Durable blobs below a root directory; nothing is created before the first put."""

    def __init__(
        self,
        root: Path,
        manifests: Path | None = None,
        barrier: Callable[[Path], bool] = sync_filesystem,
    ) -> None:
        """Use the directory `root`; bundle manifests go below `manifests` when given.

        `barrier` makes all that was written durable, or says False when it cannot; then files
        and directories are synced one by one.
        """
        self.root = root
        self.manifests = manifests or root
        self._barrier = barrier
        self._synced: set[Path] = set()
        self._received: dict[Digest, int] = {}
        self._gathered: _Gathered | None = None
        self._serial = itertools.count()

    def put(self, content: bytes) -> Digest:
        """Keep `content` durably and return its digest.

        Raises:
            StoreError: the file system refused or is full; no half file has the final name.

        """
        return self._put_all(self.root, [content])[0]

    def put_many(self, contents: Sequence[bytes]) -> list[Digest]:
        """Keep all of `contents` with one barrier; return the digests in order.

        Raises:
            StoreError: as for `put`; some of the contents may have been kept.

        """
        return self._put_all(self.root, contents)

    def put_manifest(self, content: bytes) -> Digest:
        """Keep a bundle's manifest durably, below `manifests`; raise as `put` does."""
        return self._put_all(self.manifests, [content])[0]

    @contextmanager
    def gathering(self) -> Generator[None]:
        """Make what the block puts and receives durable at its end, all at once.

        Until then it can be read here, and lies under no final name. An exception in the block
        leaves nothing behind. One thread at a time; blobs get their names before manifests do.

        Raises:
            StoreError: the file system refused or is full.

        """
        if self._gathered is not None:
            raise RuntimeError("a store gathers once at a time")
        self._gathered = {root: (self._new_staging(root), {}) for root in self._roots()}
        gathered = self._gathered
        try:
            yield
            self._gathered = None
            for root, (staging, sizes) in gathered.items():
                with store_errors(root):
                    self._name_staged(staging, list(sizes))
                self._received.update(sizes)
        finally:
            self._gathered = None
            for staging, _ in gathered.values():
                staging.discard()

    def staging(self) -> Staging:
        """Return a place for many new blobs of one intake; `receive` gives them their names.

        Raises:
            StoreError: the file system refused.

        """
        if self._gathered is not None:
            return self._gathered[self.root][0]
        return self._new_staging(self.root)

    def _new_staging(self, root: Path) -> Staging:
        make_directory_durable(root / "staging")
        return Staging(root, f"{os.getpid():x}-{os.urandom(4).hex()}")

    def receive(self, staging: Staging | None, arrivals: Iterable[Arrival]) -> None:
        """Make staged bytes durable and name them, with one barrier before and one after.

        Bytes that were not staged must be in the store already.

        Raises:
            StoreError: the file system refused or is full; what was staged stays for `sweep`.

        """
        if staging is None:
            raise TypeError("a store on disk receives what was staged in it")
        arrived = {arrival.digest: arrival for arrival in arrivals}
        staged = [arrival.digest for arrival in arrived.values() if arrival.staged]
        with store_errors(self.root):
            if self._gathered is None:
                self._name_staged(staging, staged)
            held = arrived.keys() - set(staged) - self._received.keys()
            self._sync_names(self.root, {self._path(self.root, digest) for digest in held})
        sizes = self._received if self._gathered is None else self._gathered[self.root][1]
        sizes.update((digest, arrived[digest].size) for digest in staged)

    def get(self, digest: Digest) -> bytes:
        """Return the bytes, verified.

        Raises:
            StoreError: E_STORE_MISSING; E_STORE_CORRUPT (the file is now in quarantine);
                E_STORE_IO (the file was left where it is).

        """
        for root in self._roots():
            path = self._present_path(root, digest)
            with store_errors(path):
                try:
                    content = path.read_bytes()
                except FileNotFoundError:
                    continue
            if digest_bytes(content) == digest:
                return content
            raise self._corrupt(root, path, digest, len(content))
        raise StoreError(
            "stored bytes are missing",
            code="E_STORE_MISSING",
            where=str(self._path(self.root, digest)),
            fix="restore the run directory from a copy",
        )

    def has(self, digest: Digest, size: int | None = None) -> bool:
        """Say whether a blob of that name and `size` (bytes) exists; its bytes are not read.

        An empty file counts only as the blob of no bytes: crashed file systems leave such files.
        """
        for sizes in (self._received, *(sizes for _, sizes in (self._gathered or {}).values())):
            if digest in sizes:
                return size in {None, sizes[digest]}
        for root in self._roots():
            try:
                found = self._path(root, digest).lstat().st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise store_error(error, self._path(root, digest)) from error
            return (found > 0 or digest == EMPTY) and size in {None, found}
        return False

    def path(self, digest: Digest) -> Path:
        """Return the file of a blob that `digests` named."""
        paths = [self._path(root, digest) for root in self._roots()]
        return next((path for path in paths if path.exists()), paths[0])

    def digests(self) -> Iterator[Digest]:
        """Return the digest of every blob that has a file, in order; for a deep check."""
        for root in self._roots():
            for path in sorted(root.glob("[0-9a-f][0-9a-f]/*")):
                digest = f"blake3:{path.parent.name}{path.name}"
                if _DIGEST.fullmatch(digest):
                    yield Digest(digest)

    def sweep(self) -> int:
        """Remove what interrupted writers left; return how many files.

        Only for the one who holds the run's lock.
        """
        leftovers = [path for root in self._roots() for path in (root / "staging").rglob("*")]
        files = [path for path in leftovers if not path.is_dir()]
        for path in files:
            path.unlink(missing_ok=True)
        for path in reversed(leftovers):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
        return len(files)

    def _roots(self) -> tuple[Path, ...]:
        return (self.root,) if self.manifests == self.root else (self.root, self.manifests)

    def _path(self, root: Path, digest: Digest) -> Path:
        match = _DIGEST.fullmatch(digest)
        if match is None:
            raise StoreError(
                "not a digest",
                code="E_STORE_CORRUPT",
                where=str(root),
                expected="blake3: and 64 hexadecimal digits",
                found=repr(digest),
            )
        return root / match[1][:2] / match[1][2:]

    def _present_path(self, root: Path, digest: Digest) -> Path:
        """Return where the bytes of a digest lie now: gathered ones have no name yet."""
        if self._gathered is not None and digest in self._gathered[root][1]:
            return self._gathered[root][0].path(digest)
        return self._path(root, digest)

    def _gather(self, root: Path, digests: Sequence[Digest], contents: Sequence[bytes]) -> None:
        """Stage what the store does not have, for the end of the gathering."""
        staging, sizes = cast("_Gathered", self._gathered)[root]
        for digest, content in zip(digests, contents, strict=True):
            with store_errors(root):
                held = digest in self._received or self._holds(
                    root, self._path(root, digest), content
                )
            if not held:
                staging.write(digest, content)
                sizes[digest] = len(content)

    def _put_all(self, root: Path, contents: Sequence[bytes]) -> list[Digest]:
        digests = [digest_bytes(content) for content in contents]
        if self._gathered is not None:
            self._gather(root, digests, contents)
            return digests
        wanted = {
            self._path(root, digest): content
            for digest, content in zip(digests, contents, strict=True)
        }
        with store_errors(root):
            missing = {
                path: content
                for path, content in wanted.items()
                if not self._holds(root, path, content)
            }
            if missing:
                self._write(root, missing)
            self._sync_names(root, set(wanted) - self._synced)
        self._synced.update(wanted)
        return digests

    def _holds(self, root: Path, path: Path, content: bytes) -> bool:
        """Say whether the file has these bytes; one that has others goes to quarantine."""
        try:
            found = path.read_bytes()
        except FileNotFoundError:
            self._synced.discard(path)
            return False
        if found == content:
            return True
        self._quarantine(root, path)
        return False

    def _write(self, root: Path, contents: dict[Path, bytes]) -> None:
        """Stage all contents, make them durable, and only then give them their names."""
        staging = root / "staging"
        make_directory_durable(staging)
        prefix = f"{os.getpid():x}-{os.urandom(4).hex()}"
        staged = {path: staging / f"{prefix}-{next(self._serial):x}" for path in contents}
        one_by_one = len(contents) <= _ONE_BY_ONE
        try:
            for path, content in contents.items():
                write_new_file(staged[path], content, mode=0o444, sync=one_by_one)
            crash_point("blobs.barrier")
            if not one_by_one and not self._barrier(staging):
                for temporary in staged.values():
                    _sync_file(temporary)
            for path, content in contents.items():
                self._publish(root, path, staged[path], content)
        except BaseException:
            # A full disk gets its space back.
            for temporary in staged.values():
                with suppress(OSError):
                    temporary.unlink(missing_ok=True)
            raise

    def _publish(self, root: Path, path: Path, temporary: Path, content: bytes) -> None:
        """Give durable bytes their final name; an equal blob that came first stays."""
        make_directory_durable(path.parent)
        crash_point("blobs.publish")
        try:
            rename_no_replace(temporary, path)
        except FileExistsError:
            if self._holds(root, path, content):
                temporary.unlink()
            else:
                rename_no_replace(temporary, path)

    def _name_staged(self, staging: Staging, digests: Sequence[Digest]) -> None:
        """Give staged files their final names once all of them are durable."""
        if not digests:
            return
        root = staging.root
        crash_point("blobs.barrier")
        if not self._barrier(root):
            for digest in digests:
                _sync_file(staging.path(digest))
            for group in staging.groups():
                sync_directory(group)
        for group in staging.groups():
            crash_point("blobs.publish")
            try:
                rename_no_replace(group, root / group.name)
            except FileExistsError:
                self._publish_each(root, group)
        staging.discard()
        if not self._barrier(root):
            sync_directory(root)
            self._sync_names(root, {self._path(root, digest) for digest in digests})

    def _publish_each(self, root: Path, group: Path) -> None:
        """Name staged files in a directory that the store has already."""
        for staged in sorted(group.iterdir()):
            target = root / group.name / staged.name
            try:
                rename_no_replace(staged, target)
            except FileExistsError:
                # A damaged file of that name, or another writer's equal one: read and decide.
                self._settle(root, staged, target, Digest(f"blake3:{group.name}{staged.name}"))

    def _settle(self, root: Path, staged: Path, target: Path, digest: Digest) -> None:
        """Keep the file under `target` when its bytes are right, and the staged one otherwise."""
        if digest_bytes(target.read_bytes()) == digest:
            staged.unlink()
        else:
            self._quarantine(root, target)
            rename_no_replace(staged, target)

    def _sync_names(self, root: Path, paths: set[Path]) -> None:
        directories = sorted({path.parent for path in paths})
        if not directories:
            return
        crash_point("blobs.sync-names")
        if len(directories) <= _ONE_BY_ONE or not self._barrier(root):
            for directory in directories:
                sync_directory(directory)
        crash_point("blobs.kept")

    def _quarantine(self, root: Path, path: Path) -> Path | None:
        """Move a damaged file away; None when even that is refused (a read-only copy)."""
        self._synced.discard(path)
        self._received.pop(Digest(f"blake3:{path.parent.name}{path.name}"), None)
        target = root / "quarantine" / f"{path.parent.name}{path.name}-{os.urandom(4).hex()}"
        with suppress(OSError, StoreError):
            make_directory_durable(target.parent)
            path.rename(target)
            sync_directory(path.parent)
            return target
        return None

    def _corrupt(self, root: Path, path: Path, digest: Digest, size: int) -> StoreError:
        target = self._quarantine(root, path)
        kept = f"; kept as {target}" if target else ""
        return StoreError(
            "stored bytes are damaged",
            code="E_STORE_CORRUPT",
            where=str(path),
            expected=digest,
            found=f"{size} bytes with another hash{kept}",
            fix="restore this file from a copy of the run directory",
        )


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
