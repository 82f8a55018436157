"""From a fault in a JobSpec to the message about it: place, expectation, finding, cure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.redact import without_userinfo
from xgent_evolve.spec.locate import Document, JsonPath, Position, Value, path_text

_SHOWN_CHARACTERS = 80
_SHOWN_ITEMS = 8

MAX_FAULTS = 200
"""Most faults that are told one by one."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault at a JSON path, before it is placed in the file."""

    path: JsonPath
    message: str
    expected: str
    found: str
    fix: str
    code: str = "E_SPEC_VALUE"
    at_key: bool = False
    """Whether the key is at fault and not its value."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A fault with its place, in the form that sorts and prints."""

    position: Position
    path: JsonPath
    fault: Fault


def place(finding: Finding, document: Document, file: str) -> Placed:
    """Return `finding` with its line and column in `document`, which was read from `file`."""
    look_up = document.key_position if finding.at_key else document.position
    position = look_up(finding.path)
    fault = Fault(
        code=finding.code,
        message=finding.message,
        where=where(file, position, finding.path),
        expected=finding.expected,
        found=finding.found,
        fix=finding.fix,
    )
    return Placed(position, finding.path, fault)


def place_flaws(document: Document, file: str) -> list[Placed]:
    """Return the faults of the text itself."""
    return [
        Placed(
            flaw.position,
            flaw.path,
            Fault(
                code=flaw.code,
                message=flaw.message,
                where=where(file, flaw.position, flaw.path),
                expected=flaw.expected,
                found=flaw.found,
                fix=flaw.fix,
            ),
        )
        for flaw in document.flaws
    ]


def spec_error(placed: Iterable[Placed]) -> SpecError:
    """Return one error with every fault (at least one), unknown fields first.

    A misspelt key makes other faults follow from it, so it is told before them.
    """
    order = sorted(
        placed, key=lambda item: (item.fault.code != "E_SPEC_UNKNOWN_KEY", item.position)
    )
    faults = [item.fault for item in order[:MAX_FAULTS]]
    if (more := len(order) - MAX_FAULTS) > 0:
        faults.append(
            Fault(
                code="E_SPEC",
                message="there are more faults than are told here",
                where=order[MAX_FAULTS].fault.where,
                expected=f"at most {MAX_FAULTS} faults",
                found=f"{more} more, from here on",
                fix="correct those above first",
            )
        )
    return SpecError(tuple(faults))


def where(file: str, position: Position, path: JsonPath) -> str:
    """Return `file:line:column: $.json.path`."""
    return f"{file}:{position.line}:{position.column}: {path_text(path)}"


def shown(value: Value) -> str:
    """Return `value` as JSON, shortened and without credentials of an address."""
    text = without_userinfo(json.dumps(value, ensure_ascii=False, default=_plain_number))
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"


def shown_list(values: Sequence[Value]) -> str:
    """Return `values` as JSON, the first few of many."""
    text = ", ".join(map(shown, values[:_SHOWN_ITEMS]))
    more = len(values) - _SHOWN_ITEMS
    return f"{text} and {more} more" if more > 0 else text


def _plain_number(value: object) -> float:
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(type(value).__name__)
