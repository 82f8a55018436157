"""The agent's repository is one fresh commit of the workspace, readable by any Git (PAT-09)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

RUNNER = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "host_runner"
OWN = {path.stem for path in RUNNER.glob("*.py")}

FILES = {
    b"README": (b"hello\n", 0o644),
    b"run.sh": (b"#!/bin/sh\n", 0o755),
    b"a.txt": (b"same\n", 0o644),
    b"a/deep/er/file": (b"same\n", 0o600),
    b"a-b": (b"", 0o644),
    b"a0": (bytes(range(256)) * 5000, 0o644),
    b"odd \xff\n\tname": (b"odd\n", 0o644),
    b"x" * 200: (b"long\n", 0o644),
    b".gitignore": (b"ignored.txt\n", 0o644),
    b"ignored.txt": (b"tracked all the same\n", 0o644),
    b".gitattributes": (b"*.txt text eol=crlf filter=none\n", 0o644),
    b"sub/.git/config": (b"nested\n", 0o644),
    b"sub/file": (b"in\n", 0o644),
}
LINKS = {b"link": b"a/deep", b"dangling": b"same\n"}


@pytest.fixture
def runner() -> Iterator[Callable[[str], ModuleType]]:
    """Import modules of the host runner as the host does, and forget them again."""
    sys.path.insert(0, str(RUNNER))
    try:
        yield lambda name: __import__(name)
    finally:
        sys.path.remove(str(RUNNER))
        for name in OWN:
            sys.modules.pop(name, None)


def nodes_of(runner: Any) -> dict[bytes, Any]:
    import hashlib

    trees = runner("trees")
    nodes = {b"": trees.Node("dir", 0o755, 0), b"empty": trees.Node("dir", 0o755, 0)}
    for name, (content, mode) in FILES.items():
        node = trees.bytes_node(content, mode)
        node.sha256 = hashlib.sha256(content).hexdigest()
        nodes[name] = node
    for name, target in LINKS.items():
        nodes[name] = trees.Node("link", 0o777, 0, target=target)
    return trees.with_parents(nodes, 0)


def unpack(nodes: dict[bytes, Any], place: Path) -> None:
    """Write nodes as the engine would, with times of now."""
    for name in sorted(nodes):
        path, node = place / os.fsdecode(name), nodes[name]
        if node.kind == "dir":
            path.mkdir(parents=True, exist_ok=True)
        elif node.kind == "link":
            path.symlink_to(os.fsdecode(node.target))
        else:
            with node.open() as source, path.open("wb") as target:
                while chunk := source.read(1 << 20):
                    target.write(chunk)
            path.chmod(node.mode)


def git(place: Path, *arguments: str) -> bytes:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    words = ["git", "-c", "core.quotePath=false", "-C", str(place), *arguments]
    done = subprocess.run(words, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def checkout(runner: Any, tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    nodes = nodes_of(runner)
    made = runner("repository").repository_nodes(str(tmp_path / "root"), dict(nodes), "0" * 64)
    place = tmp_path / "app"
    unpack({**nodes, **made}, place)
    return place


def test_git_finds_nothing_wrong_and_nothing_changed(checkout: Path) -> None:
    git(checkout, "fsck", "--full", "--strict", "--no-dangling")
    assert git(checkout, "status", "--porcelain", "--ignored") == b""
    assert git(checkout, "diff", "HEAD") == b""


def test_there_is_one_commit_and_nothing_else(checkout: Path) -> None:
    assert git(checkout, "rev-list", "--all", "--reflog", "--count") == b"1\n"
    assert git(checkout, "log", "--all", "--format=%an %s") == b"Task State of the task\n"
    assert git(checkout, "for-each-ref", "--format=%(refname)") == b"refs/heads/main\n"
    for words in (["remote"], ["tag"], ["stash", "list"], ["fsck", "--lost-found"]):
        assert git(checkout, *words) == b""
    reached = git(checkout, "rev-list", "--objects", "--all", "--no-object-names").split()
    stored = git(checkout, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert sorted(reached) == sorted(stored.split()), "no object that no commit needs"
    assert not (checkout / ".git" / "logs").exists()


def test_the_commit_holds_every_file_byte_for_byte(checkout: Path) -> None:
    listed = git(checkout, "ls-tree", "-r", "-z", "HEAD").split(b"\0")[:-1]
    found = {}
    for line in listed:
        head, _, name = line.partition(b"\t")
        mode, _, object_id = head.split(b" ")
        found[name] = (mode, git(checkout, "cat-file", "blob", object_id.decode()))
    own = {name: item for name, item in FILES.items() if b".git" not in name.split(b"/")}
    assert found == {
        **{name: (b"100755" if mode & 0o100 else b"100644", content)
           for name, (content, mode) in own.items()},
        **{name: (b"120000", target) for name, target in LINKS.items()},
    }  # fmt: skip


def test_the_agent_can_work_with_it(checkout: Path) -> None:
    (checkout / "README").write_text("changed\n")
    (checkout / "new").write_text("new\n")
    assert git(checkout, "status", "--porcelain") == b" M README\n?? new\n"
    git(checkout, "checkout", "-q", "-b", "work")
    git(checkout, "commit", "-q", "-a", "-m", "mine")
    git(checkout, "reset", "-q", "--hard", "main")
    assert (checkout / "README").read_text() == "hello\n"


def test_it_is_made_once_and_is_the_same_everywhere(runner: Any, tmp_path: Path) -> None:
    made = []
    for name in ("one", "two", "one"):
        root = tmp_path / name
        root.mkdir(exist_ok=True)
        found = runner("repository").repository_nodes(str(root), nodes_of(runner), "0" * 64)
        made.append({key: node.content() for key, node in found.items() if node.kind == "file"})
    assert made[0] == made[1] == made[2]
    assert sorted(path.name for path in (tmp_path / "one" / "repositories").iterdir()) == [
        "0" * 64, "lock",
    ]  # fmt: skip


def test_a_half_made_one_is_made_again(runner: Any, tmp_path: Path) -> None:
    left = tmp_path / "repositories" / ".tmp-left"
    left.mkdir(parents=True)
    (left / "pack").write_bytes(b"PACK")
    runner("repository").repository_nodes(str(tmp_path), nodes_of(runner), "1" * 64)
    assert not left.exists()


def test_large_offsets_have_a_table_of_their_own(runner: Any) -> None:
    pack = runner("packs").Pack(io.BytesIO())
    name = pack.add(3, 1, [b"x"])
    pack.objects[name] = (1 << 33, pack.objects[name][1])
    index = pack.index(b"\0" * 20)
    assert index[8 + 1024 + 20 + 4 :][:12] == (1 << 31).to_bytes(4, "big") + (1 << 33).to_bytes(
        8, "big"
    )


@pytest.mark.parametrize("size", [0, 1, 15, 16, 2047, 2048, 1 << 31, 1 << 40])
def test_sizes_are_written_as_git_reads_them(runner: Any, size: int) -> None:
    header = runner("packs").entry_header(3, size)
    assert (header[0] >> 4) & 7 == 3
    read = header[0] & 15
    for number, byte in enumerate(header[1:]):
        read |= (byte & 0x7F) << (4 + 7 * number)
    assert read == size
    assert all(byte & 0x80 for byte in header[:-1])
    assert not header[-1] & 0x80
