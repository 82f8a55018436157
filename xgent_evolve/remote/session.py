"""A conversation with the host runner over one channel: framed requests, many at a time.

A frame is two big-endian 32-bit sizes, a JSON document and a body. Whatever a login script prints
before the runner's marker is skipped. A lost channel ends every open request with
`ConnectionEndedError`; nothing is ever concluded from it.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from xgent_evolve.canonical import Json
from xgent_evolve.errors import HostError

if TYPE_CHECKING:
    import asyncssh

MARKER = b"\n<<xgent-host-runner 1>>\n"
MAX_PREAMBLE_BYTES = 64 * 1024
START_TIMEOUT_S = 60
SIZES = struct.Struct(">II")


class ConnectionEndedError(Exception):
    """The channel ended while an answer was awaited: what happened on the host is unknown."""


class RunnerRefusedError(Exception):
    """The host runner answered with an error of its own."""

    def __init__(self, code: str, message: str, facts: dict[str, Json]) -> None:
        """Keep the runner's code, sentence and facts."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts


@dataclass(slots=True)
class _Pending:
    done: asyncio.Future[Json]
    on_progress: Callable[[str], None] | None = None
    on_object: Callable[[str, bytes], None] | None = None
    parts: list[bytes] = field(default_factory=list[bytes])


class HostSession:
    """One running host runner, reached through one SSH channel."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Take over a process whose marker has been seen."""
        self._process = process
        self._pending: dict[int, _Pending] = {}
        self._ids = itertools.count(1)
        self._write_lock = asyncio.Lock()
        self._reader = asyncio.create_task(self._read_frames())
        self.ended = False

    @classmethod
    async def start(
        cls, connection: asyncssh.SSHClientConnection, command: str, archive: bytes
    ) -> HostSession:
        """Start the runner and wait for its marker.

        Raises:
            HostError: E_REMOTE_NO_PYTHON or E_REMOTE_RUNNER when no runner comes up.

        """
        process = await connection.create_process(command, encoding=None)
        process.stdin.write(archive)
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await _skip_preamble(process)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise await _start_error(process) from error
        return cls(process)

    async def call(
        self,
        verb: str,
        document: dict[str, Json],
        body: bytes = b"",
        *,
        on_progress: Callable[[str], None] | None = None,
        on_object: Callable[[str, bytes], None] | None = None,
    ) -> Json:
        """Send one request and return its result.

        Raises:
            ConnectionEndedError: the channel ended first.
            RunnerRefusedError: the runner answered with an error.

        """
        if self.ended:
            raise ConnectionEndedError(verb)
        number = next(self._ids)
        loop = asyncio.get_running_loop()
        pending = self._pending[number] = _Pending(loop.create_future(), on_progress, on_object)
        content = json.dumps({**document, "verb": verb, "id": number}).encode()
        try:
            async with self._write_lock:
                self._process.stdin.write(SIZES.pack(len(content), len(body)) + content + body)
                await self._process.stdin.drain()
            return await pending.done
        except connection_losses() as error:
            raise ConnectionEndedError(verb) from error
        finally:
            self._pending.pop(number, None)

    async def close(self) -> None:
        """End the runner's server; executions that are driven go on."""
        self.ended = True
        self._reader.cancel()
        with contextlib.suppress(*connection_losses()):
            self._process.stdin.write_eof()
            self._process.close()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader

    async def _read_frames(self) -> None:
        reader = self._process.stdout
        try:
            while True:
                json_size, body_size = SIZES.unpack(await reader.readexactly(SIZES.size))
                document = json.loads(await reader.readexactly(json_size))
                body = await reader.readexactly(body_size) if body_size else b""
                self._dispatch(document, body)
        except connection_losses():
            pass
        finally:
            self.ended = True
            for pending in self._pending.values():
                if not pending.done.done():
                    pending.done.set_exception(ConnectionEndedError("the channel ended"))

    def _dispatch(self, document: dict[str, Json], body: bytes) -> None:
        pending = self._pending.get(cast("int", document["id"]))
        if pending is None or pending.done.done():
            return
        if "progress" in document:
            if pending.on_progress is not None:
                pending.on_progress(str(document["progress"]))
        elif "sha256" in document:
            pending.parts.append(body)
            if document["last"] and pending.on_object is not None:
                pending.on_object(str(document["sha256"]), b"".join(pending.parts))
                pending.parts.clear()
        elif document["ok"]:
            pending.done.set_result(document["result"])
        else:
            failure = cast("dict[str, Json]", document["error"])
            facts = cast("dict[str, Json]", failure["facts"])
            pending.done.set_exception(
                RunnerRefusedError(str(failure["code"]), str(failure["message"]), facts)
            )


def connection_losses() -> tuple[type[Exception], ...]:
    """Return what a lost connection can raise, wherever it is noticed."""
    import asyncssh

    return (asyncssh.Error, asyncio.IncompleteReadError, OSError)


async def _skip_preamble(process: asyncssh.SSHClientProcess[bytes]) -> None:
    """Read up to the marker; a login that talks without end is refused."""
    seen = b""
    while not seen.endswith(MARKER):
        seen += await process.stdout.readexactly(1)
        if len(seen) > MAX_PREAMBLE_BYTES:
            raise asyncio.LimitOverrunError("the login prints too much", len(seen))


async def _start_error(process: asyncssh.SSHClientProcess[bytes]) -> HostError:
    process.close()
    said = ""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(2):
            said = (await process.stderr.read()).decode("utf-8", "replace").strip()
    if "python3" in said and "not found" in said:
        return HostError(
            "the host has no python3",
            code="E_REMOTE_NO_PYTHON",
            found=said[-300:],
            fix="install Python 3.8 or newer on the host, on the PATH of a non-interactive login",
        )
    return HostError(
        "the host runner did not start",
        code="E_REMOTE_RUNNER",
        found=said[-300:] or "no output",
        fix="run `ssh HOST python3 --version`; the runner needs Python 3.8 or newer",
    )
