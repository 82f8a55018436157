"""What an adoption changes, and what of it no longer fits. Pure (requirement J2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.ids import Digest


@dataclass(frozen=True, slots=True)
class FileState:
    """A regular file as far as an adoption cares: its bytes and whether it may be executed."""

    digest: Digest
    executable: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; None where there is no file."""

    path: str
    """Path in the repository, in text form."""
    before: FileState | None
    after: FileState | None


@dataclass(frozen=True, slots=True)
class Observed:
    """What lies at a path now."""

    kind: Literal["absent", "file", "link", "directory", "special"]
    state: FileState | None = None
    """For a file."""
    read_only: bool = False
    """The owner may not write the file."""
    links: int = 1
    """Names that the file has on its file system."""
    behind_link: bool = False
    """A directory on the way is a link; nothing was looked at behind it."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why one file cannot be changed."""

    path: str
    code: Literal["E_APPLY_CONFLICT", "E_APPLY_LINK", "E_APPLY_READONLY"]
    expected: str
    found: str


def find_conflicts(changes: Sequence[Change], now: Mapping[str, Observed]) -> list[Conflict]:
    """Return what stands in the way, in the order of `changes`; nothing for a free way.

    The comparison is with the bytes, the kind and the executable bit on disk, never with what Git
    says about them.
    """
    found = (_conflict(change, now[change.path]) for change in changes)
    return [conflict for conflict in found if conflict is not None]


def find_warnings(changes: Sequence[Change], now: Mapping[str, Observed]) -> list[str]:
    """Return what a person should know although nothing stands in the way."""
    return [
        f"W_APPLY_HARD_LINK: {change.path} has {now[change.path].links} names; "
        "the others keep the old text"
        for change in changes
        if now[change.path].kind == "file" and now[change.path].links > 1
    ]


def already_adopted(changes: Sequence[Change], now: Mapping[str, Observed]) -> bool:
    """Say whether every file is already as the plan wants it."""
    return all(_is(now[change.path], change.after) for change in changes)


def _conflict(change: Change, now: Observed) -> Conflict | None:
    expected = _words(change.before)
    if now.behind_link or now.kind == "link":
        found = "a directory on the way is a link" if now.behind_link else "a symbolic link"
        return Conflict(change.path, "E_APPLY_LINK", expected, found)
    if not _is(now, change.before):
        return Conflict(change.path, "E_APPLY_CONFLICT", expected, _found(now))
    if now.read_only:
        return Conflict(change.path, "E_APPLY_READONLY", "a file that its owner may write", "0444")
    return None


def _is(now: Observed, state: FileState | None) -> bool:
    if state is None:
        return now.kind == "absent" and not now.behind_link
    return now.kind == "file" and now.state == state


def _found(now: Observed) -> str:
    return _words(now.state) if now.kind in ("absent", "file") else f"a {now.kind}"


def _words(state: FileState | None) -> str:
    if state is None:
        return "no file"
    return f"{state.digest}{', executable' if state.executable else ''}"
