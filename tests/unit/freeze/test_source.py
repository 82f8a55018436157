"""The frozen source is the bytes on disk of the allowed files, or a refusal with a name."""

from __future__ import annotations

import os
import socket
import subprocess
import threading

import pytest

from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import AuthorityError, DriftError, InvalidError, RefusedError
from xgent_evolve.freeze.advice import study_warnings
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.disk import DiskReader, OpenFile, require_unchanged
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.source import freeze_source
from xgent_evolve.store.memory import MemoryBlobs

POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def freeze(study):
    blobs = MemoryBlobs()
    loaded = study.load()
    repository = Repository.open(loaded.resolve("repo"), "spec")
    snapshot = freeze_source(loaded, repository, blobs)
    contents = {
        path: blobs.get(entry.blob) if entry.blob else entry.target
        for path, entry in snapshot.entries.items()
    }
    return snapshot, contents


def freeze_often(study):
    for _ in range(200):
        freeze(study)


def refused(study, kind=RefusedError):
    with pytest.raises(kind) as caught:
        freeze(study)
    assert caught.value.where
    assert caught.value.fix
    return caught.value


def test_tracked_files_below_the_listed_paths_are_taken_and_nothing_else(study):
    study.write("src/untracked.py", "x")
    study.write("src/.cache/ignored", "x")
    _, contents = freeze(study)
    assert list(contents) == [
        "AGENTS.md",
        "skills/demo/SKILL.md",
        "skills/demo/scripts/go.sh",
        "skills/other/SKILL.md",
        "src/AGENTS.md",
        "src/main.py",
        "src/run.sh",
    ]


def test_the_exec_bit_is_kept(study):
    snapshot, _ = freeze(study)
    assert snapshot.entries["src/run.sh"].mode == 0o755
    assert snapshot.entries["src/main.py"].mode == 0o644


def test_the_bytes_on_disk_count_and_no_filter_runs(study):
    study.write(".gitattributes", "*.py filter=x\n*.md export-ignore\n")
    study.commit()
    study.git("config", "filter.x.clean", "touch ran; cat")
    study.git("config", "core.autocrlf", "true")
    study.write("src/main.py", "print('crlf')\r\n")
    _, contents = freeze(study)
    assert contents["src/main.py"] == b"print('crlf')\r\n"
    assert not list(study.repo.rglob("ran"))


def test_a_deleted_file_is_absent_and_a_deleted_listed_file_is_an_error(study):
    (study.repo / "src/main.py").unlink()
    assert "src/main.py" not in freeze(study)[1]
    (study.repo / "AGENTS.md").unlink()
    error = refused(study, InvalidError)
    assert error.code == "E_SPEC_PATH"
    assert "$.source.paths[0]" in error.where


def test_an_untracked_file_is_taken_only_when_listed(study):
    study.write("src/new.py", "new")
    study.spec["source"]["new_paths"] = ["src/new.py"]
    assert freeze(study)[1]["src/new.py"] == b"new"


def test_a_wholly_new_skill_may_be_frozen_file_by_file(study):
    study.write("skills/fresh/SKILL.md", "x")
    study.spec["source"] |= {
        "paths": ["AGENTS.md", "src", "skills", "skills/fresh"],
        "new_paths": ["skills/fresh/SKILL.md"],
    }
    assert "skills/fresh/SKILL.md" in freeze(study)[1]


@pytest.mark.parametrize(
    ("path", "found"), [("src/main.py", "tracked"), ("src/absent", "nothing"), ("src/dir", "dir")]
)
def test_a_new_path_must_be_one_untracked_file(study, path, found):
    study.write("src/dir/file", "x")
    study.spec["source"]["new_paths"] = [path]
    error = refused(study, InvalidError)
    assert error.code == "E_SPEC_PATH"
    assert found in error.found


def test_a_listed_path_that_is_not_tracked_says_so(study):
    study.write("docs/a.md", "x")
    study.spec["source"]["paths"].append("docs")
    study.spec["authority"]["export_paths"].append("docs")
    error = refused(study, InvalidError)
    assert error.code == "E_SPEC_PATH"
    assert "not tracked" in error.message


def test_a_path_outside_the_authority_is_refused(study):
    loaded = study.load()
    authority = loaded.spec.authority.replaced(export_paths=["src"])
    spec = loaded.spec.replaced(authority=authority)
    loaded = type(loaded)(spec, loaded.path, loaded.content)
    with pytest.raises(AuthorityError) as caught:
        freeze_source(loaded, Repository.open(study.repo, ""), MemoryBlobs())
    assert caught.value.code == "E_AUTHORITY_EXPORT"


def test_the_tree_must_stand_on_the_base_commit(study):
    base = study.spec["target"]["base_commit"]
    study.git("commit", "-q", "--allow-empty", "-m", "further")
    error = refused(study, DriftError)
    assert error.code == "E_FREEZE_BASE"
    assert error.expected == base
    assert error.found == study.git("rev-parse", "HEAD").strip()


def test_a_link_is_kept_as_a_link(study):
    (study.repo / "src/link").symlink_to("../AGENTS.md")
    study.commit()
    assert freeze(study)[1]["src/link"] == "../AGENTS.md"


@pytest.mark.parametrize("target", ["/etc/passwd", "../../x", "../.git/config", "up/../../../x"])
def test_a_link_out_of_the_repository_is_refused(study, target):
    (study.repo / "src/link").symlink_to(target)
    study.commit()
    error = refused(study)
    assert error.code == "E_FREEZE_LINK_ESCAPE"
    assert error.where.endswith("src/link")


def test_a_link_that_leaves_through_another_link_is_refused(study):
    (study.repo / "src/deep/er").mkdir(parents=True)
    (study.repo / "src/deep/er/top").symlink_to("../../../skills")
    (study.repo / "src/deep/er/out").symlink_to("top/../../x")
    study.commit()
    error = refused(study)
    assert error.code == "E_FREEZE_LINK_ESCAPE"
    assert error.where.endswith("out")


def test_no_link_is_followed_to_a_file(study):
    outside = study.root / "outside"
    outside.mkdir()
    (outside / "main.py").write_text("secret")
    (study.repo / "src").rename(study.root / "moved")
    (study.repo / "src").symlink_to(outside)
    _, contents = freeze(study)
    assert not any(path.startswith("src/") for path in contents)


@pytest.mark.parametrize("kind", ["fifo", "socket"])
def test_a_special_file_is_refused(study, kind, monkeypatch):
    file = study.repo / "src/main.py"
    file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    else:
        monkeypatch.chdir(file.parent)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind("main.py")
        listening.close()
    error = refused(study)
    assert error.code == "E_FREEZE_SPECIAL_FILE"
    assert error.where.endswith("src/main.py")


@pytest.mark.parametrize("commits", [True, False])
def test_a_nested_repository_is_refused(study, commits, git_in):
    nested = study.repo / "src" / "sub"
    nested.mkdir()
    git_in(nested, "init", "-q")
    (nested / "file").write_text("x")
    if commits:
        git_in(nested, "add", "-A")
        git_in(nested, "commit", "-q", "-m", "x")
    error = refused(study)
    assert error.code == "E_FREEZE_NESTED_REPO"
    assert "src/sub" in error.where


def test_a_submodule_is_refused(study, git_in):
    nested = study.repo / "src" / "sub"
    nested.mkdir()
    git_in(nested, "init", "-q")
    git_in(nested, "commit", "-q", "--allow-empty", "-m", "x")
    study.commit()
    assert refused(study).code == "E_FREEZE_NESTED_REPO"


def test_a_repository_around_tracked_files_is_refused(study, git_in):
    git_in(study.repo / "src", "init", "-q")
    assert refused(study).code == "E_FREEZE_NESTED_REPO"


def test_a_nested_repository_elsewhere_does_not_matter(study, git_in):
    (study.repo / "vendor").mkdir()
    git_in(study.repo / "vendor", "init", "-q")
    freeze(study)


def test_an_unfinished_merge_is_refused_with_its_paths(study):
    study.git("checkout", "-q", "-b", "side")
    study.write("src/main.py", "side\n")
    study.commit()
    study.git("checkout", "-q", "main")
    study.write("src/main.py", "main\n")
    study.commit()
    with pytest.raises(Exception, match="merge"):
        study.git("merge", "side")
    error = refused(study)
    assert error.code == "E_FREEZE_UNMERGED"
    assert "src/main.py" in error.found


def test_an_lfs_file_that_was_not_fetched_is_refused(study):
    study.write("src/big.bin", POINTER)
    study.commit()
    error = refused(study)
    assert error.code == "E_FREEZE_LFS_POINTER"
    study.write("src/big.bin", b"Text about a pointer:\n" + POINTER)
    study.commit()
    freeze(study)


def test_files_that_a_sparse_checkout_leaves_out_are_refused(study):
    study.git("sparse-checkout", "set", "skills")
    assert not (study.repo / "src").exists()
    error = refused(study)
    assert error.code == "E_FREEZE_SPARSE"
    assert "src/main.py" in error.found


def test_an_edit_in_a_file_that_git_was_told_to_ignore_counts(study):
    study.git("update-index", "--skip-worktree", "src/main.py")
    study.git("update-index", "--assume-unchanged", "src/run.sh")
    study.write("src/main.py", "edited\n")
    study.write("src/run.sh", "edited too\n")
    _, contents = freeze(study)
    assert contents["src/main.py"] == b"edited\n"
    assert contents["src/run.sh"] == b"edited too\n"


def test_an_edit_that_git_hides_is_told_with_the_way_back(study):
    study.git("update-index", "--skip-worktree", "src/main.py")
    study.git("update-index", "--assume-unchanged", "src/run.sh")
    assert warnings(study) == [], "being marked is not being edited"
    study.write("src/main.py", "edited\n")
    study.write("src/run.sh", "edited too\n")
    found = warnings(study)
    assert [item.code for item in found] == ["W_HIDDEN_EDIT"] * 2
    assert [item.where for item in found] == [
        f"{study.repo}/src/{n}" for n in ("main.py", "run.sh")
    ]
    for item in found:
        command = item.fix.partition("with: ")[2]
        subprocess.run(["sh", "-c", command], cwd=study.repo, check=True, capture_output=True)
    assert warnings(study) == []


def warnings(study):
    loaded, blobs = study.load(), MemoryBlobs()
    found = study_warnings(loaded, build_protocol(loaded, blobs), blobs)
    return [item for item in found if item.code != "W_TOO_FEW_GROUPS"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a.md", "A.md"),
        ("S/x.md", "s/y.md"),
        ("\u00e9.md", "e\u0301.md"),
        ("Stra\u00dfe", "STRASSE"),
    ],
)
def test_names_that_fold_together_are_refused(study, one, two):
    study.write(f"src/{one}", "1")
    study.write(f"src/{two}", "2")
    study.commit()
    error = refused(study)
    assert error.code == "E_FREEZE_NAME_COLLISION"


@pytest.mark.parametrize("name", [b"f\xff.txt", b"a\tb", b"a\nb", b'q"uote', b"100%", b" x b/y"])
def test_odd_names_are_kept_to_the_byte(study, name):
    study.write(os.fsdecode(b"src/" + name), b"odd")
    study.commit()
    _, contents = freeze(study)
    assert b"src/" + name in [path_bytes(path) for path in contents]


def test_a_linked_worktree_freezes_like_any_other(study):
    study.git("worktree", "add", "-q", "--detach", str(study.root / "tree"))
    (study.root / "tree" / "src" / "main.py").write_text("in the worktree\n")
    study.spec["target"]["repo"] = study.spec["authority"]["repo"] = "tree"
    for case in study.spec["cases"]:
        case["source"]["repo"] = "tree"
    loaded = study.load()
    blobs = MemoryBlobs()
    snapshot = freeze_source(loaded, Repository.open(study.root / "tree", ""), blobs)
    assert blobs.get(snapshot.entries["src/main.py"].blob) == b"in the worktree\n"


def test_a_leftover_index_lock_does_not_matter_and_stays(study):
    lock = study.repo / ".git" / "index.lock"
    lock.touch()
    freeze(study)
    assert lock.exists()


def test_a_file_added_with_intent_to_add_is_included(study):
    study.write("src/intended.py", "soon")
    study.git("add", "-N", "src/intended.py")
    assert freeze(study)[1]["src/intended.py"] == b"soon"


def test_freezing_changes_nothing_in_the_repository(study):
    study.write("src/main.py", "dirty\n")
    before = {path: path.lstat().st_mtime_ns for path in study.repo.rglob("*")}
    freeze(study)
    assert {path: path.lstat().st_mtime_ns for path in study.repo.rglob("*")} == before


def test_the_configuration_of_the_repository_runs_nothing(study):
    spy = study.root / "spy"
    spy.write_text(f"#!/bin/sh\ntouch {study.root}/ran\n")
    spy.chmod(0o755)
    study.git("config", "core.fsmonitor", str(spy))
    study.git("config", "core.hooksPath", str(study.root))
    study.git("config", "core.pager", str(spy))
    study.git("config", "alias.ls-files", f"!{spy}")
    study.git("config", "diff.external", str(spy))
    freeze(study)
    assert not (study.root / "ran").exists()


def test_the_callers_git_variables_do_not_lead_elsewhere(study, monkeypatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "nowhere"))
    loaded = study.load()
    snapshot = freeze_source(loaded, Repository.open(study.repo, ""), MemoryBlobs())
    assert "src/main.py" in snapshot.entries


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")
def test_a_checkout_of_another_owner_is_read(study):
    for path in (study.repo, *study.repo.rglob("*")):
        os.chown(path, 12345, 12345, follow_symlinks=False)
    freeze(study)


def test_a_file_that_keeps_changing_is_refused_by_name(study):
    file = study.write("src/main.py", b"x" * 2_000_000)
    stop = threading.Event()

    def write():
        with file.open("r+b", buffering=0) as handle:
            while not stop.is_set():
                handle.seek(0)
                handle.write(os.urandom(64))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(DriftError) as caught:
            freeze_often(study)
    finally:
        stop.set()
        writer.join()
    assert caught.value.code == "E_FREEZE_RACE"
    assert caught.value.where.endswith("src/main.py")


@pytest.mark.parametrize("change", ["append", "replace", "mode", "same bytes again"])
def test_every_change_between_two_looks_is_a_race(tmp_path, change):
    file = tmp_path / "file"
    file.write_text("one")
    before = file.stat()
    match change:
        case "append":
            file.write_text("one more")
        case "replace":
            (tmp_path / "other").write_text("two")
            (tmp_path / "other").rename(file)
        case "mode":
            file.chmod(0o755)
        case _:
            os.utime(file, ns=(1, 1))
    with pytest.raises(DriftError):
        require_unchanged(before, file.stat(), "file")


@pytest.mark.parametrize("size", [2, 4])
def test_another_number_of_bytes_than_the_size_says_is_a_race(tmp_path, size):
    (tmp_path / "file").write_text("one")
    with (tmp_path / "file").open("rb") as file, pytest.raises(DriftError) as caught:
        list(OpenFile("file", False, size, file.fileno()).pieces())
    assert caught.value.code == "E_FREEZE_RACE"


def test_a_directory_listing_never_enters_git_or_links(tmp_path):
    (tmp_path / "top/a").mkdir(parents=True)
    (tmp_path / "top/a/file").touch()
    (tmp_path / "top/link").symlink_to("a")
    with DiskReader(tmp_path) as reader:
        assert list(reader.walk("top")) == ["top/a/file", "top/link"]
        (tmp_path / "top/a/.GIT").mkdir()
        with pytest.raises(RefusedError) as caught:
            list(reader.walk("top"))
    assert caught.value.code == "E_FREEZE_NESTED_REPO"
