"""Whatever the bytes are, loading ends in a LoadedSpec or a SpecError."""

from __future__ import annotations

import copy
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xgent_evolve.errors import SpecError
from xgent_evolve.redact import printable
from xgent_evolve.spec.load import LoadedSpec, load_spec
from xgent_evolve.spec.locate import JsonPath, path_text
from xgent_evolve.spec.paths import SAFE_PATH_PATTERN, unsafe_reason
from xgent_evolve.spec.scan import scan

TEMPLATE = Path(__file__).parents[2] / "examples" / "skill-compare.json"
FILLINGS = {"TARGET_GIT_SHA": "a" * 40, "REMOTE_ROOT": "/srv/x", "SSH_HOST": "host"} | {
    "DOCKER_VERSION": "28",
    "CODEX_ARCHITECTURE": "x86_64",
    "INFORMATION_CUTOFF": "2026-01-31",
}


def valid() -> dict[str, Any]:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        image = f"sha256:{'0' * 64}"
        return FILLINGS.get(name, image if name.endswith("DIGEST") else name.lower())

    document: dict[str, Any] = json.loads(
        re.sub(r"<([A-Z_]+)>", value, TEMPLATE.read_text(encoding="utf-8"))
    )
    return document


VALID = valid()

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["skill", "agents", "absent", "../x", "~/x", "/", "<NAME>", "skill_path"])
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=12,
)


def places(value: object, path: JsonPath = ()) -> list[JsonPath]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


def at(value: Any, path: JsonPath) -> Any:
    for element in path:
        value = value[element]
    return value


@st.composite
def mutated(draw: st.DrawFn) -> dict[str, Any]:
    """A valid study with a few values replaced, removed or added."""
    document = copy.deepcopy(VALID)
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from([place for place in places(document) if place]))
        parent, last = at(document, path[:-1]), path[-1]
        match draw(st.sampled_from(["replace", "remove", "add", "move"])):
            case "replace":
                parent[last] = draw(json_values)
            case "remove":
                del parent[last]
            case "add" if isinstance(parent, dict):
                parent[draw(st.text(max_size=8) | st.sampled_from(["repats", "$schema"]))] = draw(
                    json_values
                )
            case _:
                parent[last] = copy.deepcopy(at(VALID, draw(st.sampled_from(places(VALID)))))
    return document


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spec") / "job.json"


def outcome(path: Path, content: bytes) -> LoadedSpec | SpecError:
    path.write_bytes(content)
    try:
        return load_spec(path)
    except SpecError as error:
        refused = error
    assert refused.faults
    assert all(fault.code.startswith("E_SPEC_") and fault.where for fault in refused.faults)
    return refused


def test_the_study_that_is_mutated_is_valid(path: Path) -> None:
    assert isinstance(outcome(path, json.dumps(VALID).encode()), LoadedSpec)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(document=mutated())
def test_a_mutated_study_ends_in_a_spec_or_in_faults(path: Path, document: object) -> None:
    outcome(path, json.dumps(document).encode())


@settings(max_examples=200, deadline=None)
@given(document=json_values)
def test_random_json_ends_in_faults(path: Path, document: object) -> None:
    assert isinstance(outcome(path, json.dumps(document).encode()), SpecError)


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200))
def test_random_bytes_end_in_faults(path: Path, content: bytes) -> None:
    assert isinstance(outcome(path, content), SpecError)


@settings(max_examples=300, deadline=None)
@given(position=st.integers(0, 10_000), character=st.characters(codec="utf-8") | st.just(""))
def test_one_changed_character_ends_in_a_spec_or_in_faults(
    path: Path, position: int, character: str
) -> None:
    text = json.dumps(VALID)
    position %= len(text)
    outcome(path, (text[:position] + character + text[position + 1 :]).encode())


@given(document=json_values)
def test_reading_gives_what_the_standard_reader_gives(document: object) -> None:
    text = json.dumps(document, indent=1)
    scanned = scan(text)
    if not scanned.flaws:
        assert as_floats(scanned.value) == json.loads(text)


def as_floats(value: Any) -> Any:
    match value:
        case Decimal():
            return float(value)
        case list():
            return [as_floats(item) for item in value]
        case dict():
            return {key: as_floats(item) for key, item in value.items()}
        case _:
            return value


@given(text=st.text(alphabet='{}[]",:\\0123456789.eE+-truefalsn \n', max_size=40))
def test_reading_refuses_exactly_what_is_not_json(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert any(flaw.code == "E_SPEC_SYNTAX" for flaw in scan(text).flaws)
    else:
        assert not any(flaw.code == "E_SPEC_SYNTAX" for flaw in scan(text).flaws)


@given(document=json_values)
def test_every_path_is_found_at_the_text_of_its_value(document: object) -> None:
    text = json.dumps(document, indent=2)
    scanned = scan(text)
    if scanned.value is None and document is not None:
        return
    lines = text.split("\n")
    for place in places(document):
        assert scanned.holds(place)
        line, column = scanned.position(place)
        value = at(document, place)
        rest = lines[line - 1][column - 1 :]
        assert rest.startswith(first_character(value)), path_text(place)
        if place and isinstance(place[-1], str):
            key_line, key_column = scanned.key_position(place)
            assert lines[key_line - 1][key_column - 1 :].startswith(json.dumps(place[-1]))


def first_character(value: object) -> str:
    match value:
        case float() if not math.isfinite(value):
            return json.dumps(value)
        case dict():
            return "{"
        case list():
            return "["
        case _:
            return json.dumps(value)


@given(text=st.text(max_size=30) | st.text(alphabet="ab./\\~ \n", max_size=12))
def test_the_published_pattern_accepts_every_safe_path(text: str) -> None:
    if unsafe_reason(text) is None:
        assert re.search(SAFE_PATH_PATTERN, text)


@given(text=st.text(alphabet=st.characters() | st.sampled_from("\x1b[]\x9b\x07;m\u202e")))
def test_printable_text_has_no_control_characters_and_stays_as_it_is(text: str) -> None:
    shown = printable(text)
    assert printable(shown) == shown
    assert all(char in "\n\t" or ord(char) >= 32 for char in shown)
