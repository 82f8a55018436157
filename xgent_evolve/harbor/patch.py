"""A delivery as text: each path with what was there before and what is there now. Pure.

Text is compared line by line; everything else is described. What is compared is bounded, so that a
delivery of any size is described in little time; nothing is left out without being counted.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.harbor.artifacts import Delivery
from xgent_evolve.harbor.request import Change, FileFact

type Mark = Literal["+", "-", " ", "@"]
"""Added, removed, the same on both sides, and a heading that names line numbers."""

type OldContent = Callable[[str, FileFact], bytes | None]
"""Returns a path's bytes before the agent, or None when nobody kept them."""
type NewContent = Callable[[FileFact], bytes]
"""Returns a path's bytes after the agent."""

MAX_TEXT_BYTES = 512 * 1024
"""A larger file is described and not compared."""
MAX_COMPARED_LINES = 3000
"""When more lines than this differ, one side is shown removed and the other added."""
CONTEXT_LINES = 3


@dataclass(frozen=True, slots=True)
class PatchLine:
    """One line of a comparison."""

    mark: Mark
    text: str
    """Without its line end."""


@dataclass(frozen=True, slots=True)
class PathPatch:
    """What became of one path."""

    path: str
    action: Literal["added", "deleted", "changed", "refused"]
    notes: tuple[str, ...] = ()
    """What lines cannot say: modes, links, why there are no lines."""
    lines: tuple[PatchLine, ...] = ()
    added: int = 0
    """Lines added."""
    removed: int = 0
    """Lines removed."""


def read_patch(delivery: Delivery, old: OldContent, new: NewContent) -> list[PathPatch]:
    """Return what became of every path of a delivery, in its order."""
    found = [_path_patch(change, old, new) for change in delivery.changes]
    for item in delivery.refused:
        note = f"{item.size:,} bytes are above the limit for a delivered file; they were not kept"
        found.append(PathPatch(item.path, "refused", (note,)))
    return found


def _path_patch(change: Change, old: OldContent, new: NewContent) -> PathPatch:
    before, after = change.before, change.after
    action = "added" if before is None else "deleted" if after is None else "changed"
    notes = [*_kind_notes(before, after)]
    left = right = b""
    if before is not None and before.kind == "file":
        kept = old(change.path, before)
        if kept is None and (after is None or before.sha256 != after.sha256):
            notes.append(
                f"the {before.size:,} bytes before are part of the image and were not captured"
            )
        left = kept or b""
    if after is not None and after.kind == "file":
        same = before is not None and before.sha256 == after.sha256
        right = left if same else new(after)
    left_text, right_text = _text_of(left), _text_of(right)
    if left_text is None or right_text is None:
        notes.append(_not_text(left, right))
        return PathPatch(change.path, action, tuple(notes))
    lines = tuple(_compared(left_text, right_text))
    return PathPatch(
        change.path,
        action,
        tuple(notes),
        lines,
        added=sum(line.mark == "+" for line in lines),
        removed=sum(line.mark == "-" for line in lines),
    )


def _kind_notes(before: FileFact | None, after: FileFact | None) -> Iterator[str]:
    for side, fact in (("before", before), ("now", after)):
        if fact is not None and fact.kind == "link":
            yield f"{side} a link to {fact.target}"
        elif fact is not None and fact.kind == "dir":
            yield f"{side} a directory"
    if before is None and after is not None and after.kind == "file" and after.mode & 0o111:
        yield f"mode {after.mode:o}: executable"
    if before is not None and after is not None and before.mode != after.mode:
        yield f"mode {before.mode:o} became {after.mode:o}"


def _text_of(content: bytes) -> list[str] | None:
    """Return the lines of a text file; None for other bytes, or for too many."""
    if len(content) > MAX_TEXT_BYTES or b"\x00" in content:
        return None
    try:
        return content.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None


def _not_text(left: bytes, right: bytes) -> str:
    sizes = f"{len(left):,} bytes before, {len(right):,} now"
    if max(len(left), len(right)) > MAX_TEXT_BYTES:
        return f"too large to be compared by lines: {sizes}"
    return f"not UTF-8 text: {sizes}"


def _compared(left: Sequence[str], right: Sequence[str]) -> Iterator[PatchLine]:
    """Yield the difference with a few lines around it."""
    end = "\\ no newline at the end of the file"
    old, new = _with_end(left, end), _with_end(right, end)
    if old == new:
        return
    head = _equal_start(old, new)
    tail = _equal_start(old[head:][::-1], new[head:][::-1])
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(middle_old) + len(middle_new) > MAX_COMPARED_LINES:
        yield PatchLine("@", f"from line {head + 1}, as a whole")
        yield from (PatchLine("-", line) for line in middle_old)
        yield from (PatchLine("+", line) for line in middle_new)
        return
    start = max(0, head - CONTEXT_LINES)
    stop = max(0, tail - CONTEXT_LINES)
    window_old, window_new = old[start : len(old) - stop], new[start : len(new) - stop]
    matcher = difflib.SequenceMatcher(None, window_old, window_new, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        first, last = group[0], group[-1]
        before = _range(start + first[1], start + last[2])
        after = _range(start + first[3], start + last[4])
        yield PatchLine("@", f"-{before} +{after}")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (PatchLine(" ", line) for line in window_old[i1:i2])
                continue
            yield from (PatchLine("-", line) for line in window_old[i1:i2])
            yield from (PatchLine("+", line) for line in window_new[j1:j2])


def _with_end(lines: Sequence[str], end: str) -> list[str]:
    """Return the lines, and the fact that the last one is not ended."""
    if lines == [""]:
        return []
    return list(lines[:-1]) if lines[-1] == "" else [*lines, end]


def _equal_start(left: Sequence[str], right: Sequence[str]) -> int:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return count


def _range(start: int, stop: int) -> str:
    return f"{start + 1 if stop > start else start},{stop - start}"
