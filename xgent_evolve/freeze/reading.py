"""One file, read once: hashed, searched for secrets and staged in the same pass, whatever its size.

Nothing here knows of Git or of a JobSpec, so that a process that only reads starts fast.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from blake3 import blake3

from xgent_evolve.freeze.disk import DiskReader, Link, OpenFile
from xgent_evolve.freeze.secrets import Finding, SecretSearch, find_secrets
from xgent_evolve.ids import Digest

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging

WHOLE_BYTES = 1 << 20
"""Files up to this size are held in memory; larger ones pass through it in pieces."""
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_LFS_POINTER_BYTES = 1024


class Taken(NamedTuple):
    """One file or link, read."""

    path: str
    """Path below the reader's root, in text form."""
    kind: Literal["file", "link"]
    executable: bool = False
    """Whether the owner may execute the file."""
    size: int = 0
    """Bytes of the file."""
    blob: Digest = Digest("")
    """Digest of the file's bytes."""
    sha256: str = ""
    """The same bytes' SHA-256, in hexadecimal."""
    git_object: str = ""
    """The name that Git gives to these bytes, when it was asked for."""
    target: str = ""
    """Target of the link, in text form."""
    staged: bool = False
    """Whether the bytes wait in the staging; otherwise the store has them already."""
    lfs_pointer: bool = False
    """Whether the file only stands for content that Git LFS keeps elsewhere."""
    secrets: tuple[Finding, ...] = ()
    """What looks like a secret."""


def take(
    reader: DiskReader, path: str, staging: Staging | None, git_hash: str = ""
) -> Taken | None:
    """Read what lies at `path`; None when nothing does, or a directory.

    With `git_hash` (sha1 or sha256) Git's name for the bytes is computed too.

    Raises:
        DriftError: E_FREEZE_RACE: it changed while it was read.
        RefusedError: E_FREEZE_SPECIAL_FILE or E_FREEZE_UNREADABLE.
        StoreError: the file system refused or is full.

    """
    with reader.opened(path) as found:
        if found is None:
            return None
        if isinstance(found, Link):
            return Taken(path, "link", target=found.target)
        if found.size <= WHOLE_BYTES:
            taken = take_content(path, b"".join(found.pieces()), staging, git_hash)
        else:
            taken = _take_large(path, found, staging, git_hash)
        return taken._replace(executable=found.executable)


def take_content(
    path: str, content: bytes, staging: Staging | None = None, git_hash: str = ""
) -> Taken:
    """Hash, search and stage the content of a file that is not executable.

    Bytes that the store holds were searched when they came to it.

    Raises:
        StoreError: the file system refused or is full.

    """
    blob = Digest(f"blake3:{blake3(content).hexdigest()}")
    held = staging is not None and staging.holds(blob, len(content))
    if staging is not None and not held:
        staging.write(blob, content)
    return Taken(
        path,
        "file",
        size=len(content),
        blob=blob,
        sha256=hashlib.sha256(content).hexdigest(),
        git_object=git_object(content, git_hash) if git_hash else "",
        staged=staging is not None and not held,
        lfs_pointer=len(content) <= _LFS_POINTER_BYTES and is_lfs_pointer(content),
        secrets=() if held else find_secrets(path, content),
    )


def take_pieces(
    path: str, size: int, pieces: Iterable[bytes], staging: Staging | None, git_hash: str = ""
) -> Taken:
    """Hash, search and stage the content of a large file in one pass.

    Raises:
        StoreError: the file system refused or is full.

    """
    if staging is None:
        return _pass_through(path, size, pieces, git_hash)
    with staging.stream() as stream:
        taken = _pass_through(path, size, pieces, git_hash, stream.write)
        if not staging.holds(taken.blob, size):
            stream.keep(taken.blob)
            taken = taken._replace(staged=True)
    return taken


def is_lfs_pointer(content: bytes) -> bool:
    """Say whether a small file only names content that Git LFS keeps elsewhere."""
    return content.startswith(_LFS_POINTER) and b"\noid sha256:" in content


def git_object(content: bytes, git_hash: str) -> str:
    """Return the name that Git gives to a blob, by sha1 or sha256."""
    git = _git_start(len(content), git_hash)
    git.update(content)
    return git.hexdigest()


def _take_large(path: str, found: OpenFile, staging: Staging | None, git_hash: str) -> Taken:
    """Copy a large file, unless a first look shows that the store has it."""
    if staging is not None and not staging.is_first:
        known = _pass_through(path, found.size, found.pieces(), git_hash)
        if staging.holds(known.blob, found.size):
            return known
    return take_pieces(path, found.size, found.pieces(), staging, git_hash)


def _pass_through(
    path: str,
    size: int,
    pieces: Iterable[bytes],
    git_hash: str,
    write: Callable[[bytes], None] | None = None,
) -> Taken:
    strong, portable, search = blake3(), hashlib.sha256(), SecretSearch()
    git = _git_start(size, git_hash) if git_hash else None
    for piece in pieces:
        if write is not None:
            write(piece)
        strong.update(piece)
        portable.update(piece)
        search.feed(piece)
        if git is not None:
            git.update(piece)
    return Taken(
        path,
        "file",
        size=size,
        blob=Digest(f"blake3:{strong.hexdigest()}"),
        sha256=portable.hexdigest(),
        git_object=git.hexdigest() if git is not None else "",
        secrets=search.findings(),
    )


def _git_start(size: int, git_hash: str) -> hashlib._Hash:  # pyright: ignore[reportPrivateUsage]
    """Return Git's hash of a blob of `size` bytes before its first byte."""
    return hashlib.new(git_hash, b"blob %d\0" % size, usedforsecurity=False)
