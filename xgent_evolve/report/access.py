"""Typed reading of a report document, which may come from report.json."""

from __future__ import annotations

from xgent_evolve.measure.comparison import Interval
from xgent_evolve.report.document import Document, JsonValue


def part(document: Document, key: str) -> Document:
    """Return the object under `key`.

    Raises:
        TypeError: there is something else.

    """
    value = document[key]
    if not isinstance(value, dict):
        raise TypeError(f"report: {key} is {type(value).__name__}, not an object")
    return value


def find_part(document: Document, key: str) -> Document | None:
    """Return the object under `key`, or None for null."""
    return None if document[key] is None else part(document, key)


def parts(document: Document, key: str) -> list[Document]:
    """Return the list of objects under `key`; null is an empty list."""
    value = document[key]
    if value is None:
        return []
    if not isinstance(value, list):
        raise TypeError(f"report: {key} is {type(value).__name__}, not a list")
    return [item for item in value if isinstance(item, dict)]


def words(document: Document, key: str) -> list[str]:
    """Return the list of strings under `key`."""
    value = document[key]
    if not isinstance(value, list):
        raise TypeError(f"report: {key} is {type(value).__name__}, not a list")
    return [item for item in value if isinstance(item, str)]


def string(document: Document, key: str) -> str:
    """Return the text under `key`; null is empty."""
    value = document[key]
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"report: {key} is {type(value).__name__}, not text")
    return value


def number_of(value: JsonValue) -> float | None:
    """Return a number as float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def find_interval(document: Document, key: str) -> Interval | None:
    """Return the interval under `key`, or None for null."""
    found = find_part(document, key)
    if found is None:
        return None
    low, high = number_of(found["low"]), number_of(found["high"])
    return None if low is None or high is None else Interval(low, high)
