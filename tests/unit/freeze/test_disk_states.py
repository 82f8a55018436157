"""Every state of a tree that troubles people when it is captured: FRZ-02 to FRZ-07.

Real Git, real disk. One test, or one line of a parameter list, for every entry.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import DriftError, RefusedError, XgentError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.source import freeze_source
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def freeze(study):
    blobs = MemoryBlobs()
    loaded = study.load()
    snapshot = freeze_source(loaded, Repository.open(loaded.resolve("repo"), "spec"), blobs)
    contents = {
        path: blobs.get(entry.blob) if entry.blob else entry.target
        for path, entry in snapshot.entries.items()
    }
    return snapshot, contents


def refused(study, code):
    with pytest.raises(XgentError) as caught:
        freeze(study)
    assert caught.value.code == code
    assert caught.value.where
    assert caught.value.fix
    return caught.value


# FRZ-02: sparse checkout, skip-worktree, assume-unchanged


def test_frz02_a_file_that_a_sparse_checkout_leaves_out_is_never_a_deletion(study):
    study.git("sparse-checkout", "set", "skills")
    error = refused(study, "E_FREEZE_SPARSE")
    assert "src/main.py" in error.found


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_frz02_a_hidden_edit_is_frozen_and_its_path_recorded(study, flag):
    study.git("update-index", flag, "src/main.py")
    study.write("src/main.py", "edited\n")
    assert study.git("status", "--porcelain") == ""
    snapshot, contents = freeze(study)
    assert contents["src/main.py"] == b"edited\n"
    assert snapshot.difference.hidden == ["src/main.py"]
    assert build_protocol(study.load(), MemoryBlobs()).source.hidden == ["src/main.py"]


def test_frz02_a_hidden_flag_without_an_edit_is_no_difference(study):
    study.git("update-index", "--skip-worktree", "src/main.py")
    assert freeze(study)[0].difference.hidden == []


# FRZ-03: odd index states


def test_frz03_a_repository_without_a_commit_is_refused_clearly(study):
    shutil.rmtree(study.repo / ".git")
    study.git("init", "-q")
    with pytest.raises(XgentError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_SPEC_COMMIT"
    assert refused(study, "E_FREEZE_BASE").found == "a repository without a commit"


def test_frz03_staged_dirty_and_intended_files_are_the_bytes_on_disk(study):
    study.write("src/main.py", "staged\n")
    study.git("add", "src/main.py")
    study.write("src/main.py", "dirty over staged\n")
    study.write("src/intended.py", "soon\n")
    study.git("add", "-N", "src/intended.py")
    study.write("src/added.py", "added\n")
    study.git("add", "src/added.py")
    snapshot, contents = freeze(study)
    assert contents["src/main.py"] == b"dirty over staged\n"
    assert contents["src/intended.py"] == b"soon\n"
    assert contents["src/added.py"] == b"added\n"
    assert snapshot.difference.changed == ["src/added.py", "src/intended.py", "src/main.py"]


def test_frz03_a_file_removed_from_the_index_but_on_disk_is_not_tracked_and_not_frozen(study):
    study.git("rm", "-q", "--cached", "src/main.py")
    snapshot, contents = freeze(study)
    assert "src/main.py" not in contents
    assert snapshot.difference.deleted == ["src/main.py"]


# FRZ-04: Git's view is not the bytes on disk


def test_frz04_no_filter_line_end_or_export_rule_touches_a_byte(study):
    study.write(".gitattributes", "*.dat filter=x\nhid.txt export-ignore\nver.txt export-subst\n")
    files = {
        "src/lines.txt": b"one\r\ntwo\r\n",
        "src/a.dat": b"plain",
        "src/hid.txt": b"hidden",
        "src/ver.txt": b"$Format:%H$",
    }
    study.commit()
    study.git("config", "core.autocrlf", "true")
    for name, content in files.items():
        study.write(name, content)
    study.commit()
    ran = study.root / "ran"
    for kind in ("clean", "smudge", "process"):
        study.git("config", f"filter.x.{kind}", f"touch {ran}; cat")
    study.git("config", "filter.x.required", "true")
    snapshot, contents = freeze(study)
    assert {name: contents[name] for name in files} == files
    assert not ran.exists()
    for name, content in files.items():
        assert snapshot.entries[name].sha256 == hashlib.sha256(content).hexdigest()
    # A clean status hides that the committed blob has other bytes than the disk.
    assert snapshot.difference.changed == ["src/lines.txt"]


def test_frz04_mode_and_kind_count_as_differences_from_the_commit(study):
    study.git("config", "core.fileMode", "false")
    (study.repo / "src/main.py").chmod(0o755)
    (study.repo / "src/run.sh").unlink()
    (study.repo / "src/run.sh").symlink_to("main.py")
    (study.repo / "src/AGENTS.md").unlink()
    difference = freeze(study)[0].difference
    assert difference.changed == ["src/main.py", "src/run.sh"]
    assert difference.deleted == ["src/AGENTS.md"]


def test_frz04_an_unfetched_lfs_file_is_refused_unless_the_spec_names_it(study):
    study.write("src/big.bin", POINTER)
    study.commit()
    assert refused(study, "E_FREEZE_LFS_POINTER").where.endswith("src/big.bin")
    study.spec["source"]["allow_lfs_pointers"] = ["src/big.bin"]
    assert freeze(study)[1]["src/big.bin"] == POINTER


def test_frz04_a_repository_with_sha256_objects_is_compared_too(study):
    shutil.rmtree(study.repo / ".git")
    study.git("init", "-q", "--object-format=sha256", "-b", "main")
    study.commit()
    study.write("src/main.py", "dirty\n")
    if len(study.spec["target"]["base_commit"]) != 64:
        pytest.fail("this Git made no SHA-256 repository")
    assert freeze(study)[0].difference.changed == ["src/main.py"]


# FRZ-05: races and special files


def test_frz05_a_directory_swapped_for_a_link_is_not_followed(study, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main.py").write_text("secret of another place\n")
    with DiskReader(study.repo) as reader:
        assert reader.kind("src/main.py") == "file"
        (study.repo / "src").rename(study.repo / "moved")
        (study.repo / "src").symlink_to(outside)
        # What is open stays the directory that was there; the swap is seen at the end.
        assert reader.read("src/main.py") == b"print('hello')\n"
        assert reader.read("skills/demo/SKILL.md")
        assert reader.read("src/main.py") is None
        with pytest.raises(DriftError) as caught:
            reader.require_still()
    assert caught.value.code == "E_FREEZE_RACE"


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "replace", "unlink"])
def test_frz05_a_file_that_changes_while_it_is_read_is_refused_by_name(study, change):
    file = study.write("src/data", b"x" * 3_000_000)

    def disturb():
        match change:
            case "grow":
                with file.open("ab") as handle:
                    handle.write(b"more")
            case "shrink":
                os.truncate(file, 10)
            case "touch":
                os.utime(file, ns=(1, 1))
            case "replace":
                study.write("other", b"y" * 3_000_000).rename(file)
            case _:
                file.unlink()

    def read_disturbed():
        with DiskReader(study.repo) as reader, reader.opened("src/data") as found:
            pieces = found.pieces()
            next(pieces)
            disturb()
            for _ in pieces:
                pass

    with pytest.raises(DriftError) as caught:
        read_disturbed()
    assert caught.value.code == "E_FREEZE_RACE"
    assert caught.value.where.endswith("src/data")


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
def test_frz05_a_special_file_is_refused_by_name_and_kind(study, kind, monkeypatch):
    file = study.repo / "src/main.py"
    file.unlink()
    match kind:
        case "fifo":
            os.mkfifo(file)
        case "socket":
            monkeypatch.chdir(file.parent)
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind("main.py")
        case _:
            if os.geteuid() != 0:
                pytest.skip("only root makes devices")
            os.mknod(file, 0o600 | 0o020000, os.makedev(1, 3))
    error = refused(study, "E_FREEZE_SPECIAL_FILE")
    assert error.where.endswith("src/main.py")
    assert {"fifo": "pipe", "socket": "socket", "device": "device"}[kind] in error.message


def test_frz05_a_hard_link_is_its_bytes_and_nothing_is_linked_to_it(study, tmp_path):
    os.link(study.repo / "src/main.py", study.repo / "src/twin.py")
    study.commit()
    store = BlobStore(tmp_path / "blobs")
    build_protocol(study.load(), store)
    assert (study.repo / "src/main.py").stat().st_nlink == 2
    assert {path.stat().st_nlink for path in store.root.rglob("*") if path.is_file()} == {1}


def test_frz05_an_unreadable_file_is_refused(study, monkeypatch):
    (study.repo / "src/main.py").chmod(0)
    opened = os.open

    def without_roots_rights(path, *arguments, **options):
        """Root reads everything, so for root the kernel's answer to others is given here."""
        if os.geteuid() == 0 and os.fsencode(path) == b"main.py":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", without_roots_rights)
    assert refused(study, "E_FREEZE_UNREADABLE").where.endswith("src/main.py")


# FRZ-06: linked worktrees, nested repositories, submodules


def nested(study, git_in, *, commit):
    inside = study.repo / "src" / "sub"
    inside.mkdir()
    git_in(inside, "init", "-q")
    (inside / "file").write_text("x")
    if commit:
        git_in(inside, "add", "-A")
        git_in(inside, "commit", "-q", "-m", "x")
    return inside


@pytest.mark.parametrize("how", ["untracked", "untracked, no commit", "ignored", "gitlink", "file"])
def test_frz06_a_repository_inside_is_refused_and_never_delivered(study, git_in, how):
    inside = nested(study, git_in, commit=how != "untracked, no commit")
    match how:
        case "ignored":
            study.write(".gitignore", "sub/\n")
            study.git("add", "-f", ".gitignore")
            study.spec["source"]["new_paths"] = ["src/sub/file"]
        case "gitlink":
            study.commit()
        case "file":
            shutil.rmtree(inside / ".git")
            (inside / ".git").write_text("gitdir: /elsewhere\n")
            study.spec["source"]["new_paths"] = ["src/sub/file"]
        case _:
            pass
    assert "src/sub" in refused(study, "E_FREEZE_NESTED_REPO").where


@pytest.mark.parametrize("place", ["source", "task"])
def test_frz06_a_bare_repository_inside_is_refused(study, git_in, place):
    bare = (study.repo / "src" if place == "source" else study.task / "tests") / "fixture.git"
    bare.mkdir()
    git_in(bare, "init", "-q", "--bare")
    (bare / "objects/keep").write_text("x")
    (bare / "refs/keep").write_text("x")
    if place == "source":
        study.commit()
    with pytest.raises(RefusedError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_FREEZE_NESTED_REPO"
    assert caught.value.where.endswith("fixture.git")


def test_frz06_a_repository_in_an_older_base_is_refused(study, git_in):
    nested(study, git_in, commit=True)
    old = study.commit()
    study.git("rm", "-q", "--cached", "src/sub")
    shutil.rmtree(study.repo / "src/sub")
    study.commit()
    study.spec["target"]["compatible_bases"] = [old]
    study.spec["cases"][1]["source"]["base"] = old
    with pytest.raises(RefusedError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert caught.value.code == "E_FREEZE_NESTED_REPO"


def test_frz06_a_dirty_submodule_is_refused(study, git_in, tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    git_in(library, "init", "-q")
    (library / "file").write_text("x")
    git_in(library, "add", "-A")
    git_in(library, "commit", "-q", "-m", "x")
    study.git("-c", "protocol.file.allow=always", "submodule", "-q", "add", str(library), "src/lib")
    study.commit()
    (study.repo / "src/lib/file").write_text("dirty")
    assert "src/lib" in refused(study, "E_FREEZE_NESTED_REPO").where


def test_frz06_no_frozen_path_has_git_storage_in_it(study):
    blobs = MemoryBlobs()
    protocol = build_protocol(study.load(), blobs)
    bundles = [case.workspace for case in protocol.cases] + [case.public for case in protocol.cases]
    for bundle in filter(None, bundles):
        for entry in load_bundle(blobs, bundle):
            assert ".git" not in entry.path.lower().split("/")


# FRZ-07: names


@pytest.mark.parametrize(
    "name",
    [
        b"f\xff.txt",
        b"a\tb",
        b"a\nb",
        b"x b/y.txt",
        b'"quoted"',
        b"100%41",
        b"-n",
        b" ",
        b"\\",
        b"\x1b[31m",
    ],
)
def test_frz07_odd_names_are_kept_to_the_byte_through_the_whole_store(study, tmp_path, name):
    study.write("src/" + os.fsdecode(name), b"odd")
    study.commit()
    store = BlobStore(tmp_path / "blobs")
    protocol = build_protocol(study.load(), store)
    tree = load_bundle(store, protocol.case("one").workspace)
    assert b"src/" + name in [path_bytes(entry.path) for entry in tree]
    assert protocol.source.changed == []


def test_frz07_twins_of_case_and_unicode_form_are_refused_before_anything_is_kept(study, tmp_path):
    study.write("src/\u00e9.md", "1")
    study.write("src/e\u0301.md", "2")
    study.commit()
    store = BlobStore(tmp_path / "blobs")
    with pytest.raises(RefusedError) as caught:
        build_protocol(study.load(), store)
    assert caught.value.code == "E_FREEZE_NAME_COLLISION"
    assert list(store.digests()) == []


# Streaming: memory does not grow with the sizes of files.


def test_a_file_of_300_mb_needs_no_memory_of_its_size(study, tmp_path):
    with study.write("src/huge.bin", b"start").open("r+b") as handle:
        handle.truncate(300_000_000)
    study.spec["source"]["new_paths"] = ["src/huge.bin"]
    job = study.load().path
    code = (
        "import re, sys; from pathlib import Path\n"
        "from xgent_evolve.freeze.build import build_protocol\n"
        "from xgent_evolve.spec.load import load_spec\n"
        "from xgent_evolve.store.blobs import BlobStore\n"
        "from xgent_evolve.store.memory import MemoryBlobs\n"
        "spec, store = Path(sys.argv[1]), sys.argv[2]\n"
        # Not ru_maxrss: a new process inherits that of the one that started it.
        "status = Path('/proc/self/status')\n"
        "peak = lambda: int(re.search(r'VmHWM:\\s+(\\d+)', status.read_text())[1]) // 1024\n"
        "before = peak()\n"
        "build_protocol(load_spec(spec), BlobStore(Path(store)) if store else MemoryBlobs())\n"
        "print(before, peak())\n"
    )
    for store in (str(tmp_path / "blobs"), ""):
        done = subprocess.run(
            [sys.executable, "-c", code, job, store],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(sys.modules["xgent_evolve"].__file__).parents[1],
        )
        before, after = map(int, done.stdout.split())
        assert after - before < 30
        assert after < 120
