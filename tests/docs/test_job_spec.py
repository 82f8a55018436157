"""docs/job-spec.md names every field of the published schema, with its default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads((ROOT / "schemas" / "job-spec.v1.json").read_text())
TEXT = (ROOT / "docs" / "job-spec.md").read_text()
TOP = "The document"

type Schema = dict[str, Any]


def resolved(schema: Schema) -> Schema:
    """Follow references, and step over the option to be null."""
    if "$ref" in schema:
        return resolved(SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]])
    choices = [item for item in schema.get("anyOf", []) if item.get("type") != "null"]
    return resolved(choices[0]) if len(choices) == 1 else schema


def objects(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    """Yield the title of its section and the schema of every object with fields of its own."""
    found = resolved(schema)
    if found.get("type") == "array":
        yield from objects(found["items"], f"{path}[]")
    elif "oneOf" in found:
        tag = found["discriminator"]["propertyName"]
        for value, reference in sorted(found["discriminator"]["mapping"].items()):
            yield f"`{path}`, {tag} `{value}`", resolved({"$ref": reference})
    elif "properties" in found:
        yield (f"`{path}`" if path else TOP), found
        for name, field in found["properties"].items():
            yield from objects(field, f"{path}.{name}" if path else name)


OBJECTS = dict(objects(SCHEMA, ""))
SECTIONS = {
    title.strip(): body
    for title, body in re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}


def rows(title: str) -> dict[str, list[str]]:
    """Return the cells of a section's table by field."""
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0].strip(" `"): row for row in cells}


def test_every_object_of_the_schema_has_a_section() -> None:
    assert set(SECTIONS) == set(OBJECTS)


@pytest.mark.parametrize("title", OBJECTS)
def test_a_section_lists_exactly_the_fields(title: str) -> None:
    found = rows(title)
    assert list(found) == list(OBJECTS[title]["properties"])
    assert all(len(row) == 4 and all(row) for row in found.values()), "four cells, none empty"


@pytest.mark.parametrize("title", OBJECTS)
def test_a_section_tells_what_is_required_and_the_defaults(title: str) -> None:
    schema = OBJECTS[title]
    for name, row in rows(title).items():
        shown = row[2].strip("`")
        if name in schema.get("required", []):
            assert shown == "required", name
        elif "default" in schema["properties"][name]:
            assert json.loads(shown) == schema["properties"][name]["default"], name
        else:
            assert isinstance(json.loads(shown), list | dict), f"{name} has an empty default"


@pytest.mark.parametrize("title", [title for title in OBJECTS if title != TOP])
def test_the_example_of_a_section_fits_the_schema(title: str) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", SECTIONS[title], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, "one example for every section"
    schema = {**OBJECTS[title], "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads(blocks[0]))
