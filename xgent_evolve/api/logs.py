"""What executions printed: captured ones from the run directory, others from their host."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.api.session import (
    credentials_of,
    host_of,
    open_rundir,
    read_ledger,
    recorded_socket,
)
from xgent_evolve.errors import InvalidError
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.executor import load_artifacts
from xgent_evolve.execution.facts import Intent, Ledger
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.artifacts import StoredFile
from xgent_evolve.harbor.outcome import file_content
from xgent_evolve.remote.host import Host, Tail
from xgent_evolve.store.rundir import RunDir

type Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Log:
    """One stream of one execution."""

    intent: Intent
    captured: bool
    """Whether the execution has been captured; before that the host is asked."""
    content: bytes
    """The beginning of the stream, then its end."""
    dropped_bytes: int
    """How much lies between them and was not kept."""
    note: str = ""
    """Why there is nothing, or not all."""


LIVE_BYTES = 64 * 1024
"""How much of an execution that is still on the host is shown, from its end."""


def logs(rundir_path: Path, which: str, stream: Stream, *, live: bool = False) -> list[Log]:
    """Return the logs of every execution whose UUID or slot begins with `which`.

    With `live` the host is asked what those that are not captured have printed so far; the
    credential is needed for that, since it is kept out of what is shown.

    Raises:
        InvalidError: E_LOGS: nothing of that name was ever registered.
        RefusedError, StoreError: the run directory is not usable.
        SshError, HostError: the host cannot be asked.

    """
    rundir, protocol = open_rundir(rundir_path)
    ledger = read_ledger(rundir, protocol)
    chosen = choose(ledger, rundir, which)
    missing = [intent for intent in chosen if intent.uuid not in ledger.captured]
    asked: dict[str, Tail] = {}
    if live and missing:
        work = _ask_host(rundir, protocol, ledger, missing, stream)
        asked = run_interruptible(work, next_step="ask again")
    return [log_of(rundir, ledger, intent, stream, asked.get(intent.uuid)) for intent in chosen]


def choose(
    ledger: Ledger, rundir: RunDir, which: str, *, may_be_none: bool = False
) -> list[Intent]:
    """Return the executions whose UUID or slot begins with `which`; raises E_LOGS as `logs`."""
    chosen = [
        intent
        for intent in ledger.intents.values()
        if intent.uuid.startswith(which) or intent.slot.startswith(which)
    ]
    if not chosen and not may_be_none:
        raise InvalidError(
            "no execution of that name was registered",
            code="E_LOGS",
            where=str(rundir.path),
            expected="the beginning of an execution's UUID or of a slot",
            found=which,
            fix=f"xgent-evolve status --run {rundir.path} lists them",
        )
    return chosen


def log_of(
    rundir: RunDir, ledger: Ledger, intent: Intent, stream: Stream, tail: Tail | None
) -> Log:
    """Return the log of one execution; `tail` is what its host showed, when it was asked."""
    captured = ledger.captured.get(intent.uuid)
    if captured is None:
        if tail is None:
            return Log(intent, captured=False, content=b"", dropped_bytes=0, note="--live asks")
        return Log(intent, False, (tail.text or "").encode(), 0, tail.why)
    artifacts = load_artifacts(rundir, captured.artifacts)
    if artifacts.failure is not None:
        failure = artifacts.failure
        return Log(intent, True, b"", 0, f"failed at {failure.stage}: {failure.detail}")
    read = rundir.blobs.get
    parts = [file_content(artifacts, name, read) or b"" for name in (stream, f"{stream}.tail")]
    dropped = artifacts.files.get(f"{stream}.dropped")
    count = b"0" if not isinstance(dropped, StoredFile) else read(artifacts.blobs[dropped.sha256])
    return Log(intent, True, b"".join(parts), int(count or b"0"))


async def _ask_host(
    rundir: RunDir, protocol: Protocol, ledger: Ledger, missing: list[Intent], stream: Stream
) -> dict[str, Tail]:
    host = host_of(protocol, rundir, Silent(), recovery_window_s=0)
    try:
        return await tails(host, rundir, protocol, ledger, missing, stream)
    finally:
        await host.close()


async def tails(
    host: Host,
    rundir: RunDir,
    protocol: Protocol,
    ledger: Ledger,
    missing: list[Intent],
    stream: Stream,
) -> dict[str, Tail]:
    """Return what each of the executions has printed so far, by UUID."""
    credential = credentials_of(protocol, None).find()
    socket = recorded_socket(rundir, ledger)
    return {
        intent.uuid: await host.tail(
            intent.uuid,
            stream,
            LIVE_BYTES,
            socket,
            credential=credential.content,
            credential_file=credential.host_file,
        )
        for intent in missing
    }
