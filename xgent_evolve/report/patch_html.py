"""A delivery as HTML: what became of each path, with marked lines for text.

Each line begins with `+`, `-` or a space, so nothing depends on a colour.
"""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.harbor.patch import Mark, PatchLine, PathPatch
from xgent_evolve.report.excerpt import cut, words

MOST_PATHS = 60
MOST_LINES = 600
"""About so many lines of one delivery are shown, shared by its paths."""
_KINDS: dict[Mark, str] = {"+": "added", "-": "removed", " ": "same", "@": "place"}
_WHERE = "the stored delivery has all of it"


def patch_html(patch: Sequence[PathPatch]) -> str:
    """Return a delivery; long ones without their end, long files without their middle."""
    if not patch:
        return "<p>Nothing was changed.</p>"
    shown = patch[:MOST_PATHS]
    limit = max(12, MOST_LINES // len(shown))
    lines = [_path(item, limit) for item in shown]
    if len(patch) > MOST_PATHS:
        rest = len(patch) - MOST_PATHS
        lines.append(cut(f"{rest:,} of {len(patch):,} changed paths are left out; {_WHERE}"))
    return "\n".join(lines)


def _path(item: PathPatch, limit: int) -> str:
    size = f", {item.added:,} lines added, {item.removed:,} removed" if item.lines else ""
    lines = [
        '<div class="path">',
        f'<p class="what"><code>{words(item.path)}</code> {item.action}{size}</p>',
        *(f'<p class="quiet">{words(note)}</p>' for note in item.notes),
    ]
    if len(item.lines) <= limit:
        lines += _pre(item.lines)
    else:
        first, last = limit - limit // 3, limit // 3
        left_out = len(item.lines) - first - last
        lines += _pre(item.lines[:first])
        lines.append(cut(f"{left_out:,} lines are left out here; {_WHERE}"))
        lines += _pre(item.lines[-last:])
    return "\n".join([*lines, "</div>"])


def _pre(lines: Sequence[PatchLine]) -> list[str]:
    if not lines:
        return []
    rendered = "".join(
        f'<span class="{_KINDS[line.mark]}">{_line(line)}\n</span>' for line in lines
    )
    return [f'<pre class="patch">{rendered}</pre>']


def _line(line: PatchLine) -> str:
    mark = "@@" if line.mark == "@" else line.mark
    return words(mark + line.text)
