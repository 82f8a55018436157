"""`correct` and `apply` from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "AGENTS.md").write_text("Run `make test`.\n")
    (tmp_path / "new.md").write_text("Run `make check`.\n")
    (tmp_path / "Makefile").write_text("check:\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "base"],
    ):
        subprocess.run(["git", "-C", root, *words], check=True)
    return root


def call(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "xgent_evolve", *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )


CORRECT = [
    "correct",
    "--repo",
    "repo",
    "--change",
    "AGENTS.md=new.md",
    "--evidence",
    "Makefile",
    "--output",
    "fix",
]


def test_a_correction_goes_from_freeze_to_diff_to_files(tmp_path: Path, repo: Path) -> None:
    frozen = call(tmp_path, *CORRECT, "--authorized")
    assert frozen.returncode == 0, frozen.stderr
    assert frozen.stdout == (
        "froze 1 changed, 1 sources in fix\n"
        "next: xgent-evolve apply --run fix --repo repo --dry-run\n"
    )
    shown = call(tmp_path, "apply", "--run", "fix", "--repo", "repo", "--dry-run")
    assert shown.stdout == (
        "--- a/AGENTS.md\n+++ b/AGENTS.md\n@@ -1 +1 @@\n-Run `make test`.\n+Run `make check`.\n"
    )
    done = call(tmp_path, "apply", "--run", "fix", "--repo", "repo", "--json")
    assert json.loads(done.stdout)["changed"] == ["AGENTS.md"]
    again = call(tmp_path, "apply", "--run", "fix", "--repo", "repo")
    assert again.stdout == "nothing to do: the repository has this text already\n"


def test_a_correction_without_authority_is_refused(tmp_path: Path, repo: Path) -> None:
    assert "without --authorized" in call(tmp_path, *CORRECT).stdout
    refused = call(tmp_path, "apply", "--run", "fix", "--repo", "repo")
    assert (refused.returncode, "E_AUTHORITY" in refused.stderr) == (2, True)


@pytest.mark.parametrize("change", ["AGENTS.md", "AGENTS.md=missing", "AGENTS.md=repo"])
def test_a_change_that_cannot_be_read_is_named(tmp_path: Path, repo: Path, change: str) -> None:
    words = [change if word == "AGENTS.md=new.md" else word for word in CORRECT]
    refused = call(tmp_path, *words)
    assert (refused.returncode, "E_CORRECTION" in refused.stderr) == (2, True)
