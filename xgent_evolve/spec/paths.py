"""Relative paths of a JobSpec: which are safe, and which lies within which.

A safe path names exactly one place below its root whoever reads it: no root of its own, no `.`
or `..`, no empty parts, no backslashes, no control characters, nothing of Git's own storage.
Paths in a JobSpec are plain text; `%` has no meaning in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")

_PART = r"(?:\.{0,2}[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*|\.{3,}[^/\\\x00-\x1f\x7f]*)"
SAFE_PATH_PATTERN = rf"^{_PART}(/{_PART})*$"
"""What a JSON Schema can say about a safe path; `unsafe_reason` says the rest."""


def unsafe_reason(path: str) -> str | None:
    """Return why `path` is not a safe relative path, or None when it is one."""
    if not path:
        return "the path is empty"
    if control := _CONTROL.search(path):
        return f"the path holds the control character U+{ord(control[0]):04X}"
    if "\\" in path:
        return "the path holds a backslash"
    if path.startswith("/"):
        return "the path is absolute"
    if path == "~" or path.startswith("~/"):
        return "the path starts at a home directory"
    if len(path.encode("utf-8", "surrogatepass")) > MAX_PATH_BYTES:
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_unsafe_part, path.split("/"))), None)


def _unsafe_part(part: str) -> str | None:
    if not part:
        return "the path has an empty part"
    if part in {".", ".."}:
        return f"the path has the part {part!r}"
    if part.casefold() == ".git":
        return "the path leads into Git's own storage"
    if len(part.encode("utf-8", "surrogatepass")) > MAX_NAME_BYTES:
        return f"the path has a part that is longer than {MAX_NAME_BYTES} bytes"
    return None


def within(path: str, root: str) -> bool:
    """Return whether the safe path `path` is `root` or lies below it."""
    return path == root or path.startswith(f"{root}/")


def covered(path: str, roots: Iterable[str]) -> bool:
    """Return whether `path` is or lies below one of `roots`; quick for a set of them."""
    if isinstance(roots, Set):
        return not roots.isdisjoint(ancestors(path))
    return any(within(path, root) for root in roots)


def ancestors(path: str) -> Iterator[str]:
    """Yield `path` and every directory above it, the nearest first; not the root itself."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def overlaps(left: str, right: str) -> bool:
    """Return whether one of the two paths is or lies below the other."""
    return within(left, right) or within(right, left)


class Places:
    """Paths among which overlapping ones are found quickly."""

    def __init__(self, paths: Iterable[str]) -> None:
        """Remember `paths`; of equal ones the first."""
        self._index: dict[str, int] = {}
        self._above: dict[str, int] = {}
        for index, path in enumerate(paths):
            self._index.setdefault(path, index)
            for directory in ancestors(path):
                self._above.setdefault(directory, index)

    def find_overlap(self, path: str) -> int | None:
        """Return the index of a path that is, holds or lies below `path`; None without one."""
        for directory in ancestors(path):
            if directory in self._index:
                return self._index[directory]
        return self._above.get(path)


def last_name(path: str) -> str:
    """Return the last part of a safe path."""
    return path.rsplit("/", 1)[-1]
