"""Fit a JSON value to the parts of a JobSpec: every fault at once, in the house's words.

The annotation of a field becomes a kind, which reads one value. A kind that finds fault notes a
`Finding` and goes on; what it returns then is never used.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeAliasType,
    Union,
    cast,
    get_args,
    get_origin,
)

from xgent_evolve.spec.faults import MAX_FAULTS, Finding, shown
from xgent_evolve.spec.kinds import PATTERN_WORDS
from xgent_evolve.spec.locate import JsonPath, Value
from xgent_evolve.spec.part import Field, Limits, Part, descriptions, fields_of


@dataclass(slots=True)
class Reading:
    """One document that is being read."""

    from_protocol: bool = False
    """Whether it is a Protocol's JSON, in which decimals are texts."""
    findings: list[Finding] = field(default_factory=list[Finding])
    unknown: int = 0
    """Keys that no part has."""

    def wrong_type(self, path: JsonPath, value: object, expected: str) -> None:
        """Note that a value has the wrong type."""
        self.findings.append(
            Finding(
                path=path,
                code="E_SPEC_TYPE",
                message="the value has the wrong type",
                expected=expected,
                found=shown(cast("Value", value)),
                fix=f"write {expected}",
            )
        )

    def wrong_value(
        self,
        path: JsonPath,
        value: object,
        expected: str,
        fix: str = "correct the value",
        message: str = "the value is not allowed",
    ) -> None:
        """Note that a value of the right type is not allowed."""
        found = shown(cast("Value", value))
        self.findings.append(
            Finding(path=path, message=message, expected=expected, found=found, fix=fix)
        )

    def missing(self, path: JsonPath, expected: str) -> None:
        """Note that a required key, the last of the path, is not there."""
        key = path[-1]
        self.findings.append(
            Finding(
                path=path,
                code="E_SPEC_MISSING_KEY",
                message=f'the required key "{key}" is missing',
                expected=f'"{key}"{expected}',
                found="no such key",
                fix=f'add "{key}"',
            )
        )

    def unknown_key(self, path: JsonPath, known: list[str]) -> None:
        """Note that nobody knows the last key of the path."""
        import difflib

        self.unknown += 1
        key = str(path[-1])
        # Looking for the nearest key takes time; nobody reads it a thousand times.
        look = self.unknown <= MAX_FAULTS
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.6) if look else []
        self.findings.append(
            Finding(
                path=path,
                at_key=True,
                code="E_SPEC_UNKNOWN_KEY",
                message=f"the key {shown(key)} is unknown",
                expected=f'"{near[0]}" (the nearest known key)'
                if near
                else f"one of {', '.join(known)}",
                found=shown(key),
                fix=f'rename it to "{near[0]}", or remove it' if near else "remove it",
            )
        )


class TextKind(NamedTuple):
    """A text."""

    limits: Limits

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, str):
            reading.wrong_type(path, value, "text in double quotes")
            return value
        limits = self.limits
        if outside := _outside_length(len(value), limits, "character(s)"):
            reading.wrong_value(path, value, outside, WITHIN)
        elif limits.check is not None:
            if reason := limits.check(value):
                fix = "name the place from the root that the path is relative to"
                expected = 'a relative path such as "docs/guide.md"'
                reading.wrong_value(path, value, expected, fix, reason)
        elif limits.pattern is not None and not _compiled(limits.pattern).search(value):
            pattern = limits.pattern
            reading.wrong_value(
                path, value, PATTERN_WORDS.get(pattern, f"text that matches {pattern}")
            )
        return value


class NumberKind(NamedTuple):
    """An integer, or a decimal that is kept exactly."""

    limits: Limits
    is_integer: bool

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        number = value if self.is_integer else _decimal(value, reading)
        if isinstance(number, bool) or not isinstance(number, int if self.is_integer else Decimal):
            reading.wrong_type(path, value, "an integer" if self.is_integer else "a number")
        elif outside := _outside_range(number, self.limits):
            reading.wrong_value(path, value, outside, WITHIN)
        return number


class ChoiceKind(NamedTuple):
    """One of a few texts or integers."""

    choices: tuple[str | int, ...]

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        # True and 1.0 compare equal to 1, so the type is part of the question.
        if not any(type(item) is type(value) and item == value for item in self.choices):
            *most, last = [
                f'"{item}"' if isinstance(item, str) else str(item) for item in self.choices
            ]
            expected = f"{', '.join(most)} or {last}" if most else last
            if isinstance(value, str):
                reading.wrong_value(path, value, expected, "choose one of these")
            else:
                reading.wrong_type(path, value, expected)
        return value


class FlagKind(NamedTuple):
    """True or false."""

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, bool):
            reading.wrong_type(path, value, "true or false")
        return value


class NullKind(NamedTuple):
    """Null."""

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if value is not None:
            reading.wrong_type(path, value, "null")
        return value


class OptionalKind(NamedTuple):
    """Null, or another kind."""

    kind: Kind

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        return None if value is None else self.kind.read(value, path, reading)


class ListKind(NamedTuple):
    """An array."""

    limits: Limits
    item: Kind

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, list):
            reading.wrong_type(path, value, "an array")
            return value
        if outside := _outside_length(len(value), self.limits, "item(s)"):
            reading.wrong_value(path, value, outside, WITHIN)
            return value
        return [self.item.read(item, (*path, index), reading) for index, item in enumerate(value)]


class MapKind(NamedTuple):
    """An object whose keys are the caller's own."""

    limits: Limits
    key: Kind
    item: Kind

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, dict):
            reading.wrong_type(path, value, "an object")
            return value
        if outside := _outside_length(len(value), self.limits, "item(s)"):
            reading.wrong_value(path, value, outside, WITHIN)
            return value
        read: dict[object, object] = {}
        for key, item in value.items():
            keys = Reading()
            self.key.read(key, (*path, key), keys)
            reading.findings += [replace(finding, at_key=True) for finding in keys.findings]
            read[key] = self.item.read(item, (*path, key), reading)
        return read


class PartKind(NamedTuple):
    """An object with known keys."""

    model: type[Part]

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, dict):
            reading.wrong_type(path, value, "an object")
            return value
        model = self.model.model_for(value)
        given: dict[str, object] = {}
        fields = kinds_of(model)
        for key, (declared, kind) in fields.items():
            if key in value:
                given[declared.name] = kind.read(value[key], (*path, key), reading)
            elif declared.is_required:
                words = descriptions(model).get(declared.name, "a value")
                reading.missing((*path, key), f": {words}")
        for key in value:
            if key not in fields:
                reading.unknown_key((*path, key), list(fields))
        return value if reading.findings else model(**given)


class TaggedKind(NamedTuple):
    """An object whose known keys depend on one of its values."""

    tag: str
    members: Mapping[str, PartKind]

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        if not isinstance(value, dict):
            reading.wrong_type(path, value, "an object")
            return value
        name = value.get(self.tag)
        if isinstance(name, str) and name in self.members:
            return self.members[name].read(value, path, reading)
        # The key that names the kind may be misspelt, so keys that no kind has are told too.
        known = list(
            dict.fromkeys(key for kind in self.members.values() for key in kinds_of(kind.model))
        )
        for key in value:
            if key not in known:
                reading.unknown_key((*path, key), known)
        if self.tag in value:
            reading.wrong_value(
                (*path, self.tag),
                name,
                f"one of {', '.join(f'"{item}"' for item in self.members)}",
                "use one of these",
                f'"{self.tag}" has no such kind',
            )
        else:
            reading.missing((*path, self.tag), ", which says what kind of object this is")
        return value


class NamedKind(NamedTuple):
    """A kind with a name of its own in the schema."""

    name: str
    kind: Kind

    def read(self, value: Value, path: JsonPath, reading: Reading) -> object:
        """Read a value; see the module."""
        return self.kind.read(value, path, reading)


type Kind = (
    TextKind
    | NumberKind
    | ChoiceKind
    | FlagKind
    | NullKind
    | OptionalKind
    | ListKind
    | MapKind
    | PartKind
    | TaggedKind
    | NamedKind
)

FREE = Limits()
"""No limits."""

WITHIN = "choose a value within this limit"


def fit[P: Part](
    model: type[P], value: Value, *, from_protocol: bool = False
) -> tuple[P | None, list[Finding]]:
    """Return the part that `value` describes, or None and every fault of it."""
    reading = Reading(from_protocol)
    part = PartKind(model).read(value, (), reading)
    return (None if reading.findings else cast("P", part)), reading.findings


@functools.cache
def kinds_of(model: type[Part]) -> dict[str, tuple[Field, Kind]]:
    """Return the fields of a part with their kinds, by their name in JSON."""
    return {field.key: (field, kind_of(field.annotation)) for field in fields_of(model)}


@functools.cache
def kind_of(annotation: Any, limits: Limits = FREE) -> Kind:
    """Return the kind that an annotation means, within the limits written around it."""
    arguments = get_args(annotation)
    match get_origin(annotation):
        case _ if isinstance(annotation, TypeAliasType):
            kind = kind_of(annotation.__value__, limits)
            return NamedKind(annotation.__name__, kind) if limits == FREE else kind
        case _ if supertype := getattr(annotation, "__supertype__", None):
            return kind_of(supertype, limits)
        case None:
            return _simple(annotation, limits)
        case origin if origin is Annotated:
            inner, *notes = arguments
            for note in notes:
                limits = note.within(limits)
            return kind_of(inner, limits)
        case origin if origin is Literal:
            return ChoiceKind(arguments)
        case origin if origin is list:
            return ListKind(limits, kind_of(arguments[0]))
        case origin if origin is dict:
            return MapKind(limits, kind_of(arguments[0]), kind_of(arguments[1]))
        case origin if origin in {Union, UnionType}:
            return _union([item for item in arguments if item is not NoneType], arguments, limits)
        case _:
            raise TypeError(f"no kind for {annotation!r}")


def _union(members: list[Any], arguments: tuple[Any, ...], limits: Limits) -> Kind:
    if len(members) < len(arguments):
        (member,) = members
        return OptionalKind(kind_of(member, limits))
    tag = cast("str", limits.kind_key)
    kinds = [PartKind(member) for member in members]
    names = [cast("ChoiceKind", kinds_of(kind.model)[tag][1]).choices[0] for kind in kinds]
    return TaggedKind(tag, dict(zip(map(str, names), kinds, strict=True)))


def _simple(annotation: Any, limits: Limits) -> Kind:
    if annotation is str:
        return TextKind(limits)
    if annotation is bool:
        return FlagKind()
    if annotation in {int, Decimal}:
        return NumberKind(limits, annotation is int)
    if annotation is NoneType:
        return NullKind()
    if issubclass(annotation, Part):
        return PartKind(annotation)
    raise TypeError(f"no kind for {annotation!r}")


def _decimal(value: Value | float, reading: Reading) -> object:
    match value:
        case int() if not isinstance(value, bool):
            return Decimal(value)
        case str() if reading.from_protocol:
            try:
                return Decimal(value)
            except InvalidOperation:
                return value
        case _:
            return value


def _outside_range(number: Decimal | int, limits: Limits) -> str:
    """Return what a number should be, in words; nothing when it is."""
    if limits.ge is not None and not number >= limits.ge:
        return f"at least {limits.ge}"
    if limits.gt is not None and not number > limits.gt:
        return f"more than {limits.gt}"
    if limits.le is not None and not number <= limits.le:
        return f"at most {limits.le}"
    if limits.lt is not None and not number < limits.lt:
        return f"less than {limits.lt}"
    return ""


def _outside_length(length: int, limits: Limits, noun: str) -> str:
    if limits.min_length is not None and length < limits.min_length:
        return f"at least {limits.min_length} {noun}"
    if limits.max_length is not None and length > limits.max_length:
        return f"at most {limits.max_length} {noun}"
    return ""


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose `$` is the end of the text, as in JSON Schema."""
    return re.compile(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern)
