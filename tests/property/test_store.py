"""A store gives back what it got, a tree has one form, and no damage is taken for content."""

from __future__ import annotations

import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from xgent_evolve.canonical import digest_bytes, path_bytes, path_text
from xgent_evolve.errors import InvalidError, StoreError
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.bundles import (
    bundle_bytes,
    file_entry,
    is_safe_path,
    link_entry,
    load_bundle,
    make_tree,
    put_bundle,
)
from xgent_evolve.store.memory import MemoryBlobs

parts = st.binary(min_size=1, max_size=6).filter(
    lambda part: part not in {b".", b".."} and b"/" not in part and b"\0" not in part
)
paths = st.lists(parts, min_size=1, max_size=3).map(lambda names: path_text(b"/".join(names)))
contents = st.binary(max_size=60)


@given(path=paths)
def test_every_byte_path_is_safe_in_its_text_form(path):
    assert is_safe_path(path)
    assert path_text(path_bytes(path)) == path


@given(files=st.dictionaries(paths, contents, max_size=8), order=st.randoms())
def test_a_tree_has_one_form_whatever_the_order_of_its_entries(files, order):
    blobs = MemoryBlobs()
    blobs.put_many(list(files.values()))
    entries = [file_entry(path, content) for path, content in files.items()]
    shuffled = list(entries)
    order.shuffle(shuffled)
    try:
        tree = make_tree(entries)
    except InvalidError:
        with pytest.raises(InvalidError):
            make_tree(shuffled)
        return
    assert bundle_bytes(make_tree(shuffled)) == bundle_bytes(tree)
    assert load_bundle(blobs, put_bundle(blobs, tree)) == tree
    assert [path_bytes(entry.path) for entry in tree] == sorted(map(path_bytes, files))


@given(one=st.dictionaries(paths, contents, max_size=4), two=st.dictionaries(paths, contents))
def test_different_trees_have_different_manifests(one, two):
    manifests = []
    for files in (one, two):
        try:
            manifests.append(bundle_bytes(make_tree(file_entry(*item) for item in files.items())))
        except InvalidError:
            return
    assert (manifests[0] == manifests[1]) == (one == two)


@given(path=paths, target=st.binary(min_size=1, max_size=10).filter(lambda text: b"\0" not in text))
def test_a_links_target_is_kept_to_the_byte(path, target):
    blobs = MemoryBlobs()
    tree = make_tree([link_entry(path, path_text(target))])
    (entry,) = load_bundle(blobs, put_bundle(blobs, tree))
    assert path_bytes(entry.target) == target


class Store(RuleBasedStateMachine):
    """A store under puts, damage, sweeps and reopening, beside a dictionary that is right."""

    @initialize()
    def begin(self):
        self.root = Store.directory / "blobs"
        shutil.rmtree(self.root, ignore_errors=True)
        self.store = BlobStore(self.root)
        self.right = {}
        self.damaged = set()

    @rule(batch=st.lists(contents, max_size=5))
    def put(self, batch):
        digests = self.store.put_many(batch)
        assert digests == [digest_bytes(content) for content in batch]
        self.right.update(zip(digests, batch, strict=True))
        self.damaged -= set(digests)

    @rule(data=st.data(), content=contents)
    def damage(self, data, content):
        healthy = sorted(self.right.keys() - self.damaged)
        if healthy:
            digest = data.draw(st.sampled_from(healthy))
            if content != self.right[digest]:
                name = digest.removeprefix("blake3:")
                file = self.root / name[:2] / name[2:]
                file.chmod(0o644)
                file.write_bytes(content)
                self.damaged.add(digest)

    @rule()
    def reopen(self):
        self.store = BlobStore(self.root)
        self.store.sweep()

    @rule(data=st.data())
    def read(self, data):
        if self.right:
            digest = data.draw(st.sampled_from(sorted(self.right)))
            if digest in self.damaged:
                with pytest.raises(StoreError):
                    self.store.get(digest)
                assert not self.store.has(digest)
            else:
                assert self.store.get(digest) == self.right[digest]

    @invariant()
    def undamaged_content_is_there(self):
        for digest in self.right.keys() - self.damaged:
            assert self.store.has(digest, len(self.right[digest]))


def test_a_store_is_never_wrong_about_its_content(tmp_path):
    Store.directory = tmp_path
    test_case = Store.TestCase()
    test_case.settings = settings(max_examples=60, stateful_step_count=20, deadline=None)
    test_case.runTest()
