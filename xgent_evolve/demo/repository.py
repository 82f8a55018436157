"""A demo's repository and files: the same bytes each time, and never over somebody's change."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from xgent_evolve.errors import DriftError, InvalidError

_MOMENT: Final = "2026-01-01T09:00:00+00:00"
_AUTHOR: Final = "The House"
_EMAIL: Final = "house@example.invalid"

type Files = Iterable[tuple[str, bytes]]
"""Relative path and content of each file."""


def write_repository(directory: Path, name: str, material: Files, message: str) -> str:
    """Make the repository `name` below `directory` and return its one commit.

    The same bytes give the same commit; doing it again changes nothing.

    Raises:
        DriftError: the repository is there and is no longer the demo's.
        InvalidError: Git cannot be run.

    """
    repository = directory / name
    fresh = directory / f".{name}.partial"
    shutil.rmtree(fresh, ignore_errors=True)
    write_tree(material, fresh)
    _git(fresh, "init", "--quiet")
    _git(fresh, "add", "--all")
    _git(fresh, "commit", "--quiet", "--message", message)
    commit = _git(fresh, "rev-parse", "HEAD")
    if not repository.exists():
        fresh.rename(repository)
        return commit
    shutil.rmtree(fresh)
    changes = _git(repository, "status", "--porcelain")
    if changes or _git(repository, "rev-parse", "HEAD") != commit:
        raise DriftError(
            "the demo's repository was changed",
            where=str(repository),
            expected=f"commit {commit[:12]} and a clean working tree",
            found=changes.splitlines()[0].strip() if changes else "another commit",
            fix="undo the change, or start the demo in another directory",
        )
    return commit


def _git(repository: Path, *arguments: str) -> str:
    """Run Git without the user's and the system's configuration."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    settings = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DEFAULT_HASH": "sha1",
        "GIT_AUTHOR_NAME": _AUTHOR,
        "GIT_AUTHOR_EMAIL": _EMAIL,
        "GIT_AUTHOR_DATE": _MOMENT,
        "GIT_COMMITTER_NAME": _AUTHOR,
        "GIT_COMMITTER_EMAIL": _EMAIL,
        "GIT_COMMITTER_DATE": _MOMENT,
        "LC_ALL": "C",
    }
    options = ("-c", "init.defaultBranch=main", "-c", "init.templateDir=")
    try:
        done = subprocess.run(
            ["git", "-C", str(repository), *options, *arguments],
            env=quiet | settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        )
    except FileNotFoundError as error:
        raise InvalidError("git is not installed", fix="install git") from error
    except subprocess.CalledProcessError as error:
        raise InvalidError(
            f"git {arguments[0]} failed",
            where=str(repository),
            found=str(error.stderr).strip(),
            fix="check that the directory is yours and that git works there",
        ) from error
    return done.stdout.strip()


def write_tree(material: Files, target: Path) -> None:
    """Write files below `target`; scripts are executable."""
    for path, content in material:
        # Packaging may lose mode bits, so they follow from what the file is.
        mode = 0o755 if content.startswith(b"#!") else 0o644
        write_file(target / path, content, mode)


def write_file(path: Path, content: bytes, mode: int) -> None:
    """Write a file unless it holds that already."""
    if not (path.is_file() and path.read_bytes() == content):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    path.chmod(mode)
