"""What a model says about a JobSpec that does not fit it, in the house's words.

pydantic finds the faults; its places name union tags that are not in the text, and its sentences
speak of Python. Both are translated here by walking the model along the place.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAliasType,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from xgent_evolve.spec.faults import MAX_FAULTS, Finding, shown
from xgent_evolve.spec.kinds import PATTERN_WORDS
from xgent_evolve.spec.locate import JsonPath, Value

type Model = type[BaseModel]

_TYPE_WORDS = {
    "string_type": "text in double quotes",
    "int_type": "an integer",
    "bool_type": "true or false",
    "list_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "is_instance_of": "a number",
    "none_required": "null",
}
_RANGE_WORDS = {
    "greater_than": ("more than {}", "gt"),
    "greater_than_equal": ("at least {}", "ge"),
    "less_than": ("less than {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "too_short": ("at least {} item(s)", "min_length"),
    "too_long": ("at most {} item(s)", "max_length"),
    "string_too_short": ("at least {} character(s)", "min_length"),
    "string_too_long": ("at most {} character(s)", "max_length"),
}


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a fault of a model lies in the text."""

    path: JsonPath
    owner: Model
    """The model that has, or should have, the last key of the path."""
    at_key: bool
    """Whether the last key itself is at fault (keys of a free mapping)."""
    annotation: object
    """What the model says about the value; None when it does not know the key."""


def shape_findings(error: ValidationError, model: Model) -> list[Finding]:
    """Return every fault that `model` found, with its path in the JSON text."""
    findings: list[Finding] = []
    unknown = 0
    for detail in error.errors(include_url=False):
        unknown += detail["type"] == "extra_forbidden"
        # Looking for the nearest key takes time; nobody reads it a thousand times.
        if detail["type"] in {"union_tag_not_found", "union_tag_invalid"}:
            findings += _kind_findings(detail, model)
        findings.append(_finding(detail, model, find_nearest=unknown <= MAX_FAULTS))
    return findings


def find_spot(model: Model, place: Sequence[str | int]) -> Spot:
    """Return the spot of `place`, which may name union tags and `[key]`."""
    annotation: object = model
    owner = model
    path: list[str | int] = []
    at_key = False
    for element in place:
        annotation = _bare(annotation)
        if get_origin(annotation) in {Union, UnionType}:
            annotation = _tagged(annotation, element)
        elif element == "[key]":
            at_key = True
        else:
            path.append(element)
            if _is_model(annotation):
                owner = annotation
                field = fields_by_key(owner).get(str(element))
                annotation = field.annotation if field else None
            else:
                annotation = (get_args(annotation) or (None,))[-1]
    return Spot(tuple(path), owner, at_key, _bare(annotation))


def fields_by_key(model: Model) -> dict[str, FieldInfo]:
    """Return the fields of `model` by their name in JSON."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _finding(detail: ErrorDetails, model: Model, *, find_nearest: bool) -> Finding:
    spot = find_spot(model, detail["loc"])
    value = cast("Value", detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            return _unknown_key(
                spot.path, list(fields_by_key(spot.owner)), find_nearest=find_nearest
            )
        case "missing":
            return _missing_key(spot.path, fields_by_key(spot.owner)[str(spot.path[-1])])
        case "union_tag_not_found":
            tag = str(_context(detail, "discriminator")).strip("'")
            return Finding(
                path=(*spot.path, tag),
                code="E_SPEC_MISSING_KEY",
                message=f'the required key "{tag}" is missing',
                expected=f'"{tag}", which says what kind of object this is',
                found="no such key",
                fix=f'add "{tag}"',
            )
        case "union_tag_invalid":
            tag = str(_context(detail, "discriminator")).strip("'")
            tags = str(_context(detail, "expected_tags")).replace("'", '"')
            kind = cast("dict[str, Value]", value).get(tag)
            return Finding(
                path=(*spot.path, tag),
                message=f'"{tag}" has no such kind',
                expected=f"one of {tags}",
                found=shown(kind),
                fix="use one of these",
            )
        case _:
            return _wrong_value(detail, spot, value)


def _kind_findings(detail: ErrorDetails, model: Model) -> Iterator[Finding]:
    """Yield keys that no kind of the object has: the key that names its kind may be misspelt."""
    spot = find_spot(model, detail["loc"])
    members = [item for item in map(_bare, get_args(spot.annotation)) if _is_model(item)]
    known = list(dict.fromkeys(key for member in members for key in fields_by_key(member)))
    value = cast("Value", detail["input"])
    for key in value if isinstance(value, dict) else ():
        if key not in known:
            yield _unknown_key((*spot.path, key), known)


def _unknown_key(path: JsonPath, known: list[str], *, find_nearest: bool = True) -> Finding:
    key = str(path[-1])
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.6) if find_nearest else []
    return Finding(
        path=path,
        at_key=True,
        code="E_SPEC_UNKNOWN_KEY",
        message=f"the key {shown(key)} is unknown",
        expected=f'"{near[0]}" (the nearest known key)' if near else f"one of {', '.join(known)}",
        found=shown(key),
        fix=f'rename it to "{near[0]}", or remove it' if near else "remove it",
    )


def _missing_key(path: JsonPath, field: FieldInfo) -> Finding:
    key = path[-1]
    return Finding(
        path=path,
        code="E_SPEC_MISSING_KEY",
        message=f'the required key "{key}" is missing',
        expected=f'"{key}": {field.description or "a value"}',
        found="no such key",
        fix=f'add "{key}"',
    )


def _wrong_value(detail: ErrorDetails, spot: Spot, value: Value) -> Finding:
    kind = detail["type"]
    expected = _expected(detail)
    code, message, fix = "E_SPEC_VALUE", "the value is not allowed", "correct the value"
    # Every choice of version 1 is among texts.
    if kind in _TYPE_WORDS or (kind == "literal_error" and not isinstance(value, str)):
        code, message, fix = "E_SPEC_TYPE", "the value has the wrong type", f"write {expected}"
    elif kind == "unsafe_path":
        message = str(_context(detail, "reason"))
        fix = "name the place from the root that the path is relative to"
    elif kind == "literal_error":
        fix = "choose one of these"
    elif kind in _RANGE_WORDS:
        fix = "choose a value within this limit"
    return Finding(
        path=spot.path,
        at_key=spot.at_key,
        code=code,
        message=message,
        expected=expected,
        found=shown(value),
        fix=fix,
    )


def _expected(detail: ErrorDetails) -> str:
    kind = detail["type"]
    if kind in _TYPE_WORDS:
        return _TYPE_WORDS[kind]
    if kind in _RANGE_WORDS:
        words, name = _RANGE_WORDS[kind]
        return words.format(_context(detail, name))
    if kind == "string_pattern_mismatch":
        pattern = str(_context(detail, "pattern"))
        return PATTERN_WORDS.get(pattern, f"text that matches {pattern}")
    if kind == "literal_error":
        return str(_context(detail, "expected")).replace("'", '"')
    if kind == "unsafe_path":
        return 'a relative path such as "docs/guide.md"'
    return detail["msg"].removeprefix("Input should be ")


def _context(detail: ErrorDetails, name: str) -> object:
    context: dict[str, Any] = detail.get("ctx", {})
    return context.get(name, "")


def _bare(annotation: object) -> object:
    """Return `annotation` without aliases, metadata and the option to be null."""
    while True:
        if isinstance(annotation, TypeAliasType):
            annotation = annotation.__value__
        elif get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in {Union, UnionType}:
            members = [item for item in get_args(annotation) if item is not NoneType]
            if len(members) != 1:
                return annotation
            annotation = members[0]
        else:
            return annotation


def _tagged(union: object, tag: str | int) -> object:
    """Return the member of a tagged union that carries `tag` in one of its literal fields."""
    for member in get_args(union):
        bare = _bare(member)
        if _is_model(bare):
            annotations = [field.annotation for field in bare.model_fields.values()]
            if any(get_origin(item) is Literal and tag in get_args(item) for item in annotations):
                return bare
    return None


def _is_model(annotation: object) -> TypeGuard[Model]:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
