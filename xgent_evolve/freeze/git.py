"""Questions to Git, through plumbing that obeys nobody but us.

The user's and the machine's configuration, hooks, filters, replacements, grafts and the file
monitor are off, no transport can run, no lock is taken and nothing is written in the user's
`.git`. Names are bytes on the way in and text form (see `canonical.path_text`) here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, NamedTuple, cast

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import DriftError, InvalidError, RefusedError

_OPTIONS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "protocol.allow=never",
)
_PIECE = 1 << 20


class IndexEntry(NamedTuple):
    """One path of the index."""

    path: str
    mode: int
    """Git's mode: 0o100644, 0o100755, 0o120000 (link) or 0o160000 (another repository)."""
    stage: int
    """0, or 1 to 3 while a merge is unfinished."""
    absent_on_purpose: bool
    """Marked skip-worktree: a sparse checkout leaves the file out."""
    unwatched: bool
    """Marked skip-worktree or assume-unchanged: Git's status hides what happens to it."""


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
        listing = self._ask("ls-files", "-z", "-v", "--stage").stdout
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

    def blobs(self, object_ids: Iterable[str]) -> Iterator[CommittedBlob]:
        """Yield blobs, in order, as they were committed: no filter runs.

        One is read at a time; the next one is asked for when the pieces of the last are used up
        or passed over.

        Raises:
            DriftError: E_FREEZE_OBJECT: an object is missing, as in a partial clone.

        """
        with self._started("cat-file", "--batch") as (questions, answers):
            for object_id in object_ids:
                questions.write(f"{object_id}\n".encode())
                questions.flush()
                header = answers.readline()
                blob = CommittedBlob(_blob_size(header, object_id), answers)
                yield blob
                for _ in blob.pieces():
                    pass
                answers.read(1)

    def read_blob(self, object_id: str) -> bytes:
        """Return one blob as it was committed; raise as `blobs` does."""
        return b"".join(piece for blob in self.blobs([object_id]) for piece in blob.pieces())

    def _ask(self, *arguments: str, accept: tuple[int, ...] = (0,)) -> _Answer:
        try:
            answer = subprocess.run(
                _command(arguments),
                cwd=self.root,
                env=_environment(self.root),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        if answer.returncode not in accept:
            raise RefusedError(
                f"git {arguments[0]} failed",
                code="E_GIT",
                where=str(self.root),
                found=_first_line(answer.stderr) or f"exit code {answer.returncode}",
                fix="check the repository with: git fsck",
            )
        return answer

    @contextmanager
    def _started(self, *arguments: str) -> Generator[tuple[IO[bytes], IO[bytes]]]:
        """Yield the two ends of a git process that answers questions."""
        try:
            process = subprocess.Popen(
                _command(arguments),
                cwd=self.root,
                env=_environment(self.root),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except FileNotFoundError as error:
            raise _no_git() from error
        with process:
            try:
                yield cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
            finally:
                process.kill()


type _Answer = subprocess.CompletedProcess[bytes]


class CommittedBlob:
    """The bytes of a file as they were committed, read from Git's answer."""

    def __init__(self, size: int, answers: IO[bytes]) -> None:
        """Stand before `size` bytes of `answers`."""
        self.size = size
        self._left = size
        self._answers = answers

    def pieces(self) -> Iterator[bytes]:
        """Return what was not read yet, in pieces.

        Raises:
            DriftError: E_FREEZE_OBJECT: Git stopped before the end.

        """
        while self._left:
            piece = self._answers.read(min(self._left, _PIECE))
            if not piece:
                raise _no_object("an object of the commit", "an answer that stops before its end")
            self._left -= len(piece)
            yield piece


def _command(arguments: Sequence[str]) -> list[str]:
    options = [part for option in _OPTIONS for part in ("-c", option)]
    return ["git", "--no-pager", *options, *arguments]


_INHERITED = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "DEVELOPER_DIR")


def _environment(root: Path) -> dict[str, str]:
    """Return the environment of a git process: what starting a program needs, and no credential."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | {
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
    absent = tag.upper() == b"S"
    return IndexEntry(path_text(name), int(mode, 8), int(stage), absent, absent or tag.islower())


def _commit_entry(line: bytes) -> CommitEntry:
    """Parse `100644 blob <object><TAB>path`."""
    head, _, name = line.partition(b"\t")
    mode, kind, object_id = head.decode().split(" ")
    return CommitEntry(
        path_text(name), int(mode, 8), "commit" if kind == "commit" else "blob", object_id
    )


def _blob_size(header: bytes, object_id: str) -> int:
    """Parse `<object> blob <size>`, the line before the bytes."""
    parts = header.split()
    if len(parts) != 3 or parts[1] != b"blob":
        raise _no_object(object_id, header.decode(errors="replace").strip() or "no answer")
    return int(parts[2])


def _no_object(where: str, found: str) -> DriftError:
    return DriftError(
        "an object of the commit is not in the repository",
        code="E_FREEZE_OBJECT",
        where=where,
        found=found,
        fix="fetch the missing objects (a partial clone leaves some out)",
    )


def _no_git() -> InvalidError:
    return InvalidError(
        "git is not installed",
        code="E_GIT_MISSING",
        where="PATH",
        fix="install Git 2.34 or newer",
    )


def _first_line(output: bytes) -> str:
    return output.decode(errors="replace").partition("\n")[0].strip()
