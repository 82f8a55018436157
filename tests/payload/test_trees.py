"""Archives that lead out of their directory, and deliveries applied elsewhere. Pure parts."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

RUNNER = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "host_runner"
# Not __main__: that name is the running program's, and the command line asks for it.
MODULES = {path.stem for path in RUNNER.glob("*.py")} - {"__main__"}


@pytest.fixture(scope="module")
def trees() -> Iterator[ModuleType]:
    """The runner's own module, whose siblings are top-level modules in its archive."""
    shadowed = {name: sys.modules.pop(name) for name in MODULES & sys.modules.keys()}
    sys.path.insert(0, str(RUNNER))
    try:
        import trees

        yield trees
    finally:
        sys.path.remove(str(RUNNER))
        for name in MODULES & sys.modules.keys():
            del sys.modules[name]
        sys.modules.update(shadowed)


def archive(path: Path, *members: tuple[str, str, str]) -> Path:
    """Write an archive of members: name, kind, and target or content."""
    kinds = {
        "dir": tarfile.DIRTYPE,
        "link": tarfile.SYMTYPE,
        "hard": tarfile.LNKTYPE,
        "device": tarfile.CHRTYPE,
        "pipe": tarfile.FIFOTYPE,
    }
    with tarfile.open(path, "w") as tar:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type = kinds.get(kind, tarfile.REGTYPE)
            info.linkname = text if kind in {"link", "hard"} else ""
            content = text.encode() if kind == "file" else b""
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize(
    "members",
    [
        [("w", "dir", ""), ("w/d", "link", "/tmp/out"), ("w/d/pwn", "file", "x")],
        [("w", "dir", ""), ("w/d", "link", "."), ("w/d/e/f/pwn", "file", "x")],
        [("w", "dir", ""), ("w/f", "file", "x"), ("w/f/pwn", "file", "x")],
        [("w", "dir", ""), ("w/../x", "file", "x")],
        [("w", "dir", ""), ("../x", "file", "x")],
        [("w", "dir", ""), ("/abs", "file", "x")],
        [("w", "dir", ""), ("w//x", "file", "x")],
    ],
    ids=["link", "link deeper", "file as directory", "inside up", "up", "absolute", "twice"],
)
def test_an_archive_that_leads_out_of_its_directory_is_refused_by_name(
    trees: ModuleType, tmp_path: Path, members: list[tuple[str, str, str]]
) -> None:
    """PAT-07: the receiving host writes nothing by an archive's names, and takes nothing of it."""
    with pytest.raises(sys.modules["errors"].StepFailedError) as caught:
        trees.tar_nodes(str(archive(tmp_path / "a.tar", *members)), strict=False)
    assert (caught.value.stage, caught.value.cause) == ("receive", "unsafe_member")
    assert repr(members[-1][0])[1:-1] in caught.value.detail


def test_hard_links_out_of_the_archive_devices_and_pipes_are_not_taken(
    trees: ModuleType, tmp_path: Path
) -> None:
    path = archive(
        tmp_path / "a.tar",
        ("w", "dir", ""),
        ("w/kept", "file", "x"),
        ("w/inner", "hard", "w/kept"),
        ("w/outer", "hard", "/etc/hostname"),
        ("w/upper", "hard", "../../etc/hostname"),
        ("w/device", "device", ""),
        ("w/pipe", "pipe", ""),
        ("w/link", "link", "/tmp/out"),
    )
    nodes = trees.tar_nodes(str(path), strict=False)
    assert {name: node.kind for name, node in nodes.items()} == {
        b"kept": "file",
        b"inner": "file",
        b"link": "link",
    }
    with pytest.raises(sys.modules["errors"].StepFailedError, match="device"):
        trees.tar_nodes(str(path), strict=True)


def test_of_two_archives_in_sequence_the_second_is_not_read_through_the_first(
    trees: ModuleType, tmp_path: Path
) -> None:
    first = archive(tmp_path / "1.tar", ("w", "dir", ""), ("w/d", "link", str(tmp_path / "out")))
    second = archive(tmp_path / "2.tar", ("w", "dir", ""), ("w/d/pwn", "file", "x"))
    (tmp_path / "out").mkdir()
    trees.tar_nodes(str(first))
    nodes = trees.tar_nodes(str(second))
    assert set(nodes) == {b"d/pwn"}
    assert list((tmp_path / "out").iterdir()) == []


# What is applied elsewhere makes the same tree.

NAMES = st.sampled_from([b"a", b"b", b"\xff", b"new\nline"])
LEAF = st.one_of(
    st.tuples(st.just("file"), st.sampled_from([0o644, 0o755, 0o400]), st.binary(max_size=3)),
    st.tuples(st.just("link"), st.just(0o777), st.sampled_from([b"a", b"/etc/passwd", b"../x"])),
)
TREE = st.recursive(
    st.dictionaries(NAMES, LEAF, max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(LEAF, inner), max_size=3),
    max_leaves=8,
)


def flat(trees: ModuleType, tree: Any, prefix: bytes = b"") -> dict[bytes, Any]:
    """Return a tree's nodes by path."""
    found: dict[bytes, Any] = {}
    for name, item in tree.items():
        path = prefix + b"/" + name if prefix else name
        if isinstance(item, dict):
            found[path] = trees.Node("dir", 0o755, 0)
            found.update(flat(trees, item, path))
            continue
        kind, mode, content = item
        if kind == "link":
            found[path] = trees.Node("link", mode, 0, target=content)
        else:
            digest = hashlib.sha256(content).hexdigest()
            found[path] = trees.Node("file", mode, 0, size=len(content), sha256=digest)
    return found


def facts(nodes: dict[bytes, Any]) -> dict[bytes, Any]:
    return {name: node.fact() for name, node in nodes.items()}


@given(before=TREE, after=TREE)
def test_a_delivery_applied_to_the_baseline_is_the_captured_tree(
    trees: ModuleType, before: Any, after: Any
) -> None:
    """PAT-02: whatever becomes what: files, links, directories, modes, empty and odd names."""
    old, new = flat(trees, before), flat(trees, after)
    from export import same_file

    text = sys.modules["durable"].path_text
    changes = []
    for name in sorted(set(old) | set(new)):
        left = old[name].fact() if name in old else None
        right = new[name].fact() if name in new else None
        if not same_file(left, right):
            changes.append({"path": text(name), "before": left, "after": right})
    trees.apply_changes(old, changes, "/nonexistent", 0)
    assert facts(old) == facts(new)
