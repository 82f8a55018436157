"""A repository with a few files, and a correction of two of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "docs").mkdir(parents=True)
    (root / "AGENTS.md").write_text("Run `make test`.\n")
    (root / "docs" / "run.sh").write_text("echo old\n")
    (root / "docs" / "run.sh").chmod(0o750)
    (root / "other.md").write_text("untouched\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "base"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True)
    return root
