"""The code that decides a score is frozen by hash, part by part."""

from __future__ import annotations

from pathlib import Path

import pytest

import xgent_evolve
from xgent_evolve.canonical import digest_bytes, digest_json
from xgent_evolve.errors import DriftError
from xgent_evolve.freeze.code import PARTS, code_digests, payload_files, require_code


def test_every_part_has_a_digest_and_they_differ():
    digests = code_digests()
    assert set(digests) == set(PARTS)
    assert len(set(digests.values())) == len(PARTS)


def test_a_module_of_the_top_level_is_frozen_by_its_bytes():
    source = Path(xgent_evolve.__file__).with_name("redact.py").read_bytes()
    listing = [["redact.py", digest_bytes(source)]]
    document = {"type": "xgent-evolve/code/1", "part": "redact.py", "files": listing}
    assert code_digests()["redact.py"] == digest_json(document)


def test_the_payload_has_the_shipped_scripts_and_nothing_of_pythons_own():
    names = set(payload_files())
    assert "supervisor.sh" in names
    assert not any("__pycache__" in name or name.endswith(".pyc") for name in names)
    assert "__init__.py" not in names


def test_the_same_code_is_accepted():
    require_code(code_digests())


@pytest.mark.parametrize("frozen", [{}, {"measure": "blake3:" + "0" * 64}])
def test_other_or_missing_parts_are_named(frozen):
    with pytest.raises(DriftError) as caught:
        require_code(frozen)
    assert caught.value.code == "E_RUN_CODE"
    assert caught.value.exit_code == 3
    for part in PARTS:
        assert part in caught.value.where


def test_a_part_that_no_longer_exists_is_named():
    with pytest.raises(DriftError, match="quality"):
        require_code(code_digests() | {"quality": "blake3:" + "0" * 64})
