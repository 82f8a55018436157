"""docs/job-spec.md and job-spec-v2.md name every field of the schemas, with its default."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
TOP = "The document"

type Schema = dict[str, Any]


@dataclass(frozen=True)
class Version:
    """A version of the format: its schema and the sections about it."""

    schema: Schema
    sections: dict[str, str]

    def resolved(self, schema: Schema) -> Schema:
        """Follow references, and step over the option to be null."""
        if "$ref" in schema:
            return self.resolved(self.schema["$defs"][schema["$ref"].rsplit("/", 1)[1]])
        choices = [item for item in schema.get("anyOf", []) if item.get("type") != "null"]
        return self.resolved(choices[0]) if len(choices) == 1 else schema

    def objects(self, schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
        """Yield the title of its section and the schema of every object with fields."""
        found = self.resolved(schema)
        if found.get("type") == "array":
            yield from self.objects(found["items"], f"{path}[]")
        elif "oneOf" in found:
            tag = found["discriminator"]["propertyName"]
            for value, reference in sorted(found["discriminator"]["mapping"].items()):
                yield f"`{path}`, {tag} `{value}`", self.resolved({"$ref": reference})
        elif "properties" in found:
            yield (f"`{path}`" if path else TOP), found
            for name, field in found["properties"].items():
                yield from self.objects(field, f"{path}.{name}" if path else name)

    def rows(self, title: str) -> dict[str, list[str]]:
        """Return the cells of a section's table by field."""
        lines = [line for line in self.sections[title].splitlines() if line.startswith("| `")]
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
        return {row[0].strip(" `"): row for row in cells}


def version(number: int, document: str) -> Version:
    schema = json.loads((ROOT / "schemas" / f"job-spec.v{number}.json").read_text())
    text = (ROOT / "docs" / document).read_text()
    sections = re.findall(r"^##+ ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    return Version(schema, {title.strip(): body for title, body in sections})


FIRST, SECOND = version(1, "job-spec.md"), version(2, "job-spec-v2.md")
OF_FIRST, OF_SECOND = dict(FIRST.objects(FIRST.schema)), dict(SECOND.objects(SECOND.schema))


def changed() -> dict[str, list[str]]:
    """Return the fields of version 2 that version 1 does not have, or has otherwise."""
    fields = {
        title: [
            name
            for name, field in schema["properties"].items()
            if field != OF_FIRST.get(title, {"properties": {}})["properties"].get(name)
        ]
        for title, schema in OF_SECOND.items()
    }
    return {title: names for title, names in fields.items() if names}


EVERY = [(FIRST, OF_FIRST, title) for title in OF_FIRST]
EVERY += [(SECOND, OF_SECOND, title) for title in changed()]


def test_every_object_of_the_schema_has_a_section() -> None:
    assert set(FIRST.sections) == set(OF_FIRST)
    assert set(SECOND.sections) == {*changed(), "What counts in the budget"}


@pytest.mark.parametrize("title", OF_FIRST)
def test_a_section_lists_exactly_the_fields(title: str) -> None:
    check_rows(FIRST, title, list(OF_FIRST[title]["properties"]))


@pytest.mark.parametrize(("title", "fields"), changed().items())
def test_a_section_of_version_2_lists_exactly_what_differs(title: str, fields: list[str]) -> None:
    check_rows(SECOND, title, fields)


def check_rows(version: Version, title: str, fields: list[str]) -> None:
    found = version.rows(title)
    assert list(found) == fields
    assert all(len(row) == 4 and all(row) for row in found.values()), "four cells, none empty"


@pytest.mark.parametrize(("version", "objects", "title"), EVERY)
def test_a_section_tells_what_is_required_and_the_defaults(
    version: Version, objects: dict[str, Schema], title: str
) -> None:
    schema = objects[title]
    for name, row in version.rows(title).items():
        shown = row[2].strip("`")
        if name in schema.get("required", []):
            assert shown == "required", name
        elif "default" in schema["properties"][name]:
            assert json.loads(shown) == schema["properties"][name]["default"], name
        else:
            assert isinstance(json.loads(shown), list | dict), f"{name} has an empty default"


@pytest.mark.parametrize(
    ("version", "objects", "title"), [item for item in EVERY if item[2] != TOP]
)
def test_the_example_of_a_section_fits_the_schema(
    version: Version, objects: dict[str, Schema], title: str
) -> None:
    blocks = re.findall(r"^```json\n(.*?)^```$", version.sections[title], re.MULTILINE | re.DOTALL)
    assert len(blocks) == 1, "one example for every section"
    schema = {**objects[title], "$defs": version.schema["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(json.loads(blocks[0]))
