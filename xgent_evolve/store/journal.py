"""The journal: one fact a line, appended, durable, chained; the truth of a run.

A line is canonical JSON with four members, always in this order:

    {"digest":D,"fact":{...},"prev":P,"seq":N}

D is the digest of the same object without its first member, P is the D of the line before, N
counts from 0. So a flipped byte anywhere is found when the journal is opened, and the check needs
one hash and one JSON parse a line, nothing more.

Crash rules: a line is acknowledged after its fsync. A last line without its end is what an
interrupted write leaves and is cut off, durably, when the journal is opened; if only the newline
is missing, the newline is added. Everything else that does not fit is damage and is reported, not
repaired. After a failed write or fsync the object refuses further facts: what the disk holds is
only known after reading it again (rule R10).
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, cast

from xgent_evolve.canonical import Json, canonical_bytes, digest_bytes
from xgent_evolve.errors import InvalidError, StoreError
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import store_error, store_errors, sync_directory, write_all

type Fact = dict[str, Json]

GENESIS = digest_bytes(b"xgent-evolve/journal/1")
"""The `prev` of the first line."""

_BEFORE_DIGEST = b'{"digest":"'
_DIGEST = slice(len(_BEFORE_DIGEST), len(_BEFORE_DIGEST) + len(GENESIS))
_BODY = _DIGEST.stop + 2
_BEFORE_FACT = '{"fact":'
_decoder = json.JSONDecoder()


class _Line(NamedTuple):
    content: bytes
    """The line as it lies on disk, with its newline."""
    fact: Fact


class Journal:
    """An open journal. One process at a time may append (the run's lock sees to that)."""

    def __init__(self, path: Path, descriptor: int, facts: list[Fact], tip: str) -> None:
        """Take over an open descriptor; callers use `create` or `open`."""
        self.path = path
        self.facts = facts
        self._descriptor = descriptor
        self._tip = tip
        self._assigned = len(facts)
        self._queue: list[_Line] = []
        self._failure: StoreError | None = None
        self._order = threading.Lock()
        self._disk = threading.Lock()
        self._commit: asyncio.Future[None] | None = None

    @classmethod
    def create(cls, path: Path) -> Self:
        """Create an empty journal, durably.

        Raises:
            InvalidError: E_OUTPUT_EXISTS: something has that name.
            StoreError: the file system refused.

        """
        with store_errors(path):
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
                descriptor = os.open(path, flags, 0o644)
            except FileExistsError:
                raise InvalidError(
                    "the journal exists already",
                    code="E_OUTPUT_EXISTS",
                    where=str(path),
                    fix="open it, or choose another directory",
                ) from None
            crash_point("journal.sync-directory")
            sync_directory(path.parent)
        return cls(path, descriptor, [], GENESIS)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read and check all facts, cut a torn last line off, and make ready to append.

        Raises:
            StoreError: E_STORE_MISSING; E_STORE_STATE_CORRUPT naming the line; E_STORE_IO.

        """
        with store_errors(path):
            content = _read(path)
            facts, tip, end = _check(path, content)
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            try:
                if end < len(content):
                    os.ftruncate(descriptor, end)
                elif content and not content.endswith(b"\n"):
                    write_all(descriptor, b"\n")
                crash_point("journal.repaired")
                # Lines of a process that died before its fsync count from here on.
                os.fsync(descriptor)
            except BaseException:
                os.close(descriptor)
                raise
        return cls(path, descriptor, facts, tip)

    def append(self, fact: Fact) -> None:
        """Add a fact; it is durable on return. The cost does not depend on the journal's length.

        Raises:
            TypeError: the fact holds a float or another kind without a canonical form.
            StoreError: it could not be made durable; the journal takes no more facts.

        """
        self._enqueue(fact)
        self._flush()

    async def append_soon(self, fact: Fact) -> None:
        """Add a fact; it is durable on return. Concurrent callers share one fsync.

        Facts get the order of the calls. A cancelled caller's fact is still written. Raises as
        `append` does.
        """
        ticket = self._enqueue(fact)
        loop = asyncio.get_running_loop()
        while len(self.facts) < ticket:
            commit = self._commit
            if commit is None or commit.done() or commit.get_loop() is not loop:
                # A commit that is under way may have started before this fact was queued: it is
                # waited for, and the next one takes the fact.
                commit = self._commit = asyncio.ensure_future(asyncio.to_thread(self._flush))
                commit.add_done_callback(_retrieve)
            await asyncio.shield(commit)

    def close(self) -> None:
        """Write what is still queued and close the file; harmless when closed already."""
        if self._descriptor < 0:
            return
        try:
            if self._failure is None:
                self._flush()
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _enqueue(self, fact: Fact) -> int:
        """Give the fact its place in the chain; return how many facts there are up to it."""
        with self._order:
            self._require_usable()
            body = canonical_bytes({"fact": fact, "prev": self._tip, "seq": self._assigned})
            digest = digest_bytes(body)
            content = b'{"digest":"%s",%s\n' % (digest.encode(), body[1:])
            # The fact is kept as it will be read again: later changes by the caller do not count.
            self._queue.append(_Line(content, json.loads(body)["fact"]))
            self._tip = digest
            self._assigned += 1
            return self._assigned

    def _flush(self) -> None:
        """Make everything that is queued durable with one write and one fsync."""
        with self._disk:
            with self._order:
                self._require_usable()
                lines, self._queue = self._queue, []
            if not lines:
                return
            try:
                crash_point("journal.write")
                write_all(self._descriptor, b"".join(line.content for line in lines))
                crash_point("journal.sync")
                os.fsync(self._descriptor)
                crash_point("journal.synced")
            except OSError as error:
                self._failure = store_error(error, self.path)
                raise self._failure from error
            self.facts.extend(line.fact for line in lines)

    def _require_usable(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._descriptor < 0:
            raise ValueError(f"{self.path} is closed")


def read_facts(path: Path) -> list[Fact]:
    """Return the facts of a journal without writing anything; a torn last line is left alone.

    Raises:
        StoreError: as for `Journal.open`.

    """
    with store_errors(path):
        return _check(path, _read(path))[0]


def _retrieve(commit: asyncio.Future[None]) -> None:
    """Look at a commit's failure, so that asyncio does not report it when nobody waits."""
    if not commit.cancelled():
        commit.exception()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise StoreError(
            "the journal is missing",
            code="E_STORE_MISSING",
            where=str(path),
            fix="restore the run directory from a copy",
        ) from None


class _Checked(NamedTuple):
    facts: list[Fact]
    tip: str
    end: int
    """Bytes up to which the content is sound."""


def _check(path: Path, content: bytes) -> _Checked:
    """Check every line; the bytes after the last newline may be a torn line."""
    facts: list[Fact] = []
    tip: str = GENESIS
    *lines, tail = content.split(b"\n")
    for number, line in enumerate(lines):
        record = _parse(line, tip, number)
        if isinstance(record, str):
            raise _damage(path, number, record)
        tip, fact = record
        facts.append(fact)
    end = len(content) - len(tail)
    record = _parse(tail, tip, len(lines))
    if not isinstance(record, str):
        return _Checked([*facts, record[1]], record[0], len(content))
    if not isinstance(_parse(tail[:-1], tip, len(lines)), str):
        # A torn write leaves a beginning of the line, never a whole line and then another byte.
        raise _damage(path, len(lines), "another byte than a newline at the end")
    return _Checked(facts, tip, end)


def _parse(line: bytes, tip: str, number: int) -> tuple[str, Fact] | str:
    """Return the line's digest and fact, or what is wrong with it."""
    # A run may have ten thousands of lines: one hash and one parse each, and little beside them.
    if not line.startswith(_BEFORE_DIGEST) or line[_DIGEST.stop : _BODY] != b'",':
        return "not a line of a journal"
    body = b"{" + line[_BODY:]
    digest = digest_bytes(body)
    if digest.encode() != line[_DIGEST]:
        return "the line's bytes do not match its own hash"
    try:
        text = body.decode()
        fact, end = _decoder.raw_decode(text, len(_BEFORE_FACT))
    except ValueError:
        return "not a line of a journal"
    if not text.startswith(_BEFORE_FACT) or text[end:] != f',"prev":"{tip}","seq":{number}}}':
        return "the line does not continue the line before"
    return digest, cast("Fact", fact)


def _damage(path: Path, number: int, found: str) -> StoreError:
    return StoreError(
        "the journal is damaged",
        code="E_STORE_STATE_CORRUPT",
        where=f"{path}:{number + 1}",
        expected="an unbroken chain of lines",
        found=found,
        fix="restore the journal from a copy of the run directory; nothing was changed",
    )
