"""Many files are read by several processes at once, and nothing of it shows in the result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from xgent_evolve.errors import DriftError, RefusedError
from xgent_evolve.freeze import crew
from xgent_evolve.freeze.build import build_protocol, reachable
from xgent_evolve.freeze.crew import take_all
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.reading import take
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.memory import MemoryBlobs

MANY = 1_600


@pytest.fixture
def many(tmp_path):
    """Return a directory with more files than one process reads alone."""
    root = tmp_path / "many"
    for number in range(MANY):
        path = root / f"d{number % 40}" / f"f{number:04}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%d\n" % (number // 2))
    (root / "d0" / "link").symlink_to("f0000")
    (root / "d1" / "run").write_bytes(b"x" * 1_200_000)
    (root / "d1" / "run").chmod(0o755)
    return root


def paths_of(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


def test_several_processes_find_what_one_finds(many):
    paths = [*paths_of(many), "d0/absent"]
    with DiskReader(many) as reader:
        alone = {path: take(reader, path, None, "sha1") for path in paths}
        shared = take_all(reader, paths, None, "sha1")
    assert alone.pop("d0/absent") is None
    assert shared == alone
    assert list(shared) == paths[:-1]


def test_equal_bytes_are_staged_once_and_everything_arrives(many, tmp_path):
    store = BlobStore(tmp_path / "blobs")
    staging = store.staging()
    with DiskReader(many) as reader:
        found = take_all(reader, paths_of(many), staging)
    staged = [path for path in staging.directory.rglob("*") if path.is_file()]
    assert len(staged) == MANY // 2 + 1
    assert {path.stat().st_mode & 0o777 for path in staged} == {0o444}
    assert {item.blob for item in found.values() if item.kind == "file"} == {
        f"blake3:{path.parent.name}{path.name}" for path in staged
    }


def test_the_first_refusal_in_the_order_of_the_paths_is_told(many):
    for name in ("d7/f0007", "d3/f0003", "d9/f0009"):
        (many / name).unlink()
        os.mkfifo(many / name)
    with DiskReader(many) as reader, pytest.raises(RefusedError) as caught:
        take_all(reader, paths_of(many), None)
    assert caught.value.code == "E_FREEZE_SPECIAL_FILE"
    assert caught.value.where.endswith("d3/f0003")


def test_a_process_that_dies_is_no_success(many, tmp_path):
    # The members inherit the environment: each is killed at its tenth staged file.
    code = (
        "import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2]);"
        "from xgent_evolve.store.blobs import BlobStore;"
        "from xgent_evolve.freeze.crew import take_all;"
        "from xgent_evolve.freeze.disk import DiskReader;"
        "from xgent_evolve.errors import DriftError\n"
        "root = Path(sys.argv[1]);"
        "paths = sorted(str(p.relative_to(root)) for p in root.rglob('*') if not p.is_dir());"
        "staging = BlobStore(root.parent / 'blobs').staging();"
        "os.environ['XGENT_EVOLVE_CRASH_AT'] = 'staging.write:10'\n"
        "with DiskReader(root) as reader:\n"
        "    try: take_all(reader, paths, staging)\n"
        "    except DriftError as error: print(error.code)"
    )
    package = Path(crew.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, many, package], capture_output=True, text=True, check=True
    )
    assert done.stdout == "E_FREEZE_RACE\n"


def test_no_module_of_the_present_directory_is_imported(many, monkeypatch, tmp_path):
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "json.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(hostile)
    with DiskReader(many) as reader:
        take_all(reader, paths_of(many), None)
    assert not (tmp_path / "ran").exists()


def test_a_directory_that_changes_meanwhile_is_refused(many):
    with DiskReader(many) as reader:
        assert reader.kind("d5/f0005") == "file"
        (many / "d5" / "new").touch()
        with pytest.raises(DriftError) as caught:
            take_all(reader, paths_of(many), None)
    assert caught.value.code == "E_FREEZE_RACE"
    assert caught.value.where.endswith("/d5")


def test_a_large_study_is_the_same_in_memory_and_on_disk(study, tmp_path):
    for number in range(MANY):
        study.write(f"src/d{number % 40}/f{number}", f"{number}\n")
    study.commit()
    store = BlobStore(tmp_path / "blobs")
    on_disk = build_protocol(study.load(), store)
    assert on_disk.to_bytes() == build_protocol(study.load(), MemoryBlobs()).to_bytes()
    assert on_disk.to_bytes() == build_protocol(study.load(), store).to_bytes()
    assert set(reachable(on_disk, store)) <= set(store.digests())
    assert not list((tmp_path / "blobs/staging").iterdir())
