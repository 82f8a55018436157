"""The byte form of a report: plain JSON values, sorted keys, finite and rounded numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from xgent_evolve.measure.rounding import rounded
from xgent_evolve.redact import printable

type JsonValue = bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None
type Document = dict[str, JsonValue]


def json_bytes(document: Document) -> bytes:
    """Return the bytes of report.json: sorted keys, two spaces, one newline at the end.

    Raises:
        ValueError: a number is not finite.

    """
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def differences(
    first: JsonValue, second: JsonValue, place: str
) -> Iterator[tuple[str, JsonValue, JsonValue]]:
    """Yield every place at which two documents differ, with both values; absent is None."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in sorted({*first, *second}):
            yield from differences(first.get(key), second.get(key), f"{place}.{key}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for index, (left, right) in enumerate(zip(first, second, strict=True)):
            yield from differences(left, right, f"{place}[{index}]")
    elif first != second or type(first) is not type(second):
        yield place, first, second


def number(value: float | None) -> float | None:
    """Return `value` as a report holds it: six decimals, null when unknown."""
    return rounded(value)


def clean(value: str) -> str:
    """Return text from outside as a report holds it: without control characters."""
    return printable(value)
