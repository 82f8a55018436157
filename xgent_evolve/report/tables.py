"""Markdown tables and cells."""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.redact import printable
from xgent_evolve.report.document import JsonValue

DASH = "—"
"""What stands where nothing is known."""


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table; a sentence instead when there are no rows."""
    if not rows:
        return ["None.", ""]
    return [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def cell(value: JsonValue) -> str:
    """Return one value as a cell; text from outside cannot break out of it."""
    match value:
        case None:
            return DASH
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case str():
            return inline(value)
        case list() | dict():
            raise TypeError(f"{type(value).__name__} does not fit in a cell")


def inline(text: str) -> str:
    """Return text from outside on one line, with what Markdown would act on made harmless."""
    line = plain(text)
    for mark in "\\`*[]<>|#":
        line = line.replace(mark, f"\\{mark}")
    return line


def plain(text: str) -> str:
    """Return our own words on one line, as they are."""
    return " ".join(printable(text).split())


def share(value: JsonValue) -> str:
    """Return a fraction with three decimals; a dash when unknown."""
    return f"{value:.3f}" if isinstance(value, int | float) else DASH


def seconds(value: JsonValue) -> str:
    """Return a duration with its unit; `unknown` when it is."""
    return f"{value:,.1f} s" if isinstance(value, int | float) else "unknown"
