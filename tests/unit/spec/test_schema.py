"""The published JSON Schema is the model's, and agrees with the reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from xgent_evolve.errors import InvalidError
from xgent_evolve.spec.schema import schema_document, schema_name, schema_text, write_schemas
from xgent_evolve.spec.versions import VERSIONS

PUBLISHED = Path(__file__).parents[3] / "schemas"


@pytest.mark.parametrize("version", VERSIONS)
def test_the_committed_schema_is_the_generated_one(version: int) -> None:
    committed = (PUBLISHED / schema_name(version)).read_text(encoding="utf-8")
    assert committed == schema_text(version), "run: python -m xgent_evolve.spec.schema"


def test_writing_the_schemas_gives_the_committed_files(tmp_path: Path) -> None:
    for path in write_schemas(tmp_path):
        assert path.read_bytes() == (PUBLISHED / path.name).read_bytes()


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_is_a_schema_with_id_title_and_descriptions(version: int) -> None:
    document = schema_document(version)
    jsonschema.Draft202012Validator.check_schema(document)
    assert document["$id"] == f"urn:xgent-evolve:job-spec:v{version}"
    assert f"version {version}" in str(document["title"])
    assert undescribed(document) == []


def undescribed(document: Any) -> list[str]:
    parts = {"(root)": document} | document["$defs"]
    return [
        f"{name}.{field}"
        for name, part in parts.items()
        for field, content in part.get("properties", {}).items()
        if not content.get("description")
    ]


def test_the_schema_accepts_what_the_reader_accepts(
    study: dict[str, Any], quality_study: dict[str, Any]
) -> None:
    jsonschema.validate(study, schema_document(1))
    jsonschema.validate(quality_study, schema_document(2))


@pytest.mark.parametrize(
    "edit",
    [
        {"surprise": 1},
        {"schema_version": 2},
        {"measurement": None},
        {"guardrails": [{"name": "task_contract", "floor": "0.5"}]},
        {"guardrails": [{"name": "task_contract", "floor": 1.5}]},
        {"source": {"paths": ["../outside"]}},
        {"source": {"paths": ["/outside"]}},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(
    study: dict[str, Any], edit: dict[str, Any]
) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(study | edit, schema_document(1))


def test_the_templates_satisfy_the_schema_but_for_their_placeholders() -> None:
    for path in sorted((PUBLISHED.parent / "examples").glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        schema = schema_document(document["schema_version"])
        errors = jsonschema.Draft202012Validator(schema).iter_errors(document)
        assert all("<" in str(error.instance) for error in errors), path.name


def test_an_unknown_version_has_no_schema() -> None:
    with pytest.raises(InvalidError) as caught:
        schema_document(9)
    assert (caught.value.code, caught.value.exit_code) == ("E_SPEC_VERSION", 2)
