"""Questions to Git, through plumbing that obeys nobody but us.

The user's and the machine's configuration, hooks, filters, replacements, grafts and the file
monitor are off, no transport can run, no lock is taken and nothing is written in the user's
`.git`. Names are bytes on the way in and text form (see `canonical.path_text`) here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import DriftError, InvalidError, RefusedError

_OPTIONS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "protocol.allow=never",
)
_BATCH = 512
"""Objects asked for at once: bounds the memory, not the result."""


class IndexEntry(NamedTuple):
    """One path of the index."""

    path: str
    mode: int
    """Git's mode: 0o100644, 0o100755, 0o120000 (link) or 0o160000 (another repository)."""
    stage: int
    """0, or 1 to 3 while a merge is unfinished."""
    absent_on_purpose: bool
    """Marked skip-worktree: a sparse checkout leaves the file out."""


class CommitEntry(NamedTuple):
    """One path of a commit."""

    path: str
    mode: int
    kind: Literal["blob", "commit"]
    object_id: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A Git working tree."""

    root: Path
    """Its top directory, with links resolved."""

    @classmethod
    def open(cls, path: Path, where: str) -> Repository:
        """Return the working tree whose top directory is `path`.

        `where` is the place in the JobSpec that names it.

        Raises:
            InvalidError: E_SPEC_REPO: it is no directory, no working tree, or not its top.

        """
        if not path.is_dir():
            raise InvalidError(
                "the repository does not exist",
                code="E_SPEC_REPO",
                where=where,
                found=str(path),
                fix="give the directory of a Git working tree",
            )
        repository = cls(path.resolve())
        answer = repository._ask("rev-parse", "--show-toplevel", accept=(0, 128))
        top = os.fsdecode(answer.stdout.removesuffix(b"\n"))
        if answer.returncode != 0 or not top or Path(top).resolve() != repository.root:
            raise InvalidError(
                "the repository is not the top of a Git working tree",
                code="E_SPEC_REPO",
                where=where,
                expected=f"{repository.root} with a .git in it",
                found=top or _first_line(answer.stderr),
                fix="give the top directory of a working tree",
            )
        return repository

    def find_head(self) -> str | None:
        """Return the commit that the working tree stands on; None before the first commit."""
        answer = self._ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}", accept=(0, 1))
        return answer.stdout.decode().strip() or None

    def has_commit(self, commit: str) -> bool:
        """Say whether the commit's object is here."""
        answer = self._ask("cat-file", "-e", f"{commit}^{{commit}}", accept=(0, 1, 128))
        return answer.returncode == 0

    def is_ancestor(self, older: str, newer: str) -> bool:
        """Say whether `older` is `newer` or one of its ancestors; both must exist."""
        answer = self._ask("merge-base", "--is-ancestor", older, newer, accept=(0, 1))
        return answer.returncode == 0

    def index(self) -> list[IndexEntry]:
        """Return every path of the index; files that a sparse checkout leaves out included."""
        listing = self._ask("ls-files", "-z", "-t", "--stage").stdout
        return [_index_entry(line) for line in listing.split(b"\0") if line]

    def nested_repositories(self, paths: Sequence[str]) -> list[str]:
        """Return untracked, not ignored repositories below `paths`."""
        arguments = [os.fsdecode(path_bytes(path)) for path in paths]
        listing = self._ask(
            "ls-files", "-z", "--others", "--exclude-standard", "--", *arguments
        ).stdout
        return [path_text(line[:-1]) for line in listing.split(b"\0") if line.endswith(b"/")]

    def commit_entries(self, commit: str) -> list[CommitEntry]:
        """Return every file, link and submodule of a commit, in Git's order.

        Raises:
            InvalidError: E_SPEC_COMMIT: the commit is not in this repository.

        """
        self.require_commit(commit, str(self.root))
        listing = self._ask("ls-tree", "-r", "-z", "--full-tree", commit).stdout
        return [_commit_entry(line) for line in listing.split(b"\0") if line]

    def require_commit(self, commit: str, where: str) -> None:
        """Raise InvalidError (E_SPEC_COMMIT) naming `where` unless the commit is here."""
        if not self.has_commit(commit):
            raise InvalidError(
                "the commit is not in the repository",
                code="E_SPEC_COMMIT",
                where=where,
                expected=f"commit {commit} in {self.root}",
                fix="fetch it first (git fetch origin <commit>), or correct the commit",
            )

    def blobs(self, object_ids: Sequence[str]) -> Iterator[bytes]:
        """Return the contents of blobs, in order, as they were committed: no filter runs.

        Raises:
            DriftError: E_FREEZE_OBJECT: an object is missing, as in a partial clone.

        """
        for start in range(0, len(object_ids), _BATCH):
            batch = object_ids[start : start + _BATCH]
            wanted = "".join(f"{object_id}\n" for object_id in batch).encode()
            yield from _parse_batch(self._ask("cat-file", "--batch", content=wanted).stdout, batch)

    def _ask(
        self, *arguments: str, content: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> subprocess.CompletedProcess[bytes]:
        options = [part for option in _OPTIONS for part in ("-c", option)]
        command = ["git", "--no-pager", *options, *arguments]
        try:
            answer = subprocess.run(
                command,
                cwd=self.root,
                env=_environment(self.root),
                input=content,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise InvalidError(
                "git is not installed",
                code="E_GIT_MISSING",
                where="PATH",
                fix="install Git 2.34 or newer",
            ) from error
        if answer.returncode not in accept:
            raise RefusedError(
                f"git {arguments[0]} failed",
                code="E_GIT",
                where=str(self.root),
                found=_first_line(answer.stderr) or f"exit code {answer.returncode}",
                fix="check the repository with: git fsck",
            )
        return answer


def _environment(root: Path) -> dict[str, str]:
    """Return the environment of a git process: the caller's without its GIT_ variables."""
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("GIT_")}
    return inherited | {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_GRAFT_FILE": os.devnull,
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_TERMINAL_PROMPT": "0",
        # A checkout of another owner may be read: nothing of it is ever run.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": os.fspath(root),
    }


def _index_entry(line: bytes) -> IndexEntry:
    """Parse `S 100644 <object> 0<TAB>path`."""
    head, _, name = line.partition(b"\t")
    tag, mode, _, stage = head.split(b" ")
    return IndexEntry(path_text(name), int(mode, 8), int(stage), tag == b"S")


def _commit_entry(line: bytes) -> CommitEntry:
    """Parse `100644 blob <object><TAB>path`."""
    head, _, name = line.partition(b"\t")
    mode, kind, object_id = head.decode().split(" ")
    return CommitEntry(
        path_text(name), int(mode, 8), "commit" if kind == "commit" else "blob", object_id
    )


def _parse_batch(output: bytes, object_ids: Sequence[str]) -> Iterator[bytes]:
    """Split the output of `cat-file --batch`: a line `<object> blob <size>`, bytes, newline."""
    offset = 0
    for object_id in object_ids:
        end = output.find(b"\n", offset)
        header = output[offset:end].split(b" ")
        if len(header) != 3 or header[1] != b"blob":
            raise DriftError(
                "an object of the commit is not in the repository",
                code="E_FREEZE_OBJECT",
                where=object_id,
                found=output[offset:end].decode(errors="replace"),
                fix="fetch the missing objects (a partial clone leaves some out)",
            )
        size = int(header[2])
        yield output[end + 1 : end + 1 + size]
        offset = end + 2 + size


def _first_line(output: bytes) -> str:
    return output.decode(errors="replace").partition("\n")[0].strip()
