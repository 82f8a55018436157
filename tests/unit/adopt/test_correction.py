"""A correction of facts: frozen with its sources, unverified, written on the caller's word."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from xgent_evolve.adopt.correction import Correction, freeze_correction, read_correction
from xgent_evolve.api.adoption import apply
from xgent_evolve.errors import AuthorityError, InvalidError, RefusedError, StoreError

NEW = "Run `make check`.\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "Makefile"
    path.write_text("check:\n\tpytest\n")
    return path


@pytest.fixture
def package(tmp_path: Path, repo: Path, source: Path) -> Path:
    output = tmp_path / "correction"
    changes = {"AGENTS.md": NEW, "docs/run.sh": "echo new\n"}
    freeze_correction(repo, changes, [source], output, authorized=True)
    return output


def test_an_authorised_correction_is_written_and_says_that_it_is_unverified(
    repo: Path, package: Path
) -> None:
    foreseen = apply(package, repo, dry_run=True)
    assert (foreseen.written, foreseen.changed) == (False, ("AGENTS.md", "docs/run.sh"))
    assert "-Run `make test`.\n+Run `make check`.\n" in foreseen.diff
    assert (repo / "AGENTS.md").read_text() == "Run `make test`.\n"
    done = apply(package, repo)
    assert (done.written, done.status, done.changed) == (True, "unverified", foreseen.changed)
    assert (repo / "AGENTS.md").read_text() == NEW
    assert (repo / "docs" / "run.sh").stat().st_mode & 0o777 == 0o750
    status = ["git", "-C", repo, "status", "--porcelain"]
    assert subprocess.check_output(status, text=True) == " M AGENTS.md\n M docs/run.sh\n"
    assert apply(package, repo).changed == ()


def test_the_package_confirms_nothing(package: Path) -> None:
    document = json.loads((package / "correction.json").read_bytes())
    assert (document["status"], document["confirmed_best"]) == ("unverified", None)
    assert read_correction(package) == Correction.model_validate(document)


def test_without_authority_it_can_be_kept_and_not_written(
    tmp_path: Path, repo: Path, source: Path
) -> None:
    freeze_correction(repo, {"AGENTS.md": NEW}, [source], tmp_path / "kept")
    for dry_run in (True, False):
        with pytest.raises(AuthorityError):
            apply(tmp_path / "kept", repo, dry_run=dry_run)
    assert (repo / "AGENTS.md").read_text() == "Run `make test`.\n"


def test_an_edit_since_then_is_kept(repo: Path, package: Path) -> None:
    (repo / "docs" / "run.sh").write_text("echo mine\n")
    for dry_run in (True, False):
        with pytest.raises(RefusedError) as caught:
            apply(package, repo, dry_run=dry_run)
        assert caught.value.code == "E_APPLY_CONFLICT"
        assert "docs/run.sh" in caught.value.found
    assert (repo / "AGENTS.md").read_text() == "Run `make test`.\n"
    assert (repo / "docs" / "run.sh").read_text() == "echo mine\n"


@pytest.mark.parametrize("change", [lambda path: path.write_text("check:\n"), Path.unlink])
def test_a_source_that_says_something_else_now_supports_nothing(
    repo: Path, package: Path, source: Path, change
) -> None:
    change(source)
    with pytest.raises(RefusedError) as caught:
        apply(package, repo)
    assert caught.value.code == "E_CORRECTION_SOURCE"
    assert (repo / "AGENTS.md").read_text() == "Run `make test`.\n"


def test_damaged_bytes_are_not_written(repo: Path, package: Path) -> None:
    for path in (package / "blobs").rglob("*"):
        if path.is_file() and path.read_text() == NEW:
            path.chmod(0o644)
            path.write_text("Run `rm -rf /`.\n")
    with pytest.raises(StoreError) as caught:
        apply(package, repo)
    assert caught.value.code == "E_STORE_CORRUPT"
    assert (repo / "AGENTS.md").read_text() == "Run `make test`.\n"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1", b'{"type": "xgent-evolve/correction/1"}', b"\xff"]
)
def test_a_damaged_package_is_named(repo: Path, package: Path, content: bytes) -> None:
    (package / "correction.json").write_bytes(content)
    with pytest.raises(StoreError) as caught:
        apply(package, repo)
    assert caught.value.code == "E_STORE_CORRUPT"


def test_another_repository_is_refused(tmp_path: Path, package: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", other], check=True)
    with pytest.raises(AuthorityError):
        apply(package, other)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("../AGENTS.md", NEW),
        ("/etc/passwd", NEW),
        (".git/config", NEW),
        ("docs/../AGENTS.md", NEW),
        ("docs", NEW),
        ("missing.md", NEW),
        ("link.md", NEW),
        ("way/run.sh", NEW),
        ("AGENTS.md", "Run `make test`.\n"),
    ],
)
def test_what_is_no_changed_file_of_the_repository_is_refused(
    tmp_path: Path, repo: Path, source: Path, path: str, text: str
) -> None:
    (repo / "link.md").symlink_to("AGENTS.md")
    (repo / "way").symlink_to("docs")
    with pytest.raises(InvalidError) as caught:
        freeze_correction(repo, {path: text}, [source], tmp_path / "out", authorized=True)
    assert caught.value.code == "E_CORRECTION"
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_correction_needs_changes_sources_and_a_new_name(
    tmp_path: Path, repo: Path, source: Path, package: Path
) -> None:
    for changes, sources, output, code in (
        ({}, [source], tmp_path / "out", "E_CORRECTION"),
        ({"AGENTS.md": NEW}, [], tmp_path / "out", "E_CORRECTION"),
        ({"AGENTS.md": NEW}, [tmp_path / "none"], tmp_path / "out", "E_CORRECTION"),
        ({"AGENTS.md": NEW}, [source], package, "E_OUTPUT_EXISTS"),
    ):
        with pytest.raises(InvalidError) as caught:
            freeze_correction(repo, changes, sources, output, authorized=True)
        assert caught.value.code == code
