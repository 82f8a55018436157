"""Bytes by hash: durable when acknowledged, verified when read, healed when put again."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from contextlib import contextmanager

import pytest

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import StoreError
from xgent_evolve.store.blobs import EMPTY, BlobStore
from xgent_evolve.store.memory import MemoryBlobs


def file_of(store, digest):
    name = digest.removeprefix("blake3:")
    return store.root / name[:2] / name[2:]


def damage(file, content):
    file.chmod(0o644)
    file.write_bytes(content)


@pytest.fixture
def store(tmp_path):
    return BlobStore(tmp_path / "blobs")


@pytest.fixture(params=["disk", "memory"])
def blobs(request, store):
    return store if request.param == "disk" else MemoryBlobs()


def test_what_is_put_comes_back(blobs):
    digest = blobs.put(b"bytes")
    assert digest == digest_bytes(b"bytes")
    assert blobs.get(digest) == b"bytes"
    assert blobs.has(digest)
    assert blobs.has(digest, 5)
    assert not blobs.has(digest, 6)


def test_many_come_back_in_order_and_equal_ones_share_a_digest(blobs):
    contents = [b"a", b"", b"b", b"a"]
    digests = blobs.put_many(contents)
    assert [blobs.get(digest) for digest in digests] == contents
    assert digests[0] == digests[3]


def test_an_absent_blob_is_missing(blobs):
    absent = digest_bytes(b"absent")
    assert not blobs.has(absent)
    with pytest.raises(StoreError) as caught:
        blobs.get(absent)
    assert caught.value.code == "E_STORE_MISSING"


def test_opening_a_store_writes_nothing(store):
    assert not store.has(EMPTY)
    assert list(store.digests()) == []
    assert not store.root.exists()


def test_a_blob_is_a_read_only_file_below_the_first_two_digits(store):
    digest = store.put(b"bytes")
    file = file_of(store, digest)
    assert file.read_bytes() == b"bytes"
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


def test_nothing_stays_in_the_staging_directory(store):
    store.put_many([bytes([number]) for number in range(40)])
    store.put(b"one")
    assert list((store.root / "staging").iterdir()) == []


def test_a_blob_that_is_there_is_not_written_again(store):
    digest = store.put(b"bytes")
    before = file_of(store, digest).stat()
    assert store.put_many([b"bytes", b"bytes"]) == [digest, digest]
    assert file_of(store, digest).stat().st_ino == before.st_ino


@pytest.mark.parametrize("content", [b"byteX", b"byt", b"", b"bytes and more"])
def test_damaged_bytes_are_reported_with_the_file_and_kept_in_quarantine(store, content):
    digest = store.put(b"bytes")
    file = file_of(store, digest)
    damage(file, content)
    with pytest.raises(StoreError) as caught:
        store.get(digest)
    assert caught.value.code == "E_STORE_CORRUPT"
    assert str(file) in caught.value.where
    (kept,) = (store.root / "quarantine").iterdir()
    assert kept.read_bytes() == content
    assert not store.has(digest)


@pytest.mark.parametrize("content", [b"byteX", b"byt", b""])
def test_putting_the_same_bytes_again_heals_a_damaged_blob(store, content):
    digest = store.put(b"bytes")
    damage(file_of(store, digest), content)
    store.put(b"bytes")
    assert store.get(digest) == b"bytes"
    assert len(list((store.root / "quarantine").iterdir())) == 1


def test_an_empty_file_counts_only_as_the_blob_of_no_bytes(store):
    digest = store.put(b"bytes")
    damage(file_of(store, digest), b"")
    assert not store.has(digest)
    assert store.has(store.put(b""), 0)


@pytest.mark.parametrize("name", ["", "blake3:", "blake3:../../x", f"sha256:{'0' * 64}", "0" * 64])
def test_a_name_that_is_no_digest_reads_no_file(store, name):
    with pytest.raises(StoreError, match="not a digest"):
        store.get(name)


def test_manifests_lie_in_their_own_directory_and_are_found(tmp_path):
    store = BlobStore(tmp_path / "blobs", manifests=tmp_path / "bundles")
    manifest, content = store.put_manifest(b"manifest"), store.put(b"content")
    assert store.get(manifest) == b"manifest"
    assert store.has(manifest)
    assert not file_of(store, manifest).exists()
    assert set(store.digests()) == {manifest, content}


def test_sweeping_removes_what_an_interrupted_writer_left(store):
    store.put(b"bytes")
    (store.root / "staging" / "left").write_bytes(b"half")
    assert store.sweep() == 1
    assert list((store.root / "staging").iterdir()) == []


def test_threads_may_put_the_same_bytes_at_once(store):
    contents = [os.urandom(100) for _ in range(20)]
    threads = [threading.Thread(target=store.put_many, args=(contents,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.get(digest_bytes(content)) for content in contents] == contents
    assert not (store.root / "quarantine").exists()


@contextmanager
def ordinary_user():
    """Root may read everything, so it lays its rights down for a while."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def test_a_file_without_permission_is_an_error_and_stays(store):
    digest = store.put(b"bytes")
    file_of(store, digest).chmod(0)
    with ordinary_user(), pytest.raises(StoreError) as caught:
        store.get(digest)
    assert caught.value.code == "E_STORE_IO"
    assert file_of(store, digest).exists()


def test_a_directory_in_the_place_of_a_blob_is_an_error_and_stays(store):
    digest = digest_bytes(b"bytes")
    file_of(store, digest).mkdir(parents=True)
    with pytest.raises(StoreError) as caught:
        store.get(digest)
    assert caught.value.code == "E_STORE_IO"
    assert file_of(store, digest).is_dir()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 KiB."""
    path = tmp_path / "small"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "small", path]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a small tmpfs")
    yield path
    subprocess.run(["umount", path], check=True)


def test_a_full_disk_leaves_no_file_under_a_final_name(small_disk):
    store = BlobStore(small_disk / "blobs")
    kept = store.put(b"small")
    with pytest.raises(StoreError) as caught:
        store.put_many([os.urandom(40_000), os.urandom(40_000)])
    assert caught.value.code == "E_STORE_NO_SPACE"
    assert list(store.digests()) == [kept]
    assert list((store.root / "staging").iterdir()) == []
    assert store.get(store.put(b"still usable")) == b"still usable"
