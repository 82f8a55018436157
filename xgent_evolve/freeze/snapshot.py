"""A snapshot: the frozen files of one tree, by path, and what is cut out of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import RefusedError
from xgent_evolve.freeze.disk import Found
from xgent_evolve.spec.paths import within
from xgent_evolve.store.bundles import (
    Blobs,
    Entry,
    file_entry,
    link_destination,
    link_entry,
    parents,
)

_BATCH_BYTES = 32 << 20
_BATCH_FILES = 2048
_LFS_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:[a-z0-9.-]+ [^\n]*\n)*oid sha256:"
)
_LFS_POINTER_BYTES = 1024
_MOST_LINKS = 40


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Frozen files and links by path; their contents are in a blob store."""

    origin: str
    """Where it was taken, for messages."""
    entries: dict[str, Entry]

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


def keep(found: Iterable[Found], blobs: Blobs) -> dict[str, Entry]:
    """Put the contents of what was found into `blobs`, a batch at a time; return the entries."""
    entries: dict[str, Entry] = {}
    batch: list[bytes] = []
    size = 0
    for item in found:
        if item.kind == "link":
            entries[item.path] = link_entry(item.path, path_text(item.content))
            continue
        entries[item.path] = file_entry(item.path, item.content, executable=item.executable)
        batch.append(item.content)
        size += len(item.content)
        if size > _BATCH_BYTES or len(batch) >= _BATCH_FILES:
            blobs.put_many(batch)
            batch, size = [], 0
    blobs.put_many(batch)
    return dict(sorted(entries.items(), key=lambda pair: path_bytes(pair[0])))


def require_distinct_names(paths: Iterable[str], origin: str) -> None:
    """Raise RefusedError (E_FREEZE_NAME_COLLISION) when a file system could fold two names.

    Two names fold together when they are equal after Unicode normalisation and without case.
    """
    spelled: dict[str, str] = {}
    for path in paths:
        for name in (*parents(path), path):
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


def require_fetched(item: Found, origin: str) -> None:
    """Raise RefusedError (E_FREEZE_LFS_POINTER) for an LFS file whose content is not here."""
    if len(item.content) <= _LFS_POINTER_BYTES and _LFS_POINTER.match(item.content):
        raise RefusedError(
            "a file is only a Git LFS pointer",
            code="E_FREEZE_LFS_POINTER",
            where=f"{origin}/{item.path}",
            expected="the file's content",
            found=f"a pointer of {len(item.content)} bytes",
            fix="fetch it with: git lfs pull, or leave it out of source.paths",
        )


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _destination(entry: Entry) -> str:
    return link_destination(entry.path, entry.target or "")
