"""Reading a JobSpec: every fault, its place, its nearest cure."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.errors import Fault, SpecError
from xgent_evolve.spec.load import LoadedSpec, load_spec

type Study = dict[str, Any]
type Load = Callable[[object], LoadedSpec]
type Faults = Callable[[object], list[Fault]]


def test_a_valid_study_loads_with_its_bytes_and_exact_decimals(
    study: Study, load: Load, tmp_path: Path
) -> None:
    study["measurement"]["min_gain"] = 0
    loaded = load(json.dumps(study).replace('"confidence": 0.95', '"confidence": 0.950'))
    assert str(loaded.spec.measurement.confidence) == "0.950"
    assert loaded.spec.measurement.min_gain == Decimal(0)
    assert loaded.content == (tmp_path / "job.json").read_bytes()
    assert loaded.spec.cases[0].public_paths == ["instruction.md"]


def test_paths_resolve_from_the_directory_of_the_job_spec_and_from_home(
    study: Study, load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load(study)
    monkeypatch.setenv("HOME", "/home/someone")
    assert loaded.resolve("repo/x") == tmp_path / "repo" / "x"
    assert loaded.resolve("/abs") == Path("/abs")
    assert loaded.resolve("~/x") == Path("/home/someone/x")
    assert loaded.resolve("~other/x") == tmp_path / "~other" / "x"


def test_all_faults_come_at_once_and_unknown_keys_come_first(study: Study, faults: Faults) -> None:
    study["mode"] = "comparison"
    study["budget"]["max_trails"] = study["budget"].pop("max_trials")
    study["measurement"]["repeats"] = 0
    found = faults(study)
    assert [fault.code for fault in found] == [
        "E_SPEC_UNKNOWN_KEY",
        "E_SPEC_VALUE",
        "E_SPEC_MISSING_KEY",
        "E_SPEC_VALUE",
    ]
    assert '"max_trials"' in found[0].expected
    assert '"max_trials"' in found[0].fix
    assert "Most agent executions" in found[2].expected
    assert all(fault.expected and fault.found and fault.fix for fault in found)


def test_a_fault_is_placed_by_file_line_column_and_json_path(
    study: Study, faults: Faults, tmp_path: Path
) -> None:
    study["runtime"]["ssh"]["port"] = 0
    (fault,) = faults(study)
    line = next(
        number
        for number, text in enumerate((tmp_path / "job.json").read_text().splitlines(), 1)
        if '"port": 0' in text
    )
    assert fault.where == f"{tmp_path / 'job.json'}:{line}:15: $.runtime.ssh.port"
    assert (fault.expected, fault.found) == ("at least 1", "0")


@pytest.mark.parametrize(
    ("field", "value", "code", "expected"),
    [
        (("question",), 3, "E_SPEC_TYPE", "text in double quotes"),
        (("question",), "  ", "E_SPEC_VALUE", "not blank"),
        (("mode",), 3, "E_SPEC_TYPE", '"smoke", "compare" or "search"'),
        (("budget", "max_retries"), 1.0, "E_SPEC_TYPE", "an integer"),
        (("budget", "max_retries"), True, "E_SPEC_TYPE", "an integer"),
        (("budget", "max_retries"), "1", "E_SPEC_TYPE", "an integer"),
        (("budget", "max_retries"), 11, "E_SPEC_VALUE", "at most 10"),
        (("measurement", "min_gain"), "0.1", "E_SPEC_TYPE", "a number"),
        (("measurement", "min_gain"), True, "E_SPEC_TYPE", "a number"),
        (("measurement", "confidence"), 1, "E_SPEC_VALUE", "less than 1"),
        (("runtime", "sampling", "seed"), 7, "E_SPEC_TYPE", "null"),
        (("runtime", "tools"), "shell", "E_SPEC_TYPE", "an array"),
        (("runtime", "tools", 0), "browser", "E_SPEC_VALUE", '"shell"'),
        (("authority", "allow_apply"), "yes", "E_SPEC_TYPE", "true or false"),
        (("conditions", 0), [], "E_SPEC_TYPE", "an object"),
        (("target", "paths"), [], "E_SPEC_VALUE", "at least 1 item"),
        (("target", "paths", 0), "../x", "E_SPEC_VALUE", "a relative path"),
        (("target", "base_commit"), "abc", "E_SPEC_VALUE", "full Git commit id"),
        (("cases", 0, "source", "kind"), "git", "E_SPEC_VALUE", '"repo", "local", "public"'),
        (("cases", 0, "image"), "task:latest", "E_SPEC_VALUE", "image by digest"),
        (("cases", 0, "platform"), "linux/arm64", "E_SPEC_VALUE", '"linux/amd64"'),
        (("runtime", "remote_root"), "/srv/a\tb", "E_SPEC_VALUE", "absolute path"),
        (("runtime", "authentication", "source"), "env", "E_SPEC_VALUE", '"host_file"'),
    ],
)
def test_a_wrong_value_is_told_in_plain_words(
    study: Study,
    faults: Faults,
    field: tuple[str | int, ...],
    value: object,
    code: str,
    expected: str,
) -> None:
    part: Any = study
    for key in field[:-1]:
        part = part[key]
    part[field[-1]] = value
    (fault,) = [item for item in faults(study) if item.code == code]
    assert expected in fault.expected


def test_faults_inside_a_tagged_object_are_placed_where_they_stand(
    study: Study, faults: Faults
) -> None:
    study["cases"][0]["source"] = {"kind": "repo", "repo": "repo", "bass": "a"}
    study["cases"][1]["source"] = {"origin": "x"}
    found = [(fault.code, fault.where.split(": ")[1]) for fault in faults(study)]
    assert found == [
        ("E_SPEC_UNKNOWN_KEY", "$.cases[0].source.bass"),
        ("E_SPEC_MISSING_KEY", "$.cases[0].source.base"),
        ("E_SPEC_MISSING_KEY", "$.cases[1].source.kind"),
    ]


def test_a_bad_key_of_a_free_mapping_is_placed_at_the_key(study: Study, faults: Faults) -> None:
    study["conditions"][2]["overrides"] = {"/etc/passwd": "x"}
    (fault,) = faults(study)
    assert fault.message == "the path is absolute"
    assert fault.where.endswith('$.conditions[2].overrides["/etc/passwd"]')


@pytest.mark.parametrize("version", [3, 0, "1", "2", True, 1.0, 2.0, None])
def test_an_unknown_version_is_the_one_fault(study: Study, faults: Faults, version: object) -> None:
    study["schema_version"] = version
    study["something"] = 1
    (fault,) = faults(study)
    assert (fault.code, fault.expected) == ("E_SPEC_VERSION", "1 or 2")


def test_a_missing_version_is_a_missing_key(study: Study, faults: Faults) -> None:
    del study["schema_version"]
    assert [fault.code for fault in faults(study)] == ["E_SPEC_MISSING_KEY"]


def test_duplicates_and_impossible_numbers_are_told_with_the_other_faults(
    study: Study, faults: Faults
) -> None:
    text = json.dumps(study, indent=2)
    text = text.replace('"repeats": 2', '"repeats": 3, "repeats": 1')
    text = text.replace('"deadline_s": 86400', '"deadline_s": NaN')
    text = text.replace('"min_groups": 6', '"min_groups": 1')
    assert [fault.code for fault in faults(text)] == [
        "E_SPEC_NUMBER",
        "E_SPEC_VALUE",
        "E_SPEC_DUPLICATE_KEY",
    ]


def test_a_syntax_fault_stands_alone(study: Study, faults: Faults) -> None:
    assert [fault.code for fault in faults(json.dumps(study)[:-1])] == ["E_SPEC_SYNTAX"]


@pytest.mark.parametrize("document", ["[]", "null", "3", '"text"'])
def test_a_document_that_is_no_object_is_refused(faults: Faults, document: str) -> None:
    assert [fault.code for fault in faults(document)] == ["E_SPEC_TYPE"]


def test_a_placeholder_is_told_once_and_hides_what_follows_from_it(
    study: Study, faults: Faults
) -> None:
    study["target"]["base_commit"] = "<TARGET_GIT_SHA>"
    study["question"] = "Is <NAME> better?"
    (fault,) = faults(study)
    assert fault.message == "a placeholder of the template is not filled in"


def test_credentials_of_an_address_are_not_repeated(study: Study, faults: Faults) -> None:
    study["runtime"]["model_proxy"] = "http://user:s3cret/@pass@proxy:7890"
    (fault,) = faults(study)
    assert "s3cret" not in repr(fault)
    assert fault.found == '"http://***@proxy:7890"'


def test_a_long_value_is_shortened(study: Study, faults: Faults) -> None:
    study["protocol_id"] = "x" * 10_000
    (fault,) = faults(study)
    assert len(fault.found) < 120


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    not_text = tmp_path / "latin.json"
    not_text.write_bytes(b'{\n "question": "caf\xe9"}')
    huge = tmp_path / "huge.json"
    huge.write_bytes(b" " * (16 * 1024 * 1024 + 1))
    reasons = {
        tmp_path / "absent.json": "No such file",
        tmp_path: "directory",
        Path("nul\0byte"): "null byte",
        not_text: "0xe9 at line 2, byte 18",
        huge: "more than 16 MiB",
    }
    for path, reason in reasons.items():
        with pytest.raises(SpecError) as caught:
            load_spec(path)
        assert caught.value.code == "E_SPEC_READ"
        assert reason in caught.value.found


def objects(value: Any, path: str = "$") -> list[tuple[str, dict[str, Any]]]:
    """Return every object of a document with its JSON path."""
    found = [(path, value)] if isinstance(value, dict) else []
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            word = f".{key}" if isinstance(value, dict) else f"[{key}]"
            found += objects(item, path + word)
    return found


@pytest.mark.parametrize("fixture", ["study", "agents_study", "quality_study", "crossed_study"])
def test_a_misspelt_key_is_told_first_wherever_it_stands(
    request: pytest.FixtureRequest, faults: Faults, fixture: str
) -> None:
    study = request.getfixturevalue(fixture)
    closed = [item for item in objects(study) if not item[0].endswith(FREE)]
    for path, part in closed:
        key = max(part, key=len)
        part[f"{key}x"] = part.pop(key)
        first = faults(study)[0]
        assert (first.code, first.where.split(": ")[1]) == ("E_SPEC_UNKNOWN_KEY", f"{path}.{key}x")
        assert first.expected == f'"{key}" (the nearest known key)'
        part[key] = part.pop(f"{key}x")


FREE = (".weights", ".overrides", ".rubrics")
"""Objects whose keys are the caller's own."""


@pytest.mark.parametrize("fixture", ["study", "quality_study"])
def test_a_key_given_twice_is_told_wherever_it_stands(
    request: pytest.FixtureRequest, faults: Faults, fixture: str
) -> None:
    study = request.getfixturevalue(fixture)
    for path, part in objects(study):
        if not part:
            continue
        key = next(iter(part))
        part["TWIN"] = part[key]
        text = json.dumps(study).replace('"TWIN"', json.dumps(key))
        del part["TWIN"]
        (fault,) = faults(text)
        assert fault.code == "E_SPEC_DUPLICATE_KEY"
        last = f".{key}" if key.replace("_", "").replace("-", "").replace("$", "").isalnum() else ""
        assert fault.where.split(": ", 1)[1].startswith(path + last)
        assert fault.found.startswith("the first one at line 1, column ")


@pytest.mark.parametrize("spelling", ["NaN", "Infinity", "-Infinity", "1e999", "1e-999", "9" * 40])
def test_an_impossible_number_is_told_wherever_it_stands(
    quality_study: Study, faults: Faults, spelling: str
) -> None:
    for number in ('"min_gain": 0.05', '"floor": 0.5', '"max_trials": 60', '"port": 22'):
        key = number.split(":", maxsplit=1)[0]
        text = json.dumps(quality_study)
        assert number in text
        (fault,) = faults(text.replace(number, f"{key}: {spelling}"))
        assert fault.code == "E_SPEC_NUMBER"
        assert key.strip('"') in fault.where


def test_a_document_without_a_version_is_read_as_the_one_that_its_keys_belong_to(
    quality_study: Study, faults: Faults
) -> None:
    del quality_study["schema_version"]
    (fault,) = faults(quality_study)
    assert (fault.code, fault.where.split(": ")[1]) == ("E_SPEC_MISSING_KEY", "$.schema_version")


def test_very_many_faults_are_counted_and_not_all_told(study: Study, faults: Faults) -> None:
    study["source"]["paths"] = ["/up"] * 1000
    found = faults(study)
    assert len(found) == 201
    assert found[-1].found == "800 more, from here on"
