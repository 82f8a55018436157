"""The runner is one archive for any Python from 3.8 on, and nothing else."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

PAYLOAD = Path(__file__).parents[2] / "xgent_evolve" / "payload"
MODULES = sorted((PAYLOAD / "host_runner").glob("*.py"))


def old_python() -> str | None:
    """Return a Python 3.8, or None."""
    found = shutil.which("python3.8")
    places = [found, *Path.home().glob(".pyenv/versions/3.8.*/bin/python")]
    for place in filter(None, places):
        done = subprocess.run([place, "-V"], capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.startswith("Python 3.8."):
            return str(place)
    return None


def test_every_module_is_written_in_the_syntax_of_python_3_8() -> None:
    for path in MODULES:
        tree = ast.parse(path.read_text(), path.name, feature_version=(3, 8))
        # The grammar of today reads parenthesised items of `with` for every version.
        for node in ast.walk(tree):
            if isinstance(node, ast.With) and len(node.items) > 1:
                head = path.read_text().splitlines()[node.lineno - 1]
                assert not head.rstrip().endswith("("), f"{path.name}:{node.lineno}"


def test_every_import_is_of_the_standard_library_or_of_the_archive() -> None:
    own = {path.stem for path in MODULES}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [item.name for item in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) else []
            assert {name.split(".")[0] for name in names} <= own | sys.stdlib_module_names


def test_files_and_functions_stay_small_enough_to_be_read() -> None:
    for path in MODULES:
        assert len(path.read_text().splitlines()) <= 400
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 50, f"{path.name}: {node.name}"


def test_every_point_in_the_code_is_listed() -> None:
    source = "".join(path.read_text() for path in MODULES)
    named = set(re.findall(r'(?:around|point)\("([a-z._]+)"', source)) - {"start_"}
    [listed] = re.findall(r"EFFECTS = \((.*?)\)", source, re.DOTALL)
    assert named - {"receipt."} == set(re.findall(r'"([a-z._]+)"', listed))
    supervisor = re.findall(
        r"^ *point ([a-z.]+)$", (PAYLOAD / "supervisor.sh").read_text(), re.MULTILINE
    )
    [listed] = re.findall(r"SUPERVISOR = \((.*?)\)", source, re.DOTALL)
    wanted = {name.removeprefix("supervisor.") for name in re.findall(r'"([a-z._]+)"', listed)}
    assert set(supervisor) == wanted


@pytest.mark.engine
def test_the_archive_carries_out_an_execution_with_python_3_8(kit: Any) -> None:
    python = old_python()
    if python is None:
        return  # then the test of the syntax stands alone
    runner = kit.runner(python=python)
    probe = runner.ask("probe", docker_path=kit.docker, socket=kit.socket, images=[])
    assert probe["python"].startswith("3.8.")
    work = kit.work("echo new >new; exit 3", from_image="/srv")
    result = runner.execute(work)
    assert result.record["exit_code"] == 3
    assert [change["path"] for change in result.delivery["changes"]] == ["new"]
    assert runner.ask("residue", socket=kit.socket)
    assert runner.clean(work)["kind"] == "cleaned"


# What is pure is tried with everything.


@pytest.fixture(scope="module")
def redaction() -> ModuleType:
    path = PAYLOAD / "host_runner" / "redaction.py"
    spec = importlib.util.spec_from_file_location("xgent_test_redaction", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SECRETS = st.lists(st.text("ab", min_size=1, max_size=6).map(str.encode), max_size=4)


@given(secrets=SECRETS, parts=st.lists(st.text("abc", max_size=9).map(str.encode), max_size=9))
def test_redaction_does_not_depend_on_where_the_chunks_end(
    redaction: ModuleType, secrets: list[bytes], parts: list[bytes]
) -> None:
    whole = redaction.Redactor(secrets)
    expected = b"".join(whole.clean([b"".join(parts)]))
    pieces = redaction.Redactor(secrets)
    assert b"".join(pieces.clean(parts)) == expected
    assert pieces.count == whole.count
    assert not any(secret in part for secret in secrets for part in expected.split(redaction.MARK))


KEYS = st.text(
    st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=16, max_size=40
)


@given(key=KEYS.map(str.encode), before=st.binary(max_size=80), after=st.binary(max_size=80))
def test_a_secret_is_found_in_base64_of_anything_and_in_an_address(
    redaction: ModuleType, key: bytes, before: bytes, after: bytes
) -> None:
    bare = [base64.b64encode(before + key + after), base64.urlsafe_b64encode(before + key + after)]
    written = [
        *bare,
        base64.encodebytes(before + key + after),
        bare[0].replace(b"\n", b"\r\n"),
        b"https://host/?key=" + urllib.parse.quote(key, safe="").encode() + b"&x=1",
        json.dumps({"key": key.decode()}).encode(),
    ]
    for text in written:
        redactor = redaction.Redactor([key])
        assert redaction.MARK in b"".join(redactor.clean([text]))
        assert redactor.count >= 1
    # At most a character of base64 on either side is decided by the key and its neighbour.
    left = b"".join(redaction.Redactor([key]).clean([base64.b64encode(key)]))
    assert len(left.replace(redaction.MARK, b"").rstrip(b"=")) <= 1


@settings(max_examples=30)
@given(key=KEYS.map(str.encode), before=st.binary(max_size=40), after=st.binary(max_size=40))
def test_what_is_still_written_shows_no_part_of_a_secret_and_only_grows(
    redaction: ModuleType, key: bytes, before: bytes, after: bytes
) -> None:
    for middle in (key, base64.encodebytes(b"." + key)):
        content = before + middle + after
        shown = b""
        for size in range(len(content) + 1):
            now = redaction.Redactor([key]).so_far(content[:size])
            assert now.startswith(shown)
            shown = now
        whole = b"".join(redaction.Redactor([key]).clean([content]))
        assert whole.startswith(shown)


def test_the_leaves_of_a_credential_are_secret_and_its_short_words_are_not(
    redaction: ModuleType,
) -> None:
    content = b'{"mode": "apikey", "tokens": [{"id": "0123456789abcdef"}], "n": 1}\n'
    assert set(redaction.secret_values(content)) == {content.strip(), b"0123456789abcdef"}
    assert redaction.secret_values(b"plain-secret\n") == [b"plain-secret"]
    assert redaction.secret_values(None) == []
