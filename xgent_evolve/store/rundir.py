"""The run directory: where everything about one run lies.

    RUN/
      run.json               marks the directory and holds the run's id
      protocol.json          the frozen study
      bundles/ blobs/        content-addressed bytes
      journal.jsonl          the truth
      host.json              what the host was found to be before the first execution
      state.json             a view of the journal; safe to delete
      results.jsonl          one row per attempt, failures included
      executions/<uuid>/     intent.json, remote.json, artifacts.json
      report.json report.md report.html  what was found
      lock                   held by the controller that is at work

A run directory appears whole or not at all: it is built under a temporary sibling name, with its
protocol and frozen bytes, and renamed (requirement C3).
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.errors import BusyError, InvalidError, RefusedError, StoreError
from xgent_evolve.ids import ExecutionId, RunId
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import (
    make_directory_durable,
    remove_leftovers,
    rename_no_replace,
    store_errors,
    sync_directory,
    write_all,
    write_durable,
)
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.lock import RunLock


class Mark(BaseModel):
    """Content of run.json."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    type: Literal["xgent-evolve/run/1"]
    """What this directory is."""
    run_id: str
    """UUID, drawn when the directory was made."""


@dataclass(frozen=True, slots=True)
class ExecutionDir:
    """The files of one execution."""

    path: Path
    """`executions/<uuid>`; made by `write`."""

    @property
    def intent(self) -> Path:
        """What was registered before submission."""
        return self.path / "intent.json"

    @property
    def remote(self) -> Path:
        """Receipts that came from the host."""
        return self.path / "remote.json"

    @property
    def artifacts(self) -> Path:
        """Name of each captured artifact, and its blob."""
        return self.path / "artifacts.json"

    def write(self, name: str, content: bytes) -> Path:
        """Put a file of that name here, durably; return its path. Raises StoreError."""
        make_directory_durable(self.path)
        write_durable(self.path / name, content)
        return self.path / name


class RunDir:
    """An existing run directory. Making one does not lock it: see `lock`."""

    def __init__(self, path: Path, run_id: RunId) -> None:
        """Describe the directory `path`; callers use `create` or `open`."""
        self.path = path
        self.run_id = run_id

    @classmethod
    def create(cls, path: Path) -> Self:
        """Make an empty run directory, in one step; to make one with content use `draft`.

        Raises:
            InvalidError: E_OUTPUT_EXISTS: something has that name.
            StoreError: the file system refused.

        """
        with cls.draft(path):
            pass
        return cls.open(path)

    @classmethod
    @contextmanager
    def draft(cls, path: Path) -> Generator[Self]:
        """Build a run directory: what the block writes appears under `path` when it ends.

        The block writes through the functions of this package, which are durable on return.

        An exception in the block leaves nothing behind; a crash leaves a hidden sibling that the
        next draft for the same path removes.

        Raises:
            InvalidError: E_OUTPUT_EXISTS: something has that name, before or after the block.
            StoreError: the file system refused.

        """
        path = Path(os.path.abspath(path))  # noqa: PTH100 - links in the name stay as they are
        if os.path.lexists(path):
            raise _exists(path)
        make_directory_durable(path.parent)
        _remove_dead_drafts(path)
        building = path.with_name(f"{_draft_prefix(path)}{uuid.uuid4().hex}")
        with store_errors(path):
            building.mkdir()
        with RunLock.acquire(building / "lock"):
            try:
                yield cls._fill(building)
                _publish(building, path)
            except BaseException:
                shutil.rmtree(building, ignore_errors=True)
                raise

    @classmethod
    def _fill(cls, building: Path) -> Self:
        mark = Mark(type="xgent-evolve/run/1", run_id=str(uuid.uuid4()))
        for name in ("blobs", "bundles", "executions"):
            make_directory_durable(building / name)
        Journal.create(building / "journal.jsonl").close()
        write_durable(building / "run.json", canonical_bytes(mark.model_dump()))
        return cls(building, RunId(mark.run_id))

    @classmethod
    def open(cls, path: Path) -> Self:
        """Return the run directory at `path`; nothing is written or locked.

        Raises:
            RefusedError: E_NOT_A_RUN: it is something else, or does not exist.
            StoreError: E_STORE_IO.

        """
        with store_errors(path):
            try:
                mark = Mark.model_validate_json((path / "run.json").read_bytes())
            except (FileNotFoundError, NotADirectoryError, ValidationError) as error:
                raise RefusedError(
                    "this is not a run directory",
                    code="E_NOT_A_RUN",
                    where=str(path),
                    expected="a directory that `xgent-evolve run --output` made",
                    found="no such directory" if not path.exists() else "no valid run.json",
                    fix="give the directory that was the --output of run",
                ) from error
        return cls(path, RunId(mark.run_id))

    @cached_property
    def blobs(self) -> BlobStore:
        """The frozen and captured bytes."""
        return BlobStore(self.path / "blobs", manifests=self.path / "bundles")

    @property
    def protocol_path(self) -> Path:
        """The frozen study."""
        return self.path / "protocol.json"

    @property
    def journal_path(self) -> Path:
        """The journal."""
        return self.path / "journal.jsonl"

    @property
    def host_path(self) -> Path:
        """What the host was found to be, once it was visited for the first execution."""
        return self.path / "host.json"

    @property
    def state_path(self) -> Path:
        """A view of the journal, for other programs."""
        return self.path / "state.json"

    @property
    def results_path(self) -> Path:
        """One row per attempt."""
        return self.path / "results.jsonl"

    @property
    def report_json_path(self) -> Path:
        """The report for machines."""
        return self.path / "report.json"

    @property
    def report_html_path(self) -> Path:
        """The report with pictures, for a browser."""
        return self.path / "report.html"

    @property
    def report_md_path(self) -> Path:
        """The report for people, as text."""
        return self.path / "report.md"

    def execution(self, execution_id: ExecutionId) -> ExecutionDir:
        """Return where the files of one execution lie. A name that is no UUID is a ValueError."""
        return ExecutionDir(self.path / "executions" / str(uuid.UUID(execution_id)))

    def lock(self) -> RunLock:
        """Become the only writer, and remove what interrupted writers left.

        Raises:
            BusyError: another controller owns the run.
            StoreError: the file system refused.

        """
        lock = RunLock.acquire(self.path / "lock")
        self.blobs.sweep()
        for directory in (self.path, *(self.path / "executions").glob("*")):
            remove_leftovers(directory)
        return lock

    def open_journal(self) -> Journal:
        """Open the journal for appending; raises as `Journal.open` does."""
        return Journal.open(self.journal_path)

    def write_protocol(self, content: bytes) -> None:
        """Write protocol.json, once. Raises StoreError when other content is there."""
        if self.protocol_path.exists() and self.protocol_path.read_bytes() != content:
            raise StoreError(
                "a frozen protocol never changes",
                where=str(self.protocol_path),
                fix="start another run for another protocol",
            )
        write_durable(self.protocol_path, content)

    def write_host(self, host: dict[str, Json]) -> None:
        """Write host.json in one step. Raises StoreError, or TypeError for a float."""
        _write_readable(self.host_path, host)

    def write_state(self, state: dict[str, Json]) -> None:
        """Replace state.json in one step. Raises StoreError, or TypeError for a float."""
        _write_readable(self.state_path, state)

    def append_results(self, rows: Sequence[dict[str, Json]]) -> None:
        """Add rows to results.jsonl, durably; earlier rows are never touched (C1).

        A last row that a crash tore is cut off first. Raises StoreError, or TypeError for a float.
        """
        lines = b"".join(canonical_bytes(row) + b"\n" for row in rows)
        with store_errors(self.results_path):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            descriptor = os.open(self.results_path, flags, 0o644)
            try:
                os.ftruncate(descriptor, _end_of_last_line(descriptor))
                crash_point("results.write")
                write_all(descriptor, lines)
                crash_point("results.sync")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            # Whoever created the file may have died before this.
            sync_directory(self.path)


def _write_readable(path: Path, document: dict[str, Json]) -> None:
    """Replace a file that people read too."""
    canonical_bytes(document)
    text = json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False)
    write_durable(path, text.encode() + b"\n")


def _publish(building: Path, path: Path) -> None:
    """Give a directory, whose files are all durable, its name."""
    with store_errors(path):
        crash_point("rundir.publish")
        try:
            rename_no_replace(building, path)
        except FileExistsError:
            raise _exists(path) from None
        crash_point("rundir.sync-parent")
        sync_directory(path.parent)
    crash_point("rundir.published")


def _draft_prefix(path: Path) -> str:
    return f".{path.name}.draft-"


def _remove_dead_drafts(path: Path) -> None:
    """Remove drafts for `path` whose makers died; a living maker holds the draft's lock."""
    for draft in path.parent.iterdir():
        if not draft.name.startswith(_draft_prefix(path)):
            continue
        with suppress(BusyError, StoreError), RunLock.acquire(draft / "lock"):
            shutil.rmtree(draft, ignore_errors=True)


def _end_of_last_line(descriptor: int) -> int:
    """Return the offset behind the last newline, reading backwards."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _exists(path: Path) -> InvalidError:
    return InvalidError(
        "the output directory exists already",
        code="E_OUTPUT_EXISTS",
        where=str(path),
        expected="a path where nothing is yet",
        fix=f"choose another --output, or continue that run with: xgent-evolve resume --run {path}",
    )
