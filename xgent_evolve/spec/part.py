"""Documents on disk as types: closed, immutable, documented.

`Part` is the base of every part of a JobSpec and of a Protocol. It is small because a command that
reads one JobSpec should not first load a library of models: what a field may hold is declared in
its annotation and read by `spec.shape`; the docstring under a field is its description.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from typing import Any, NamedTuple, Self, cast, dataclass_transform, get_type_hints

from xgent_evolve.canonical import Json


class Limits(NamedTuple):
    """What a value must keep to, beside its type; stands in an `Annotated`."""

    ge: Decimal | int | None = None
    gt: Decimal | int | None = None
    le: Decimal | int | None = None
    lt: Decimal | int | None = None
    min_length: int | None = None
    """Fewest characters or items."""
    max_length: int | None = None
    """Most characters or items."""
    pattern: str | None = None
    """Pattern of a text, in the words of JSON Schema."""
    check: Callable[[str], str | None] | None = None
    """Says why a text is no safe path; then `pattern` is for the schema alone."""
    kind_key: str | None = None
    """The key that says which of several parts an object is."""
    key: str | None = None
    """The field's name in JSON, when it is no name of Python's."""

    def within(self, outer: Limits) -> Limits:
        """Return these limits, narrowed by those that are written around them."""
        pairs = zip(self, outer, strict=True)
        return Limits._make(mine if other is None else other for mine, other in pairs)


class Field(NamedTuple):
    """One field of a part."""

    name: str
    key: str
    """Its name in JSON."""
    annotation: Any
    default: object
    """A value, a `dataclasses.Field` with a factory, or `dataclasses.MISSING`."""

    @property
    def is_required(self) -> bool:
        """Whether a document must have it."""
        return self.default is dataclasses.MISSING

    def absent(self) -> object:
        """Return the value of a field that is not given."""
        match self.default:
            case dataclasses.Field(default_factory=make):  # pyright: ignore[reportUnknownVariableType]
                return cast("Callable[[], object]", make)()
            case default:
                return default


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field,)
)
class Part:
    """Base of every part. Who makes one in code vouches for its values; `spec.shape` reads text."""

    def __init__(self, **given: object) -> None:
        """Take every field by name; TypeError for an unknown or missing one."""
        values = self.__dict__
        for field in fields_of(type(self)):
            if field.name in given:
                values[field.name] = given.pop(field.name)
            elif field.is_required:
                raise TypeError(f"{type(self).__name__} needs {field.name}")
            else:
                values[field.name] = field.absent()
        if given:
            raise TypeError(f"{type(self).__name__} has no {', '.join(given)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None  # pyright: ignore[reportAssignmentType] - lists are among the values

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({values})"

    @classmethod
    def model_for(cls, document: Mapping[str, object]) -> type[Part]:  # noqa: ARG003
        """Return the part that a document describes: this one, unless a part knows better."""
        return cls

    def replaced(self, **changes: object) -> Self:
        """Return a copy with other values of the named fields."""
        return type(self)(**(self.__dict__ | changes))

    def document(
        self, *, without: Collection[str] = (), decimals: Callable[[Decimal], object] = str
    ) -> dict[str, Json]:
        """Return the JSON form, without the named fields; decimals are texts unless told."""
        return {
            field.key: document_of(getattr(self, field.name), decimals)
            for field in fields_of(type(self))
            if field.name not in without
        }

    def given(self) -> dict[str, Json]:
        """Return the JSON form without the fields that are null."""
        return {key: value for key, value in self.document().items() if value is not None}


def document_of(value: object, decimals: Callable[[Decimal], object] = str) -> Json:
    """Return the JSON form of a part, or of a value of one."""
    match value:
        case Part():
            return value.document(decimals=decimals)
        case Decimal():
            return cast("Json", decimals(value))
        case list():
            return [document_of(item, decimals) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {key: document_of(item, decimals) for key, item in items}
        case _:
            return cast("Json", value)


def plain_number(value: Decimal) -> int | float:
    """Return a decimal as the JSON number that a JobSpec would have."""
    return int(value) if value == value.to_integral_value() else float(value)


@functools.cache
def fields_of(model: type[Part]) -> tuple[Field, ...]:
    """Return the fields of a part, those of its base first."""
    hints = get_type_hints(model, include_extras=True)
    order = [name for base in reversed(model.__mro__) for name in inspect.get_annotations(base)]
    return tuple(
        Field(
            name,
            _key(hints[name]) or name,
            hints[name],
            getattr(model, name, dataclasses.MISSING),
        )
        for name in dict.fromkeys(order)
    )


@functools.cache
def descriptions(model: type[Part]) -> dict[str, str]:
    """Return the docstring under every field of a part that has one."""
    found: dict[str, str] = {}
    for base in reversed(model.__mro__[:-1]):
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = cast("ast.ClassDef", tree).body
        for statement, below in itertools.pairwise(body):
            match statement, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    found[name] = inspect.cleandoc(text)
                case _:
                    continue
    return found


def _key(annotation: Any) -> str | None:
    notes = getattr(annotation, "__metadata__", ())
    return next((note.key for note in notes if isinstance(note, Limits)), None)
