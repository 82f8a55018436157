"""How much of the AGENTS.md files an agent really gets.

Measured on Codex 0.162.1: of every directory from the repository's top down to the working
directory, it takes AGENTS.override.md, or else AGENTS.md, and adds up to `project_doc_max_bytes`
bytes of all of them together; the rest is dropped in silence, in the middle of a character if need
be. A file of white space alone is skipped and costs nothing. An import (`@FILE`) is not followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

PROJECT_DOC_MAX_BYTES: Final = 32_768
"""Codex's default, which every trial sets explicitly and the protocol records."""

OVERRIDE_FILE: Final = "AGENTS.override.md"
"""Found beside an AGENTS.md, the agent reads this one instead."""


@dataclass(frozen=True, slots=True)
class LoadedText:
    """One instruction file and what of it is loaded."""

    path: str
    content: bytes
    kept: int
    """Bytes from the start that are loaded; 0 for a file of white space."""

    @property
    def lost(self) -> int:
        """Bytes that are not loaded although they hold text."""
        return len(self.content) - self.kept if self.content[self.kept :].strip() else 0

    @property
    def text(self) -> str:
        """What the agent gets, with a replacement character where a character was cut."""
        return self.content[: self.kept].decode("utf-8", "replace")

    @property
    def first_lost_line(self) -> int:
        """Number of the first line that is not loaded to its end, from 1."""
        return self.content.count(b"\n", 0, self.kept) + 1

    @property
    def cuts_character(self) -> bool:
        """Whether the cut falls into a character."""
        if self.kept == len(self.content):
            return False
        # A byte of the form 10xxxxxx goes on with the character before it.
        return self.content[self.kept] & 0xC0 == 0x80

    def line(self, number: int) -> str:
        """Return one line of the file, as text."""
        return self.content.split(b"\n")[number - 1].decode("utf-8", "replace").strip()


def loaded_texts(files: Mapping[str, bytes], limit: int) -> dict[str, LoadedText]:
    """Return what is loaded of every instruction file, by path. Pure.

    `files` holds all files called AGENTS.md or AGENTS.override.md by their path in the
    repository. A file shares its budget with those of the directories above it, so what is kept
    of it is the same for every working directory at or below its own. Hidden files are left out.
    """
    by_directory = _read_files(files)
    loaded: dict[str, LoadedText] = {}
    spent: dict[str, int] = {}
    for directory in sorted(by_directory, key=_depth):
        path = by_directory[directory]
        above = _nearest(directory, spent)
        content = files[path]
        kept = content[: max(0, limit - above)]
        used = len(kept) if kept.decode("utf-8", "replace").strip() else 0
        loaded[path] = LoadedText(path, content, used)
        spent[directory] = above + used
    return loaded


def only_import(content: bytes) -> str | None:
    """Return the import when a file holds nothing else (`@CLAUDE.md`), else None. Pure."""
    text = content.decode("utf-8", "replace").strip()
    return text if text.startswith("@") and len(text.split()) == 1 and len(text) > 1 else None


def _read_files(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the file that is read of every directory; the top is the empty path."""
    chosen: dict[str, str] = {}
    for path in files:
        directory, _, name = path.rpartition("/")
        if name == OVERRIDE_FILE or directory not in chosen:
            chosen[directory] = path
    return chosen


def _depth(directory: str) -> tuple[int, str]:
    return (directory.count("/") + 1 if directory else 0), directory


def _nearest(directory: str, spent: Mapping[str, int]) -> int:
    """Return what the files of the directories above have used up."""
    while directory:
        directory = directory.rpartition("/")[0]
        if directory in spent:
            return spent[directory]
    return 0
