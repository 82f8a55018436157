"""Durable effects: whole files under final names, errors that say what to do."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from xgent_evolve.errors import StoreError
from xgent_evolve.store.durable import (
    make_directory_durable,
    remove_leftovers,
    rename_no_replace,
    store_error,
    sync_filesystem,
    temporary_sibling,
    write_durable,
)


def test_a_file_is_written_and_replaced_whole_with_its_mode(tmp_path):
    path = tmp_path / "file"
    write_durable(path, b"one")
    write_durable(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in tmp_path.iterdir()] == ["file"]


def test_a_failing_write_leaves_the_old_file_and_no_temporary_one(tmp_path):
    path = tmp_path / "name"
    path.mkdir()
    (path / "inside").write_text("kept")
    with pytest.raises(StoreError) as caught:
        write_durable(path, b"new")
    assert caught.value.code == "E_STORE_IO"
    assert [item.name for item in tmp_path.iterdir()] == ["name"]


def test_a_write_into_an_absent_directory_is_an_error(tmp_path):
    with pytest.raises(StoreError):
        write_durable(tmp_path / "absent" / "file", b"x")


def test_directories_are_made_with_their_parents(tmp_path):
    make_directory_durable(tmp_path / "a" / "b" / "c")
    make_directory_durable(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b" / "c").is_dir()


def test_a_file_in_the_way_of_a_directory_is_an_error(tmp_path):
    (tmp_path / "a").write_text("file")
    with pytest.raises(StoreError):
        make_directory_durable(tmp_path / "a" / "b")


@pytest.mark.parametrize("make", ["file", "directory", "empty directory", "dead link"])
def test_a_rename_never_replaces(tmp_path, make):
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir() if "directory" in make else source.write_text("new")
    match make:
        case "file":
            target.write_text("old")
        case "dead link":
            target.symlink_to("nowhere")
        case _:
            target.mkdir()
    with pytest.raises(FileExistsError):
        rename_no_replace(source, target)
    assert source.exists()


def test_a_rename_to_a_free_name_moves(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("new")
    rename_no_replace(source, target)
    assert target.read_text() == "new"
    assert not source.exists()


def test_leftovers_are_known_by_their_names(tmp_path):
    temporary_sibling(tmp_path / "state.json").write_text("half")
    (tmp_path / "state.json").write_text("whole")
    (tmp_path / ".hidden").write_text("mine")
    assert remove_leftovers(tmp_path) == 1
    assert sorted(item.name for item in tmp_path.iterdir()) == [".hidden", "state.json"]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "E_STORE_NO_SPACE"),
        (errno.EDQUOT, "E_STORE_NO_SPACE"),
        (errno.EIO, "E_STORE_IO"),
        (errno.EACCES, "E_STORE_IO"),
        (errno.EROFS, "E_STORE_IO"),
    ],
)
def test_every_error_of_the_disk_has_a_code_and_a_cure(tmp_path, number, code):
    error = store_error(OSError(number, os.strerror(number)), tmp_path / "file")
    assert error.code == code
    assert str(tmp_path / "file") in error.where
    assert error.fix


def test_a_barrier_over_the_file_system_is_reported(tmp_path):
    assert sync_filesystem(tmp_path) is (os.uname().sysname == "Linux")
