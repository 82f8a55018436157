"""Trees are sorted, unambiguous and safe; a manifest is one byte string per tree."""

from __future__ import annotations

import json

import pytest

from xgent_evolve.canonical import canonical_bytes, digest_bytes
from xgent_evolve.errors import InvalidError, StoreError
from xgent_evolve.store.bundles import (
    BUNDLE_TYPE,
    Entry,
    bundle_bytes,
    file_entry,
    link_entry,
    link_stays_inside,
    load_bundle,
    make_tree,
    put_bundle,
    tree_size,
)
from xgent_evolve.store.memory import MemoryBlobs


@pytest.fixture
def blobs():
    return MemoryBlobs()


def tree_of(blobs, files):
    blobs.put_many(list(files.values()))
    return make_tree(file_entry(path, content) for path, content in files.items())


def test_a_tree_is_sorted_by_the_bytes_of_its_paths():
    paths = ["b", "a/z", "a.txt", "a%FF", "Z", "é"]
    tree = make_tree(file_entry(path, b"") for path in paths)
    assert [entry.path for entry in tree] == ["Z", "a.txt", "a/z", "a%FF", "b", "é"]


@pytest.mark.parametrize(
    "path",
    ["", "/a", "a/", "a//b", ".", "a/./b", "..", "a/../b", "a\0b", "a%41", "a%25%4", "100%"],
)
def test_an_unsafe_or_ambiguous_path_is_refused(path):
    with pytest.raises(InvalidError) as caught:
        make_tree([file_entry(path, b"")])
    assert caught.value.code == "E_BUNDLE_PATH"


def test_a_path_may_occur_only_once():
    with pytest.raises(InvalidError, match="twice"):
        make_tree([file_entry("a", b"1"), link_entry("a", "b")])


@pytest.mark.parametrize("upper", [file_entry("a", b""), link_entry("a", "b")])
def test_nothing_may_lie_below_a_file_or_a_link(upper):
    with pytest.raises(InvalidError, match="not a directory"):
        make_tree([upper, file_entry("a-b", b""), file_entry("a/b/c", b"")])


def test_a_file_may_lie_below_a_directory_entry():
    make_tree([Entry("a", "dir", 0o755), file_entry("a/b", b"")])


def test_a_bundle_comes_back_as_it_was(blobs):
    tree = make_tree(
        [
            *tree_of(blobs, {"a/b": b"text", "c%FF": b""}),
            link_entry("l", "a/b"),
            Entry("d", "dir", 0o755),
        ]
    )
    assert load_bundle(blobs, put_bundle(blobs, tree)) == tree


def test_the_manifest_names_its_own_type_and_its_form_is_fixed():
    tree = make_tree([file_entry("a", b"hi", executable=True), link_entry("b", "a")])
    assert json.loads(bundle_bytes(tree)) == {
        "type": BUNDLE_TYPE,
        "entries": [
            {
                "path": "a",
                "kind": "file",
                "mode": 0o755,
                "blob": digest_bytes(b"hi"),
                "sha256": "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4",
                "size": 2,
            },
            {"path": "b", "kind": "link", "mode": 0o777, "target": "a"},
        ],
    }


def test_mode_and_kind_are_part_of_a_bundles_identity():
    forms = [
        file_entry("a", b"x"),
        file_entry("a", b"x", executable=True),
        file_entry("a", b"y"),
        file_entry("b", b"x"),
        link_entry("a", "x"),
    ]
    assert len({bundle_bytes((entry,)) for entry in forms}) == len(forms)


def test_a_bundle_of_bytes_that_are_not_stored_is_refused(blobs):
    with pytest.raises(StoreError) as caught:
        put_bundle(blobs, make_tree([file_entry("a", b"never put")]))
    assert caught.value.code == "E_STORE_MISSING"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"not json",
        canonical_bytes({"type": "other/1", "entries": []}),
        canonical_bytes({"type": BUNDLE_TYPE, "entries": [], "more": 1}),
        b'{"entries":[], "type":"xgent-evolve/bundle/1"}',
        canonical_bytes(
            {
                "type": BUNDLE_TYPE,
                "entries": [{"path": "../x", "kind": "dir", "mode": 0o755}],
            }
        ),
        canonical_bytes(
            {
                "type": BUNDLE_TYPE,
                "entries": [
                    {"path": "b", "kind": "dir", "mode": 0o755},
                    {"path": "a", "kind": "dir", "mode": 0o755},
                ],
            }
        ),
    ],
)
def test_a_blob_that_is_not_a_manifest_is_refused(blobs, content):
    with pytest.raises(StoreError) as caught:
        load_bundle(blobs, blobs.put(content))
    assert caught.value.code == "E_STORE_CORRUPT"


def test_the_size_of_a_tree_counts_every_file(blobs):
    assert tree_size(tree_of(blobs, {"a": b"12", "b": b"12", "c/d": b"345"})) == 7


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("a", "b", True),
        ("a/b", "../c", True),
        ("a/b", "../..", False),
        ("a", "..", False),
        ("a", "../a", False),
        ("a", "/etc/passwd", False),
        ("a/b/c", "../../../x", False),
        ("a", "", False),
        ("a/b", "./c/../d", True),
    ],
)
def test_a_link_stays_inside_or_not_by_its_text(path, target, inside):
    assert link_stays_inside(path, target) is inside
