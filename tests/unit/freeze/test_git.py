"""Git is asked through plumbing that obeys nobody else."""

from __future__ import annotations

import os
import shutil

import pytest

from xgent_evolve.errors import DriftError, InvalidError
from xgent_evolve.freeze.git import Repository


@pytest.fixture
def repository(study):
    return Repository.open(study.repo, "spec")


@pytest.mark.parametrize("path", ["absent", "tasks", "repo/src", "repo/.git", "job.json"])
def test_only_the_top_of_a_working_tree_is_a_repository(study, path):
    study.load()
    with pytest.raises(InvalidError) as caught:
        Repository.open(study.root / path, "$.target.repo")
    assert caught.value.code == "E_SPEC_REPO"
    assert caught.value.where == "$.target.repo"


def test_a_bare_repository_is_refused(tmp_path, git_in):
    git_in(tmp_path, "init", "-q", "--bare")
    with pytest.raises(InvalidError):
        Repository.open(tmp_path, "spec")


def test_a_repository_may_be_named_through_a_link(study):
    (study.root / "link").symlink_to("repo")
    assert Repository.open(study.root / "link", "spec").root == study.repo.resolve()


def test_before_the_first_commit_there_is_no_head(tmp_path, git_in):
    git_in(tmp_path, "init", "-q")
    assert Repository.open(tmp_path, "spec").find_head() is None


def test_ancestry_is_real(study, repository):
    first = repository.find_head()
    second = study.commit()
    assert repository.is_ancestor(first, second)
    assert repository.is_ancestor(first, first)
    assert not repository.is_ancestor(second, first)


def test_an_absent_commit_is_named_with_its_place(repository):
    with pytest.raises(InvalidError) as caught:
        repository.require_commit("1" * 40, "$.here")
    assert caught.value.code == "E_SPEC_COMMIT"
    assert caught.value.where == "$.here"


def test_a_tree_is_no_commit(study, repository):
    tree = study.git("rev-parse", "HEAD^{tree}").strip()
    assert not repository.has_commit(tree)


def test_committed_bytes_come_back_whatever_they_hold(study, repository):
    contents = {"a": b"", "b": b"\n", "c": bytes(range(256)), "d": b"x blob 3\nabc\n" * 700}
    for name, content in contents.items():
        study.write(f"src/bytes/{name}", content)
    commit = study.commit()
    entries = [
        entry for entry in repository.commit_entries(commit) if entry.path.startswith("src/bytes/")
    ]
    blobs = repository.blobs([entry.object_id for entry in entries])
    found = [b"".join(blob.pieces()) for blob in blobs]
    assert found == list(contents.values())


def test_many_objects_keep_their_order(study, repository):
    for number in range(1100):
        study.write(f"src/many/{number:04}", str(number))
    commit = study.commit()
    entries = [item for item in repository.commit_entries(commit) if "many" in item.path]
    blobs = repository.blobs([item.object_id for item in entries])
    found = [int(b"".join(blob.pieces())) for blob in blobs]
    assert found == list(range(1100))


def test_an_object_that_is_not_here_is_drift(repository):
    with pytest.raises(DriftError) as caught:
        list(repository.blobs(["1" * 40]))
    assert caught.value.code == "E_FREEZE_OBJECT"


def test_the_index_tells_modes_stages_and_sparseness(study, repository):
    study.git("update-index", "--skip-worktree", "src/run.sh")
    entry = next(item for item in repository.index() if item.path == "src/run.sh")
    assert (entry.mode, entry.stage, entry.absent_on_purpose) == (0o100755, 0, True)


def test_git_gets_no_credential_of_the_caller(study, tmp_path, monkeypatch):
    real, log = shutil.which("git"), tmp_path / "environment"
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nenv >>{log}\nexec {real} "$@"\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=os.pathsep)
    monkeypatch.setenv("SOME_MODEL_KEY", "a secret")
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    assert Repository.open(study.repo, "spec").find_head()
    said = log.read_text()
    assert "GIT_OPTIONAL_LOCKS=0" in said
    assert "a secret" not in said
    assert "/elsewhere" not in said
