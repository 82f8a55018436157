"""Where in a task.toml a key stands; the parser of the standard library does not say."""

from __future__ import annotations

import re

_TABLE = re.compile(r"[ \t]*+\[{1,2}([^\[\]]++)\]")
_KEY = re.compile(r"[ \t]*+([A-Za-z0-9_.\"'\-][A-Za-z0-9_.\"'\- ]*+)=")


def key_lines(content: str) -> dict[str, int]:
    """Return the line, counted from 1, on which each table and each dotted key begins."""
    table, lines = "", dict[str, int]()
    for number, text in enumerate(content.split("\n"), start=1):
        if header := _TABLE.match(text):
            table = _plain(header[1])
            lines.setdefault(table, number)
        elif key := _KEY.match(text):
            lines.setdefault(f"{table}.{_plain(key[1])}".lstrip("."), number)
    return lines


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Return the line of a dotted key, or of the nearest one above it."""
    while path and path not in lines:
        path = path.rpartition(".")[0]
    return lines.get(path)


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))
