"""The JSON Schema of a JobSpec, generated from its model.

`python -m xgent_evolve.spec.schema` writes the committed copy in `schemas/`. A copy that was
released never changes; a new version of the format has a new file.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Callable
from pathlib import Path

from xgent_evolve.canonical import Json
from xgent_evolve.spec.part import Field, Limits, Part, descriptions, document_of, plain_number
from xgent_evolve.spec.shape import (
    ChoiceKind,
    FlagKind,
    Kind,
    ListKind,
    MapKind,
    NamedKind,
    NullKind,
    NumberKind,
    OptionalKind,
    PartKind,
    TaggedKind,
    TextKind,
    kinds_of,
)
from xgent_evolve.spec.versions import VERSIONS, model_of

type Schema = dict[str, Json]

_RANGE_WORDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
}


class _Definitions:
    """The schemas that others refer to, by name."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}

    def part(self, model: type[Part]) -> Schema:
        """Return the schema of an object with known keys."""
        kinds = kinds_of(model).items()
        body: Schema = {
            "additionalProperties": False,
            "description": inspect.getdoc(model),
            "properties": {
                key: self.field(field, kind, descriptions(model)) for key, (field, kind) in kinds
            },
        }
        if required := [key for key, (field, _) in kinds if field.is_required]:
            body["required"] = list[Json](required)
        return body | {"title": model.__name__, "type": "object"}

    def field(self, field: Field, kind: Kind, words: dict[str, str]) -> Schema:
        """Return the schema of a field, keys in order."""
        body = self.of(kind)
        if not isinstance(field.default, dataclasses.Field) and not field.is_required:
            body = body | {"default": document_of(field.default, plain_number)}
        if field.name in words:
            body = body | {"description": words[field.name]}
        return {key: body[key] for key in sorted(body)}

    def of(self, kind: Kind) -> Schema:
        """Return the schema of a value, keys in order."""
        match kind:
            case TextKind(limits):
                pattern: Schema = {} if limits.pattern is None else {"pattern": limits.pattern}
                return _lengths(limits, "Length") | pattern | {"type": "string"}
            case NumberKind(limits, is_integer):
                return _range(limits) | {"type": "integer" if is_integer else "number"}
            case ChoiceKind(choices):
                word = "string" if isinstance(choices[0], str) else "integer"
                choice: Schema = (
                    {"const": choices[0]} if len(choices) == 1 else {"enum": list(choices)}
                )
                return choice | {"type": word}
            case FlagKind():
                return {"type": "boolean"}
            case NullKind():
                return {"type": "null"}
            case OptionalKind(inner):
                return {"anyOf": list[Json]((self.of(inner), {"type": "null"}))}
            case ListKind(limits, item):
                items: Schema = {"items": self.of(item)}
                return items | _lengths(limits, "Items") | {"type": "array"}
            case MapKind(limits, key, item):
                body: Schema = {"additionalProperties": self.of(item)}
                body |= _lengths(limits, "Properties")
                body |= {"propertyNames": self.of(key), "type": "object"}
                return body
            case PartKind(model):
                return self.reference(model.__name__, lambda: self.part(model))
            case TaggedKind(tag, members):
                references = {name: self.of(member) for name, member in members.items()}
                mapping: Json = {name: references[name]["$ref"] for name in sorted(references)}
                return {
                    "discriminator": {"mapping": mapping, "propertyName": tag},
                    "oneOf": list[Json](references.values()),
                }
            case NamedKind(name, inner):
                return self.reference(name, lambda: self.of(inner))

    def reference(self, name: str, make: Callable[[], Schema]) -> Schema:
        """Return a reference to a named schema, made when it is met for the first time."""
        if name not in self.named:
            self.named[name] = {}
            self.named[name] = make()
        return {"$ref": f"#/$defs/{name}"}


def schema_document(version: int) -> Schema:
    """Return the JSON Schema of a version of the JobSpec.

    Raises:
        InvalidError: E_SPEC_VERSION: there is no such version.

    """
    definitions = _Definitions()
    body = definitions.part(model_of(version))
    named: Schema = {name: definitions.named[name] for name in sorted(definitions.named)}
    head: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:xgent-evolve:job-spec:v{version}",
        "title": f"xgent-evolve JobSpec, version {version}",
        "$defs": named,
    }
    return head | {key: value for key, value in body.items() if key not in head}


def schema_text(version: int) -> str:
    """Return the JSON Schema as the text of its file."""
    return json.dumps(schema_document(version), indent=2, ensure_ascii=False) + "\n"


def schema_name(version: int) -> str:
    """Return the name of the schema's file."""
    return f"job-spec.v{version}.json"


def write_schemas(directory: Path) -> list[Path]:
    """Write the schema of every version below `directory` and return the files."""
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for version in VERSIONS:
        path = directory / schema_name(version)
        path.write_text(schema_text(version), encoding="utf-8")
        written.append(path)
    return written


def _range(limits: Limits) -> Schema:
    given = {word: getattr(limits, name) for name, word in _RANGE_WORDS.items()}
    body = {word: document_of(given[word], plain_number) for word in sorted(given)}
    return {word: bound for word, bound in body.items() if bound is not None}


def _lengths(limits: Limits, noun: str) -> Schema:
    lengths = {f"max{noun}": limits.max_length, f"min{noun}": limits.min_length}
    return {word: length for word, length in lengths.items() if length is not None}


if __name__ == "__main__":
    for file in write_schemas(Path(__file__).parents[2] / "schemas"):
        sys.stdout.write(f"{file}\n")
