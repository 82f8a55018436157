"""A bundle: a manifest of paths that is itself a blob.

A tree is a tuple of entries; `make_tree` is the only way to get one from loose entries, so that
every tree is sorted, unambiguous and safe to write below some directory. The manifest is canonical
JSON with a type field: no other document of this program can have the same digest.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from xgent_evolve.canonical import Json, canonical_bytes, digest_bytes, path_bytes, path_text
from xgent_evolve.errors import InvalidError, StoreError
from xgent_evolve.ids import Digest

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging

BUNDLE_TYPE = "xgent-evolve/bundle/1"
_MODES = {"file": {0o644, 0o755}, "link": {0o777}, "dir": {0o755}}


class Arrival(NamedTuple):
    """Bytes that were read for a store."""

    digest: Digest
    size: int
    """Bytes."""
    staged: bool
    """Whether they wait in the staging; otherwise the store has them already."""
    place: str
    """Where they came from, for messages."""
    read: Callable[[], bytes]
    """Reads them again where they came from; for a store that keeps nothing itself."""


class Blobs(Protocol):
    """Where bytes go by hash: a durable store, or memory when nothing may be written."""

    def put(self, content: bytes) -> Digest:
        """Keep `content` and return its digest."""
        ...

    def put_many(self, contents: Sequence[bytes]) -> list[Digest]:
        """Keep all of `contents` at the price of one barrier; return the digests in order."""
        ...

    def put_manifest(self, content: bytes) -> Digest:
        """Keep a bundle's manifest and return its digest; `get` and `has` find it too."""
        ...

    def gathering(self) -> AbstractContextManager[None]:
        """Make what the block puts and receives durable at its end, all at once."""
        ...

    def staging(self) -> Staging | None:
        """Return a place for many new blobs; None when nothing is to be written."""
        ...

    def receive(self, staging: Staging | None, arrivals: Iterable[Arrival]) -> None:
        """Take what was read and staged, at the price of two barriers."""
        ...

    def get(self, digest: Digest) -> bytes:
        """Return the verified bytes; raise StoreError when absent or damaged."""
        ...

    def has(self, digest: Digest, size: int | None = None) -> bool:
        """Say whether the bytes are there, by name and `size` (bytes) alone."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a bundle."""

    path: str
    """Relative path in text form (see `canonical.path_text`), `/` between the parts."""
    kind: Literal["file", "link", "dir"]
    mode: int
    """0o644 or 0o755 for a file, 0o777 for a link, 0o755 for a directory."""
    blob: Digest | None = None
    """Content of a file."""
    sha256: str | None = None
    """The same content's SHA-256, in hexadecimal: what a host without BLAKE3 can check."""
    size: int = 0
    """Bytes of a file."""
    target: str | None = None
    """Target of a link, in text form."""


type Tree = tuple[Entry, ...]
"""Entries with distinct paths, sorted by the bytes of the path."""


def file_entry(path: str, content: bytes, *, executable: bool = False) -> Entry:
    """Return the entry of a file with that content; the content itself is not kept."""
    return Entry(
        path=path,
        kind="file",
        mode=0o755 if executable else 0o644,
        blob=digest_bytes(content),
        sha256=hashlib.sha256(content).hexdigest(),
        size=len(content),
    )


def link_entry(path: str, target: str) -> Entry:
    """Return the entry of a symbolic link; `target` is in text form."""
    return Entry(path=path, kind="link", mode=0o777, target=target)


def make_tree(entries: Iterable[Entry]) -> Tree:
    """Sort entries into a tree.

    Raises:
        InvalidError: E_BUNDLE_PATH: a path is unsafe or not in its one text form, occurs twice, or
            lies below something that is not a directory.

    """
    tree = tuple(sorted(entries, key=lambda entry: path_bytes(entry.path)))
    kinds: dict[str, str] = {}
    for entry in tree:
        if not is_safe_path(entry.path):
            raise _path_error(entry.path, "the path is not a safe relative path")
        if entry.path in kinds:
            raise _path_error(entry.path, "the path occurs twice")
        kinds[entry.path] = entry.kind
    for entry in tree:
        for parent in parents(entry.path):
            if kinds.get(parent, "dir") != "dir":
                raise _path_error(entry.path, f"{parent} is a {kinds[parent]}, not a directory")
    return tree


def parents(path: str) -> list[str]:
    """Return the directories above a path, the nearest last, without the root."""
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def is_safe_path(path: str) -> bool:
    """Say whether a text-form path is relative, stays below its root and has one spelling."""
    return (
        all(part not in {"", ".", ".."} for part in path.split("/"))
        and "\0" not in path
        and path_text(path_bytes(path)) == path
    )


def link_stays_inside(path: str, target: str) -> bool:
    """Say whether a link at `path` points below the tree's root, going by the text alone."""
    if not target or target.startswith("/") or "\0" in target:
        return False
    destination = link_destination(path, target)
    return destination != ".." and not destination.startswith("../")


def link_destination(path: str, target: str) -> str:
    """Return the path that a link at `path` means, by its text; outside it starts with `..`."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), target))


def tree_size(tree: Tree) -> int:
    """Return the bytes of all files of a tree; equal content counts each time."""
    return sum(entry.size for entry in tree)


def bundle_bytes(tree: Tree) -> bytes:
    """Return the manifest of a tree: canonical JSON that names its own type."""
    entries: list[Json] = [_entry_document(entry) for entry in tree]
    return canonical_bytes({"type": BUNDLE_TYPE, "entries": entries})


def put_bundle(blobs: Blobs, tree: Tree) -> Digest:
    """Keep the manifest of a tree and return the bundle's digest.

    The files' contents must have been put before: a manifest never refers to what may be lost.

    Raises:
        StoreError: E_STORE_MISSING: a file's content is not in `blobs`.

    """
    for entry in tree:
        if entry.blob is not None and not blobs.has(entry.blob, entry.size):
            raise StoreError(
                "a bundle refers to bytes that are not stored",
                code="E_STORE_MISSING",
                where=entry.path,
                expected=f"{entry.blob} with {entry.size} bytes",
                fix="this is a defect of xgent-evolve; please report it",
            )
    return blobs.put_manifest(bundle_bytes(tree))


def load_bundle(blobs: Blobs, digest: Digest) -> Tree:
    """Return the tree of a bundle.

    Raises:
        StoreError: the manifest is missing, damaged, or not one of ours.

    """
    content = blobs.get(digest)
    try:
        tree = make_tree(_entries(content))
    except (ValueError, TypeError, KeyError, RecursionError, InvalidError) as error:
        raise _manifest_error(digest, str(error)) from error
    if bundle_bytes(tree) != content:
        raise _manifest_error(digest, "another document than bundle_bytes writes")
    return tree


def _entry_document(entry: Entry) -> Json:
    document: dict[str, Json] = {"path": entry.path, "kind": entry.kind, "mode": entry.mode}
    match entry.kind:
        case "file":
            document |= {"blob": entry.blob, "sha256": entry.sha256, "size": entry.size}
        case "link":
            document["target"] = entry.target
        case "dir":
            pass
    return document


def _entries(content: bytes) -> Iterator[Entry]:
    """Yield the entries of a manifest; one that is none is a ValueError or a relative of it."""
    for part in json.loads(content)["entries"]:
        entry = Entry(**part)
        for name, value in dict[str, object](part).items():
            if type(value) is not (int if name in {"mode", "size"} else str):
                raise TypeError(f"another type of {name} in {part!r}")
        if entry.mode not in _MODES[entry.kind]:
            raise ValueError(f"no such mode in {part!r}")
        yield entry


def _path_error(path: str, message: str) -> InvalidError:
    return InvalidError(
        message,
        code="E_BUNDLE_PATH",
        where=json.dumps(path, ensure_ascii=False),
        expected="distinct relative paths without `.` and `..`, files only at the ends",
        fix="rename or remove one of the files",
    )


def _manifest_error(digest: Digest, found: str) -> StoreError:
    return StoreError(
        "a stored bundle is not a bundle",
        code="E_STORE_CORRUPT",
        where=digest,
        expected=f"a manifest of type {BUNDLE_TYPE}",
        found=found,
        fix="restore the run directory from a copy",
    )
