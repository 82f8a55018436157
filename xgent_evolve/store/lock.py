"""One writer at a time, and the second comer learns who the first one is.

The lock is the kernel's (`flock`): it ends with its holder, however that ends, so there are no
stale locks and nothing to unlock by hand (requirement C4, rule R11). The file's content only
informs; it decides nothing. `filelock` is not used because it empties the file before it knows
whether it got the lock, and with that the answer to "who holds it".
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.errors import BusyError, StoreError
from xgent_evolve.store.durable import store_errors, write_all


class Holder(BaseModel):
    """Who holds a lock."""

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    pid: int
    """Process that holds it."""
    host: str
    """Machine of that process."""
    since: str
    """When it was taken, ISO 8601 with offset."""


class RunLock:
    """A held lock; `release`, leaving the `with` block, or death gives it back."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """Take over a locked descriptor; callers use `acquire`."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path) -> Self:
        """Take the lock on `path`, creating the file if needed; never wait.

        Raises:
            BusyError: another process, or this one, holds it; says who and since when.
            StoreError: E_STORE_NO_LOCKS: the file system has no working locks; E_STORE_IO.

        """
        with store_errors(path):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                _lock(descriptor, path)
                holder = Holder(
                    pid=os.getpid(),
                    host=socket.gethostname(),
                    since=datetime.now(UTC).isoformat(timespec="seconds"),
                )
                os.ftruncate(descriptor, 0)
                write_all(descriptor, holder.model_dump_json().encode() + b"\n")
            except BaseException:
                os.close(descriptor)
                raise
        return cls(path, descriptor)

    def release(self) -> None:
        """Give the lock back; harmless when that has been done."""
        if self._descriptor >= 0:
            # The file stays: removing it would let two processes lock two files of one name.
            os.ftruncate(self._descriptor, 0)
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
        self.release()


def find_holder(path: Path) -> Holder | None:
    """Return who holds the lock on `path`, or None when nobody does; for read-only commands."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _holder(path)
    else:
        return None
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _busy(path) from None
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}:
            raise
        raise StoreError(
            "this file system has no working locks",
            code="E_STORE_NO_LOCKS",
            where=str(path),
            found=error.strerror or "",
            fix="put the run directory on a local disk",
        ) from error


def _holder(path: Path) -> Holder | None:
    try:
        return Holder.model_validate(json.loads(path.read_bytes()))
    except (OSError, ValueError, ValidationError):
        return None


def _busy(path: Path) -> BusyError:
    holder = _holder(path)
    who = (
        f"process {holder.pid} on {holder.host} since {holder.since}"
        if holder
        else "a process that has not written its name yet"
    )
    return BusyError(
        f"another controller owns this run: {who}",
        where=str(path),
        found=who,
        fix="wait for it to end, or stop that process; reading commands work meanwhile",
    )
