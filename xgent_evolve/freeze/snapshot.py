"""A snapshot: the frozen files of one tree, by path, and what is cut out of it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import RefusedError
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.protocol import FrozenSource
from xgent_evolve.freeze.reading import Taken
from xgent_evolve.spec.paths import within
from xgent_evolve.store.bundles import (
    Arrival,
    Blobs,
    Entry,
    link_destination,
    link_entry,
    parents,
)

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging

_MOST_LINKS = 40
_MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Frozen files and links by path; their contents are in a blob store."""

    origin: str
    """Where it was taken, for messages."""
    entries: dict[str, Entry]
    difference: FrozenSource = field(default_factory=FrozenSource)
    """How it differs from the commit that it stands on."""

    def below(self, root: str) -> list[Entry]:
        """Return the entries at or below `root`, with the paths of this snapshot."""
        return [entry for path, entry in self.entries.items() if within(path, root)]

    def without(self, roots: Iterable[str]) -> list[Entry]:
        """Return the entries that are in none of `roots`."""
        dropped = tuple(roots)
        return [
            entry
            for path, entry in self.entries.items()
            if not any(within(path, root) for root in dropped)
        ]

    def subtree(self, root: str) -> list[Entry]:
        """Return the entries below `root` with paths relative to it, able to stand alone.

        A link that leaves `root` becomes a file with the frozen bytes it leads to.

        Raises:
            RefusedError: E_FREEZE_LINK_ESCAPE: such a link leads to no frozen file.

        """
        cut: list[Entry] = []
        for entry in self.below(root):
            path = entry.path.removeprefix(f"{root}/")
            if entry.kind == "link" and not within(_destination(entry), root):
                cut.append(replace(self.followed(entry), path=path))
            else:
                cut.append(replace(entry, path=path))
        return cut

    def followed(self, entry: Entry) -> Entry:
        """Return the file that an entry leads to, under the entry's own path.

        Raises:
            RefusedError: E_FREEZE_LINK_ESCAPE: it leads to no frozen file.

        """
        reached: Entry | None = entry
        for _ in range(_MOST_LINKS):
            if reached is None or reached.kind != "link":
                break
            reached = self.entries.get(_destination(reached))
        if reached is None or reached.kind != "file":
            raise RefusedError(
                "a link leads to something that is not frozen",
                code="E_FREEZE_LINK_ESCAPE",
                where=f"{self.origin}/{entry.path}",
                expected="a frozen file at the other end",
                found=f"-> {entry.target}",
                fix="list the file that it leads to, or replace the link by a copy",
            )
        return replace(reached, path=entry.path)


@contextmanager
def intake(blobs: Blobs) -> Generator[Staging | None]:
    """Yield the staging of one intake into `blobs`; an exception takes what was staged away."""
    staging = blobs.staging()
    try:
        yield staging
    except BaseException:
        if staging is not None:
            staging.discard()
        raise


def keep(
    taken: Iterable[Taken],
    origin: str,
    staging: Staging | None,
    blobs: Blobs,
    read: Callable[[str], bytes],
) -> dict[str, Entry]:
    """Let `blobs` receive what was taken; return the entries, sorted by the bytes of their paths.

    `read` reads a path again, for a store that keeps nothing itself; `origin` is for messages.

    Raises:
        StoreError: the file system refused or is full.

    """
    found = sorted(taken, key=lambda item: path_bytes(item.path))
    arrivals = (
        Arrival(
            item.blob, item.size, item.staged, f"{origin}/{item.path}", partial(read, item.path)
        )
        for item in found
        if item.kind == "file"
    )
    blobs.receive(staging, arrivals)
    return {item.path: _entry(item) for item in found}


def read_again(root: Path, path: str) -> bytes:
    """Return what the file at `path` below `root` holds now; nothing when it is gone."""
    with DiskReader(root) as reader:
        return reader.read(path) or b""


def require_distinct_names(paths: Iterable[str], origin: str) -> None:
    """Raise RefusedError (E_FREEZE_NAME_COLLISION) when a file system could fold two names.

    Two names fold together when they are equal after Unicode normalisation and without case.
    """
    spelled: dict[str, str] = {}
    seen: set[str] = set()
    for path in paths:
        for name in (path, *reversed(parents(path))):
            if name in seen:
                break
            seen.add(name)
            first = spelled.setdefault(_folded(name), name)
            if first != name:
                raise RefusedError(
                    "two names are one on file systems that fold case or Unicode forms",
                    code="E_FREEZE_NAME_COLLISION",
                    where=f"{origin}/{name}",
                    expected="names that differ in more than case or Unicode form",
                    found=f"{first!a} and {name!a}",
                    fix="rename one of them",
                )


def require_fetched(item: Taken, origin: str, allowed: Collection[str] = ()) -> None:
    """Raise RefusedError (E_FREEZE_LFS_POINTER) for an LFS file whose content is not here."""
    if item.lfs_pointer and item.path not in allowed:
        raise RefusedError(
            "a file is only a Git LFS pointer",
            code="E_FREEZE_LFS_POINTER",
            where=f"{origin}/{item.path}",
            expected="the file's content",
            found=f"a pointer of {item.size} bytes",
            fix="fetch it with: git lfs pull, leave it out of source.paths, or name it in"
            " source.allow_lfs_pointers",
        )


def require_no_secrets(
    taken: Iterable[Taken], origin: str, allowed: Collection[str] = (), prefix: str = ""
) -> None:
    """Raise RefusedError (E_FREEZE_SECRET) for what looks like a secret, by file, line and kind.

    `allowed` names files, as `prefix` and their path, that may leave the machine all the same.
    The value itself is in no message.
    """
    found = [
        (item.path, finding)
        for item in taken
        if prefix + item.path not in allowed
        for finding in item.secrets
    ]
    if found:
        shown = [f"{path}:{finding.line}: {finding.kind}" for path, finding in found[:_MOST_SHOWN]]
        more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        path, first = found[0]
        raise RefusedError(
            "what is to leave this machine holds what looks like a secret",
            code="E_FREEZE_SECRET",
            where=f"{origin}/{path}:{first.line}",
            expected="no credential in any file that is frozen",
            found=", ".join(shown) + more,
            fix="take it out and revoke it, or leave the file out; a harmless file may be named in"
            f" authority.allow_secrets_in: {prefix}{path}",
        )


def _entry(item: Taken) -> Entry:
    if item.kind == "link":
        return link_entry(item.path, item.target)
    mode = 0o755 if item.executable else 0o644
    return Entry(item.path, "file", mode, item.blob, item.sha256, item.size)


def _folded(name: str) -> str:
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _destination(entry: Entry) -> str:
    return link_destination(entry.path, entry.target or "")
