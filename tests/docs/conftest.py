"""The documents and what they speak of."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def files() -> list[Path]:
    """Every file of the project: tracked, or new and not ignored."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    return sorted(path for path in paths if path.is_file() and not path.is_symlink())


@pytest.fixture(scope="session")
def documents(files: list[Path]) -> list[Path]:
    """The Markdown that people read: not the material of tests and of the demo."""
    found = [path for path in files if path.suffix == ".md"]
    apart = ("tests", "xgent_evolve")
    return [path for path in found if path.relative_to(ROOT).parts[0] not in apart]


@pytest.fixture(scope="session")
def code_blocks() -> Callable[[Path, str], list[str]]:
    """Return the fenced blocks of a document in one language; the empty one is any."""

    def blocks(path: Path, language: str) -> list[str]:
        return list(_blocks(path.read_text(), language))

    return blocks


def _blocks(text: str, language: str) -> Iterator[str]:
    for found, content in _FENCE.findall(text):
        if language in ("", found.strip()):
            yield content
