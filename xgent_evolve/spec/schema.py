"""The JSON Schema of a JobSpec, generated from its model.

`python -m xgent_evolve.spec.schema` writes the committed copy in `schemas/`. A copy that was
released never changes; a new version of the format has a new file.
"""

from __future__ import annotations

import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import override

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from xgent_evolve.canonical import Json
from xgent_evolve.spec.versions import VERSIONS, model_of


class _SpecSchema(GenerateJsonSchema):
    """Says what the reader accepts: decimals are numbers, never text."""

    @override
    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        number: JsonSchemaValue = {"type": "number"}
        self.update_with_validations(number, schema, self.ValidationsMapping.numeric)
        return {
            key: _number(value) if isinstance(value, Decimal) else value
            for key, value in number.items()
        }

    @override
    def encode_default(self, dft: object) -> object:
        return _number(dft) if isinstance(dft, Decimal) else super().encode_default(dft)

    @override
    def field_title_should_be_set(self, schema: object) -> bool:
        # Titles made from field names repeat the names.
        return False


def schema_document(version: int) -> dict[str, Json]:
    """Return the JSON Schema of a version of the JobSpec.

    Raises:
        InvalidError: E_SPEC_VERSION: there is no such version.

    """
    model = model_of(version)
    model.model_rebuild()
    body = model.model_json_schema(schema_generator=_SpecSchema)
    head: dict[str, Json] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:xgent-evolve:job-spec:v{version}",
        "title": f"xgent-evolve JobSpec, version {version}",
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


def _number(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


if __name__ == "__main__":
    for file in write_schemas(Path(__file__).parents[2] / "schemas"):
        sys.stdout.write(f"{file}\n")
