"""One command on the loopback host: a real process, its three streams, its exit status.

The process is not asyncio's own: closing asyncio's transport kills the child, which sshd never
does. When the connection goes, the pipes close and the process is left to itself.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import signal
import subprocess
import sys
import threading
from asyncio.streams import FlowControlMixin
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import asyncssh

_CHUNK_BYTES: Final = 65_536
_PASSED_ON: Final = ("NPM_CONFIG_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_")


async def run_command(process: asyncssh.SSHServerProcess[bytes]) -> None:
    """Run what the client asked for and report how it ended."""
    if process.command is None:
        process.stderr.write(b"This host runs commands; it has no interactive shell.\n")
        process.exit(1)
        return
    child = _spawn(process.command)
    ended = _watch(child)
    gone = asyncio.ensure_future(process.wait_closed())
    relayed = asyncio.ensure_future(_relay(process, child, ended))
    try:
        await asyncio.wait({gone, relayed}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (gone, relayed):
            task.cancel()
        with suppress(asyncio.CancelledError, OSError, asyncssh.Error):
            await relayed


async def _relay(
    process: asyncssh.SSHServerProcess[bytes],
    child: subprocess.Popen[bytes],
    ended: asyncio.Future[int],
) -> None:
    stdin = await _writer(child.stdin)
    feed = asyncio.ensure_future(_feed(process, child, stdin))
    outputs = [
        (await _reader(child.stdout), process.stdout),
        (await _reader(child.stderr), process.stderr),
    ]
    try:
        await asyncio.gather(*(_copy(reader, client) for (reader, _), client in outputs))
        status = await ended
        if status < 0:
            process.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            process.exit(status)
    finally:
        feed.cancel()
        stdin.close()
        for (_, transport), _client in outputs:
            transport.close()


async def _feed(
    process: asyncssh.SSHServerProcess[bytes],
    child: subprocess.Popen[bytes],
    stdin: asyncio.StreamWriter,
) -> None:
    """Pass the client's input on; go on reading when the child takes no more of it."""
    with suppress(OSError, asyncssh.Error):
        while True:
            try:
                chunk = await process.stdin.read(_CHUNK_BYTES)
            except asyncssh.SignalReceived as received:
                number = getattr(signal, f"SIG{received.signal}", None)
                if number is not None and child.poll() is None:
                    os.killpg(child.pid, number)
                continue
            if not chunk:
                break
            if not stdin.is_closing():
                stdin.write(chunk)
                with suppress(ConnectionError):
                    await stdin.drain()
        stdin.close()


async def _copy(source: asyncio.StreamReader, client: asyncssh.SSHWriter[bytes]) -> None:
    while chunk := await source.read(_CHUNK_BYTES):
        client.write(chunk)
        await client.drain()


async def _reader(
    pipe: IO[bytes] | None,
) -> tuple[asyncio.StreamReader, asyncio.ReadTransport]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader, transport


async def _writer(pipe: IO[bytes] | None) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(FlowControlMixin, pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _spawn(command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_login_environment(),
        cwd=Path.home(),
        start_new_session=True,
    )


def _watch(child: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    """Return the child's coming exit status; reaps the child whatever happens to the loop."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()

    def settle(status: int) -> None:
        if not ended.done():
            ended.set_result(status)

    def wait() -> None:
        status = child.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(settle, status)

    threading.Thread(target=wait, name=f"child-{child.pid}", daemon=True).start()
    return ended


def _login_environment() -> dict[str, str]:
    """Return what a login would have; the caller's own variables, keys included, stay out."""
    user = pwd.getpwuid(os.getuid())
    passed = {
        name: value for name, value in os.environ.items() if name.upper().startswith(_PASSED_ON)
    }
    return passed | {
        "HOME": str(Path.home()),
        "USER": user.pw_name,
        "LOGNAME": user.pw_name,
        "SHELL": "/bin/sh",
        # A machine without a Python of its own still has the one that runs this.
        "PATH": f"{os.environ.get('PATH', os.defpath)}:{Path(sys.base_prefix, 'bin')}",
    }
