"""DUR-02: a store that never believes its file names, and never deletes what it cannot read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import StoreError
from xgent_evolve.freeze.crew import take_all
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.snapshot import intake, keep
from xgent_evolve.store.blobs import BlobStore

CONTENT = b"what was frozen\n" * 100


@pytest.fixture
def source(tmp_path):
    root = tmp_path / "source"
    root.mkdir()
    (root / "file").write_bytes(CONTENT)
    (root / "other").write_bytes(b"other\n")
    (root / "large").write_bytes(b"large\n" * 400_000)
    return root


def bring(source, store):
    """Read the source into the store, as freezing does; return the digest of `file`."""
    with intake(store) as staging, DiskReader(source) as reader:
        found = take_all(reader, sorted(path.name for path in source.iterdir()), staging)
        keep(found.values(), str(source), staging, store, lambda _path: b"")
    return found["file"].blob


def stored(store, digest):
    name = digest.removeprefix("blake3:")
    return store.root / name[:2] / name[2:]


DAMAGE = {
    "truncated": CONTENT[:-7],
    "one byte flipped": CONTENT[:40] + b"!" + CONTENT[41:],
    "zeroed": bytes(len(CONTENT)),
    "empty": b"",
}


@pytest.mark.parametrize("how", DAMAGE)
def test_dur02_damage_is_found_kept_aside_and_healed_from_the_source(source, tmp_path, how):
    digest = bring(source, BlobStore(tmp_path / "blobs"))
    file = stored(BlobStore(tmp_path / "blobs"), digest)
    file.chmod(0o644)
    file.write_bytes(DAMAGE[how])
    store = BlobStore(tmp_path / "blobs")
    with pytest.raises(StoreError) as caught:
        store.get(digest)
    assert caught.value.code == "E_STORE_CORRUPT"
    assert caught.value.exit_code == 3
    assert caught.value.where == str(file)
    (kept,) = (store.root / "quarantine").iterdir()
    assert kept.read_bytes() == DAMAGE[how]
    assert not store.has(digest)
    assert bring(source, store) == digest
    assert store.get(digest) == CONTENT


@pytest.mark.parametrize("how", ["truncated", "empty"])
def test_dur02_a_file_of_another_size_is_no_hit_and_is_replaced(source, tmp_path, how):
    digest = bring(source, BlobStore(tmp_path / "blobs"))
    file = stored(BlobStore(tmp_path / "blobs"), digest)
    file.chmod(0o644)
    file.write_bytes(DAMAGE[how])
    store = BlobStore(tmp_path / "blobs")
    bring(source, store)
    assert store.get(digest) == CONTENT
    assert [path.read_bytes() for path in (store.root / "quarantine").iterdir()] == [DAMAGE[how]]


def test_dur02_what_cannot_be_read_is_an_error_and_stays(source, tmp_path):
    store = BlobStore(tmp_path / "blobs")
    digest = bring(source, store)
    file = stored(store, digest)
    file.chmod(0o644)
    file.unlink()
    file.mkdir()
    with pytest.raises(StoreError) as caught:
        BlobStore(tmp_path / "blobs").get(digest)
    assert caught.value.code == "E_STORE_IO"
    assert file.is_dir()
    assert not (store.root / "quarantine").exists()


def test_dur02_a_second_intake_writes_nothing(source, tmp_path):
    store = BlobStore(tmp_path / "blobs")
    bring(source, store)
    before = {path: path.stat().st_ino for path in store.root.rglob("*") if path.is_file()}
    bring(source, BlobStore(tmp_path / "blobs"))
    assert {path: path.stat().st_ino for path in store.root.rglob("*") if path.is_file()} == before
    assert list((store.root / "staging").iterdir()) == []


def test_dur02_without_a_barrier_every_file_and_directory_is_synced(source, tmp_path):
    store = BlobStore(tmp_path / "blobs", barrier=lambda _path: False)
    digest = bring(source, store)
    assert store.get(digest) == CONTENT
    assert list((store.root / "staging").iterdir()) == []
    assert len(list(store.digests())) == 3


def test_dur02_two_intakes_of_the_same_bytes_both_succeed(source, tmp_path):
    one, two = BlobStore(tmp_path / "blobs"), BlobStore(tmp_path / "blobs")
    with intake(one) as first, intake(two) as second:
        for store, staging in ((one, first), (two, second)):
            with DiskReader(source) as reader:
                found = take_all(reader, ["file", "large", "other"], staging)
            keep(found.values(), str(source), staging, store, lambda _path: b"")
    digest = digest_bytes(CONTENT)
    assert one.get(digest) == two.get(digest) == CONTENT
    assert len(list(one.digests())) == 3
    assert not (one.root / "quarantine").exists()


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="needs root")
def test_dur02_a_full_disk_leaves_nothing_and_gets_its_space_back(source, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=False)
    if done.returncode != 0:
        pytest.skip("may not mount")
    try:
        store = BlobStore(disk / "blobs")
        with pytest.raises(StoreError) as caught:
            bring(source, store)
        assert caught.value.code == "E_STORE_NO_SPACE"
        assert list(store.digests()) == []
        assert list((store.root / "staging").iterdir()) == []
        (source / "large").unlink()
        assert store.get(bring(source, store)) == CONTENT
    finally:
        subprocess.run(["umount", disk], check=True)


def test_dur02_killed_at_any_point_of_an_intake_no_half_file_has_a_final_name(source, tmp_path):
    code = (
        "import sys; from pathlib import Path; from xgent_evolve.store.blobs import BlobStore\n"
        "from xgent_evolve.freeze.crew import take_all\n"
        "from xgent_evolve.freeze.disk import DiskReader\n"
        "from xgent_evolve.freeze.snapshot import intake, keep\n"
        "source, store = Path(sys.argv[1]), BlobStore(Path(sys.argv[2]))\n"
        "with intake(store) as staging, DiskReader(source) as reader:\n"
        "    found = take_all(reader, ['file', 'large', 'other'], staging)\n"
        "    keep(found.values(), str(source), staging, store, lambda _path: b'')\n"
    )
    package = Path(sys.modules["xgent_evolve"].__file__).parents[1]
    killed = 0
    for point in range(1, 60, 2):
        root = tmp_path / f"blobs{point}"
        words = [sys.executable, "-c", code, source, root]
        environment = os.environ | {"XGENT_EVOLVE_CRASH_AT": str(point)}
        done = subprocess.run(words, cwd=package, env=environment, check=False)
        store = BlobStore(root)
        for digest in store.digests():
            store.get(digest)
        store.sweep()
        assert store.get(bring(source, store)) == CONTENT
        if done.returncode == 0:
            break
        assert done.returncode == -9
        killed += 1
    assert 5 <= killed < 28


def test_what_is_gathered_is_readable_at_once_and_named_at_the_end(source, tmp_path):
    store = BlobStore(tmp_path / "blobs", manifests=tmp_path / "bundles")
    with store.gathering():
        digest = bring(source, store)
        small, manifest = store.put(b"small"), store.put_manifest(b"manifest")
        assert list(store.digests()) == []
        assert store.get(digest) == CONTENT
        assert store.has(small, 5)
        assert not store.has(small, 6)
        assert store.get(manifest) == b"manifest"
    again = BlobStore(tmp_path / "blobs", manifests=tmp_path / "bundles")
    assert set(again.digests()) >= {digest, small, manifest}
    assert len(list(again.digests())) == 5
    kept = {path.parent.name + path.name for path in (tmp_path / "bundles").glob("[0-9a-f]?/*")}
    assert kept == {manifest.removeprefix("blake3:")}, "manifests have a place of their own"
    assert again.get(small) == b"small"
    assert again.sweep() == 0


def test_a_gathering_that_fails_leaves_nothing(source, tmp_path):
    store = BlobStore(tmp_path / "blobs", manifests=tmp_path / "bundles")

    def fail():
        with store.gathering():
            bring(source, store)
            store.put_manifest(b"manifest")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and source not in path.parents
    ] == []
    assert store.get(bring(source, store)) == CONTENT
