"""How a changed file is shown to a person. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator


def file_diff(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Yield a file's change as lines of a unified diff; None where there is no file."""
    texts = [_lines(content) for content in (before, after)]
    if texts[0] is None or texts[1] is None:
        yield f"binary file {path} differs\n"
        return
    old = "/dev/null" if before is None else f"a/{path}"
    new = "/dev/null" if after is None else f"b/{path}"
    yield from difflib.unified_diff(texts[0], texts[1], old, new)


def _lines(content: bytes | None) -> list[str] | None:
    """Return the lines of a text, each with an end; None for what is no text."""
    try:
        return [f"{line}\n" for line in (content or b"").decode("utf-8").splitlines()]
    except UnicodeDecodeError:
        return None
