"""Where everything stands in a JSON text: from a path of keys and indices to line and column."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NamedTuple

type JsonPath = tuple[str | int, ...]
"""Keys and indices from the root to one value."""

type Value = bool | int | Decimal | str | list[Value] | dict[str, Value] | None
"""A JSON value; numbers with a fraction or an exponent are decimals."""


class Position(NamedTuple):
    """A place in the text; both count from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Flaw:
    """A fault of the text itself, whatever it is meant to say."""

    code: str
    """E_SPEC_SYNTAX, E_SPEC_DUPLICATE_KEY or E_SPEC_NUMBER."""
    message: str
    path: JsonPath
    position: Position
    expected: str = ""
    found: str = ""
    fix: str = ""


class Place(NamedTuple):
    """Offsets of one value and of the key before it (the same, when it has none)."""

    key: int
    value: int


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON text, its value, its flaws and the place of everything in it."""

    text: str
    value: Value
    """The value; None when the text is not JSON (the last flaw says where reading stopped)."""
    flaws: tuple[Flaw, ...]
    """Faults in the order of the text; at most one syntax fault, which ends the reading."""
    places: Mapping[JsonPath, Place] = field(repr=False)
    """Where every value starts."""
    lines: tuple[int, ...] = field(repr=False)
    """The offset at which every line starts."""

    def holds(self, path: JsonPath) -> bool:
        """Return whether the text itself has a value at `path`."""
        return path in self.places

    def position(self, path: JsonPath) -> Position:
        """Return where the value at `path` starts, or its nearest ancestor when it is absent."""
        return position_of(self.lines, self._nearest(path).value)

    def key_position(self, path: JsonPath) -> Position:
        """Return where the key of `path` starts; for an array item, where the item starts."""
        return position_of(self.lines, self._nearest(path).key)

    def _nearest(self, path: JsonPath) -> Place:
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(0, 0))


def line_starts(text: str) -> tuple[int, ...]:
    """Return the offset at which every line of `text` starts."""
    return (0, *(match.end() for match in re.finditer("\n", text)))


def path_text(path: JsonPath) -> str:
    """Return `path` as `$.cases[0].id`; keys that are not plain words are quoted."""
    parts = ["$"]
    for element in path:
        if isinstance(element, int):
            parts.append(f"[{element}]")
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", element, re.ASCII):
            parts.append(f".{element}")
        else:
            parts.append(f"[{json.dumps(element)}]")
    return "".join(parts)


def position_of(lines: Sequence[int], offset: int) -> Position:
    """Return the line and column of `offset`, given where the lines start."""
    line = bisect_right(lines, offset)
    return Position(line, offset - lines[line - 1] + 1)
