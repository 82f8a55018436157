"""The host as the controller sees it: typed verbs that survive a lost connection.

Every verb is idempotent on the host, so a lost answer is met by asking again on a new connection,
for as long as the frozen recovery window allows. A lost answer is never read as success or failure
(invariant X12).
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from xgent_evolve.canonical import Json
from xgent_evolve.errors import HostError, SshError, StoreError, ToolError, XgentError
from xgent_evolve.remote.bootstrap import runner_archive, start_command
from xgent_evolve.remote.session import ConnectionEndedError, HostSession, RunnerRefusedError
from xgent_evolve.remote.ssh import address, connect, ssh_errors
from xgent_evolve.spec.models_v1 import Ssh

if TYPE_CHECKING:
    import asyncssh

CHUNK_BYTES = 1 << 20
FETCH_TRIES = 3


@dataclass(frozen=True, slots=True)
class Observation:
    """What the host says about one execution."""

    state: str
    """Kind of the last receipt; `absent` or `damaged` without one."""
    driven: bool
    """Whether a process on the host is driving it now."""
    receipts: list[dict[str, Json]]
    """Receipts that are new since the last look."""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a stream that is still on the host."""

    state: str
    """Kind of the last receipt; `absent` without one."""
    text: str | None
    """What has been printed, without secrets; None when there is nothing to show."""
    why: str
    """Why there is nothing."""


class Host:
    """One SSH host with its engine. Use as an asynchronous context manager."""

    def __init__(
        self,
        ssh: Ssh,
        remote_root: str,
        payload: Mapping[str, bytes],
        *,
        recovery_window_s: float,
        on_story: Callable[[str], None],
    ) -> None:
        """Prepare; nothing is connected yet. `on_story` gets one line per noteworthy event."""
        self.ssh = ssh
        self.remote_root = remote_root
        self._archive = runner_archive(payload)
        self._recovery_window_s = recovery_window_s
        self._on_story = on_story
        self._connection: asyncssh.SSHClientConnection | None = None
        self._session: HostSession | None = None
        self._connecting = asyncio.Lock()
        self._known_blobs: set[str] = set()

    async def __aenter__(self) -> Host:
        """Connect and start the host runner."""
        await self.connect()
        return self

    async def connect(self) -> None:
        """Connect now, instead of with the first question; raises as the questions do."""
        await self._ready_session()

    async def __aexit__(self, *_: object) -> None:
        """Leave, as `close` does."""
        await self.close()

    async def close(self) -> None:
        """End the connection, if there is one; executions that are driven on the host go on."""
        await self._drop()

    # Verbs.

    async def probe(
        self,
        docker_path: str,
        socket: str | None,
        images: list[str],
        *,
        networks: list[str],
        endpoint: dict[str, Json] | None = None,
        credential_file: str | None = None,
    ) -> Json:
        """Return the host's facts; nothing is changed there, and no credential comes back.

        `endpoint` is an address that the host tries to connect to.
        """
        document: dict[str, Json] = {
            "docker_path": docker_path,
            "socket": socket,
            "images": cast("Json", images),
            "networks": cast("Json", networks),
            "endpoint": endpoint,
            "credential_file": credential_file,
        }
        return await self._call("probe", document)

    async def install(self, document: dict[str, Json]) -> dict[str, Json]:
        """Install or verify a tool on the host; return its manifest."""
        found = await self._call("install", document, on_progress=self._on_story)
        return cast("dict[str, Json]", found)

    async def upload(self, blobs: Mapping[str, int], read: Callable[[str], bytes]) -> None:
        """Send the blobs that the host does not have, verified there before they get a name."""
        wanted = {key: size for key, size in blobs.items() if key not in self._known_blobs}
        if not wanted:
            return
        listed: list[Json] = [{"sha256": key, "size": size} for key, size in wanted.items()]
        missing = cast("list[str]", await self._call("missing", {"blobs": listed}))
        for group in _frames({key: wanted[key] for key in missing}, read):
            await self._call("put", {"blobs": cast("Json", group.items)}, group.body)
        self._known_blobs.update(wanted)

    async def accept(self, uuid: str, request: str) -> str:
        """Register an execution durably on the host: `accepted`, or `conflict`."""
        item: Json = {"uuid": uuid, "request": request}
        answer = cast("dict[str, str]", await self._call("accept", {"executions": [item]}))
        return answer[uuid]

    async def drive(
        self, uuids: Sequence[str], *, credential: bytes = b"", credential_file: str | None = None
    ) -> None:
        """Make the host drive executions; the credential travels in the frame's body only."""
        document: dict[str, Json] = {
            "uuids": list(uuids),
            "with_secret": bool(credential or credential_file),
            "credential_file": credential_file,
        }
        await self._call("drive", document, credential)

    async def observe(
        self, seen: Mapping[str, int], wait_s: float, kinds: Sequence[str] | None = None
    ) -> dict[str, Observation]:
        """Return the truth about executions; `seen` says how many receipts are known of each.

        While it waits, each new receipt is news; with `kinds`, only such ones and the last one.
        """
        document: dict[str, Json] = {"seen": dict(seen), "wait_s": int(wait_s)}
        if kinds is not None:
            document["kinds"] = list(kinds)
        answer = cast("dict[str, dict[str, Json]]", await self._call("observe", document))
        return {
            uuid: Observation(
                state=str(item["state"]),
                driven=bool(item["driven"]),
                receipts=cast("list[dict[str, Json]]", item["receipts"]),
                detail=str(item.get("detail", "")),
            )
            for uuid, item in answer.items()
        }

    async def tail(
        self,
        uuid: str,
        stream: str,
        limit_bytes: int,
        socket: str,
        *,
        credential: bytes = b"",
        credential_file: str | None = None,
    ) -> Tail:
        """Return the end of what an execution has printed so far; nothing is changed there."""
        document: dict[str, Json] = {
            "uuid": uuid,
            "stream": stream,
            "limit": limit_bytes,
            "socket": socket,
            "credential_file": credential_file,
        }
        answer = cast("dict[str, Json]", await self._call("tail", document, credential))
        text = answer["text"]
        return Tail(str(answer["state"]), None if text is None else str(text), str(answer["why"]))

    async def fetch(
        self, uuid: str, objects: Mapping[str, int], keep: Callable[[str, bytes], None]
    ) -> None:
        """Hand every exported object, verified by hash and size, to `keep`.

        Raises:
            StoreError: E_STORE_REMOTE_MISMATCH: an object stays damaged when asked for again.

        """
        wanted = dict(objects)

        def receive(sha256: str, content: bytes) -> None:
            if hashlib.sha256(content).hexdigest() == sha256 and len(content) == wanted[sha256]:
                keep(sha256, content)
                del wanted[sha256]

        for _ in range(FETCH_TRIES):
            if not wanted:
                return
            pairs: list[Json] = [[uuid, sha256] for sha256 in list(wanted)]
            await self._call("fetch", {"objects": pairs}, on_object=receive)
        if wanted:
            raise StoreError(
                f"{len(wanted)} exported objects arrive damaged",
                code="E_STORE_REMOTE_MISMATCH",
                where=f"execution {uuid} on {self.ssh.host}",
                fix="check the host's disk; nothing was removed there; then resume",
            )

    async def cancel(self, uuids: Sequence[str], socket: str) -> None:
        """Ask the host to end executions; harmless for those that have ended."""
        await self._call("cancel", {"uuids": list(uuids), "socket": socket})

    async def residue(self, socket: str) -> list[dict[str, Json]]:
        """Return every container, volume and directory on the host that carries our label."""
        return cast("list[dict[str, Json]]", await self._call("residue", {"socket": socket}))

    async def remove(self, names: Sequence[str], socket: str) -> list[str]:
        """Remove residue by exact name, after its label was checked; return what was removed."""
        document: dict[str, Json] = {"names": list(names), "socket": socket}
        return cast("list[str]", await self._call("remove", document))

    async def forget(self) -> None:
        """Remove what a first visit left on the host, unless something else of ours is there."""
        if self._session is not None and not self._session.ended:
            with contextlib.suppress(ConnectionEndedError, RunnerRefusedError):
                await self._session.call("forget", {})

    async def cleanup(self, uuids: Sequence[str], socket: str) -> dict[str, list[dict[str, Json]]]:
        """Remove what executions own on the host; return every receipt of each."""
        document: dict[str, Json] = {"uuids": list(uuids), "socket": socket}
        return cast("dict[str, list[dict[str, Json]]]", await self._call("cleanup", document))

    # Connection.

    async def _call(
        self,
        verb: str,
        document: dict[str, Json],
        body: bytes = b"",
        *,
        on_progress: Callable[[str], None] | None = None,
        on_object: Callable[[str, bytes], None] | None = None,
    ) -> Json:
        """Ask until there is an answer or the recovery window is over."""
        lost_at: float | None = None
        pause_s = 0.2
        while True:
            try:
                session = await self._ready_session()
                return await session.call(
                    verb, document, body, on_progress=on_progress, on_object=on_object
                )
            except RunnerRefusedError as error:
                raise runner_error(error, self.ssh.host) from error
            except (ConnectionEndedError, SshError) as error:
                lost_at = lost_at or time.monotonic()
                if _is_final(error):
                    raise
                if time.monotonic() - lost_at >= self._recovery_window_s:
                    if isinstance(error, SshError):
                        raise
                    raise self._lost_error(verb) from error
                self._on_story(f"connection to {self.ssh.host} lost; trying again")
                await asyncio.sleep(pause_s)
                pause_s = min(pause_s * 2, 5.0)

    def _lost_error(self, verb: str) -> SshError:
        return SshError(
            f"the connection was lost during `{verb}` and did not come back",
            code="E_SSH_LOST",
            where=address(self.ssh),
            expected=f"an answer within {self._recovery_window_s:g} s (budget.recovery_window_s)",
            fix="running executions go on without us; when the host is back: xgent-evolve resume",
        )

    async def _ready_session(self) -> HostSession:
        async with self._connecting:
            if self._session is not None and not self._session.ended:
                return self._session
            await self._drop()
            self._connection = await connect(self.ssh)
            with ssh_errors(self.ssh):
                self._session = await HostSession.start(
                    self._connection, start_command(self._archive, self.remote_root), self._archive
                )
            return self._session

    async def _drop(self) -> None:
        session, connection = self._session, self._connection
        self._session = self._connection = None
        self._known_blobs.clear()
        if session is not None:
            await session.close()
        if connection is not None:
            connection.close()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(2):
                    await connection.wait_closed()


@dataclass(slots=True)
class _Frame:
    items: list[Json]
    body: bytes


def _frames(missing: Mapping[str, int], read: Callable[[str], bytes]) -> list[_Frame]:
    """Return frames of at most about a chunk: many small blobs, or one part of a large one."""
    frames = [_Frame([], b"")]
    for sha256, size in missing.items():
        content = read(sha256)
        for offset in range(0, max(len(content), 1), CHUNK_BYTES):
            part = content[offset : offset + CHUNK_BYTES]
            if len(frames[-1].body) + len(part) > CHUNK_BYTES:
                frames.append(_Frame([], b""))
            frames[-1].items.append(
                {
                    "sha256": sha256,
                    "size": size,
                    "length": len(part),
                    "offset": offset,
                    "last": offset + CHUNK_BYTES >= len(content),
                }
            )
            frames[-1].body += part
    return [frame for frame in frames if frame.items]


def _is_final(error: Exception) -> bool:
    """Say whether asking again cannot help, and would only hide what is wrong."""
    return isinstance(error, SshError) and error.code not in {"E_SSH_UNREACHABLE", "E_SSH"}


def runner_error(error: RunnerRefusedError, host: str) -> XgentError:
    """Return the controller's error for one that the host runner reported."""
    facts = error.facts
    kind = ToolError if error.code.startswith("E_REMOTE_TOOL") else HostError
    path = facts.get("path")
    return kind(
        error.message,
        code=error.code,
        where=f"host {host}: {path}" if path else f"host {host}",
        expected=str(facts.get("expected", "")),
        found=str(facts.get("found", "")),
        fix=_RUNNER_FIXES.get(error.code, "see the message; then resume"),
    )


_RUNNER_FIXES = {
    "E_REMOTE_ENGINE": "check that the engine runs and that the login may use its socket",
    "E_REMOTE_NO_DOCKER": "set runtime.docker.path to the docker command of the host",
    "E_REMOTE_CREDENTIAL": "log in on the host, or correct runtime.authentication.path",
    "E_REMOTE_TOOL_REGISTRY": "set runtime.codex.registry, or configure npm on the host",
    "E_REMOTE_TOOL_DOWNLOAD": "check the host's way to its npm registry; then run again",
    "E_REMOTE_TOOL_METADATA": "set runtime.codex.registry to an npm registry; then run again",
    "E_REMOTE_TOOL_UNSAFE": "do not use this registry; its package is not the published one",
    "E_REMOTE_TOOL_INTEGRITY": "do not use this registry; its package is not the published one",
    "E_REMOTE_TOOL_TAMPERED": "find out who changed it; remove that directory to install it anew",
    "E_STORE_REMOTE_MISMATCH": "check the host's disk; then resume",
    "E_REMOTE_DAMAGED": "restore the execution's directory on the host, or decide with resolve",
    "E_REMOTE_FOREIGN": "name only what doctor lists as ours",
    "E_REMOTE_BUSY": "wait for the execution to end; then resume",
}
