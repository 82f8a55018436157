"""An SSH host on loopback, so that a demo or a test takes the same road as a real run.

Commands run as the present user, with `/bin/sh -c`, as real processes; a process that a command
detached outlives the connection and this server, as it does behind a real sshd. Keys and port
are made once per directory and reused, so a resumed run meets the host it knows.

As a program, `python -m xgent_evolve.demo.host --directory D` prints one JSON line when it is
ready and serves until it is terminated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import pwd
import secrets
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, override

import asyncssh

from xgent_evolve.demo.host_session import run_command
from xgent_evolve.errors import HostError

if TYPE_CHECKING:
    from asyncssh import SSHAcceptor, SSHKey, SSHServerConnection

_ADDRESS: Final = "127.0.0.1"
# Below Linux's ephemeral range: no outgoing connection can take the port between two runs.
_PORTS: Final = range(20_000, 30_000)
_PORT_TRIES: Final = 50


class LoopbackHost:
    """A host for the length of the `with` block, in a thread and event loop of its own.

    `directory` is private to the host (mode 0700) and holds its two keys, its port and the
    known_hosts file. `user`, `identity` and `known_hosts` are there at once, `port` from the
    start of the block.
    """

    address: Final = _ADDRESS

    def __init__(self, directory: Path) -> None:
        """Make or reuse the keys in `directory`."""
        self.directory = directory.absolute()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o700)
        self.user = pwd.getpwuid(os.getuid()).pw_name
        self.identity = self.directory / "client_key"
        self.known_hosts = self.directory / "known_hosts"
        self._host_key = _key(self.directory / "host_key")
        self._client_key = _key(self.identity)
        self._port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ready: Future[int] = Future()
        self._thread = threading.Thread(target=self._live, name="loopback-host", daemon=True)

    @property
    def port(self) -> int:
        """The port that is served."""
        return self._port

    def __enter__(self) -> Self:
        """Start to serve.

        Raises:
            HostError: the port of an earlier start is taken by another process.

        """
        self._thread.start()
        self._port = self._ready.result()
        host_key = self._host_key.export_public_key().decode("ascii").strip()
        self.known_hosts.write_text(f"[{_ADDRESS}]:{self._port} {host_key}\n", encoding="ascii")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Drop all connections and stop; detached processes live on."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _live(self) -> None:
        try:
            asyncio.run(self._serve())
        except (OSError, HostError, asyncssh.Error) as error:
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        connections: set[SSHServerConnection] = set()
        acceptor = await self._listen(connections)
        self._ready.set_result(acceptor.get_port())
        await self._stop.wait()
        acceptor.close()
        for connection in tuple(connections):
            connection.abort()
        await acceptor.wait_closed()

    async def _listen(self, connections: set[SSHServerConnection]) -> SSHAcceptor:
        record = self.directory / "port"
        known = int(record.read_text("ascii")) if record.exists() else None
        for port in [known] if known else _some_ports():
            try:
                acceptor = await self._listen_on(port, connections)
            except OSError as error:
                if known:
                    raise _port_taken(known, record) from error
            else:
                _write_private(record, f"{port}\n".encode())
                return acceptor
        raise HostError(
            f"no free port on {_ADDRESS} after {_PORT_TRIES} tries",
            expected=f"a free port between {_PORTS.start} and {_PORTS.stop - 1}",
            fix="close programs that listen on many local ports",
        )

    async def _listen_on(self, port: int, connections: set[SSHServerConnection]) -> SSHAcceptor:
        public = self._client_key.export_public_key().decode("ascii")
        keys = asyncssh.import_authorized_keys(public)
        return await asyncssh.listen(
            _ADDRESS,
            port,
            server_factory=lambda: _Gate(self.user, keys, connections),
            server_host_keys=[self._host_key],
            process_factory=run_command,
            sftp_factory=True,
            encoding=None,
            line_editor=False,
            allow_pty=False,
            agent_forwarding=False,
            password_auth=False,
            kbdint_auth=False,
            gss_host=None,
        )


class _Gate(asyncssh.SSHServer):
    """Lets in one user with one key."""

    def __init__(
        self,
        user: str,
        keys: asyncssh.SSHAuthorizedKeys,
        connections: set[SSHServerConnection],
    ) -> None:
        self._user = user
        self._keys = keys
        self._connections = connections
        self._connection: SSHServerConnection | None = None

    @override
    def connection_made(self, conn: SSHServerConnection) -> None:
        self._connection = conn
        self._connections.add(conn)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection is not None:
            self._connections.discard(self._connection)

    @override
    def begin_auth(self, username: str) -> bool:
        if username == self._user and self._connection is not None:
            self._connection.set_authorized_keys(self._keys)
        return True

    @override
    def unix_connection_requested(self, dest_path: str) -> bool:
        """Allow what sshd allows by default: the engine's socket is reached this way."""
        return True


def _some_ports() -> Iterator[int]:
    for _ in range(_PORT_TRIES):
        yield _PORTS[secrets.randbelow(len(_PORTS))]


def _port_taken(port: int, record: Path) -> HostError:
    return HostError(
        f"port {port} of the loopback host is taken",
        where=str(record),
        expected="the port of the earlier start to be free: the frozen run names it",
        found="another process listens on it",
        fix=f"end that process (ss -ltnp 'sport = :{port}'), or start a new demo directory",
    )


def _key(path: Path) -> SSHKey:
    if path.exists():
        return asyncssh.read_private_key(path)
    key = asyncssh.generate_private_key("ssh-ed25519")  # pyright: ignore[reportUnknownMemberType]
    _write_private(path, key.export_private_key())
    return key


def _write_private(path: Path, content: bytes) -> None:
    """Write a file that is whole and private from its first moment on."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
    partial.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """Serve until terminated."""
    parser = argparse.ArgumentParser(prog="python -m xgent_evolve.demo.host")
    parser.add_argument("--directory", type=Path, required=True, help="private directory")
    options = parser.parse_args(arguments)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    with LoopbackHost(options.directory) as host:
        ready = {
            "host": host.address,
            "port": host.port,
            "user": host.user,
            "known_hosts": str(host.known_hosts),
            "identity": str(host.identity),
        }
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
