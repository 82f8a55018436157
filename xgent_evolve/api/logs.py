"""What captured executions printed, read from the run directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from xgent_evolve.api.session import open_rundir, read_ledger
from xgent_evolve.errors import InvalidError
from xgent_evolve.execution.executor import load_artifacts
from xgent_evolve.execution.facts import Intent
from xgent_evolve.harbor.artifacts import StoredFile
from xgent_evolve.harbor.outcome import file_content

type Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Log:
    """One stream of one execution."""

    intent: Intent
    captured: bool
    """Whether the execution has been captured; before that there is nothing to show."""
    content: bytes
    """The beginning of the stream, then its end."""
    dropped_bytes: int
    """How much lies between them and was not kept."""


def logs(rundir_path: Path, which: str, stream: Stream) -> list[Log]:
    """Return the logs of every execution whose UUID or slot begins with `which`.

    Raises:
        InvalidError: E_LOGS: nothing of that name was ever registered.
        RefusedError, StoreError: the run directory is not usable.

    """
    rundir, protocol = open_rundir(rundir_path)
    ledger = read_ledger(rundir, protocol)
    chosen = [
        intent
        for intent in ledger.intents.values()
        if intent.uuid.startswith(which) or intent.slot.startswith(which)
    ]
    if not chosen:
        raise InvalidError(
            "no execution of that name was registered",
            code="E_LOGS",
            where=str(rundir.path),
            expected="the beginning of an execution's UUID or of a slot",
            found=which,
            fix=f"xgent-evolve status --run {rundir.path} lists them",
        )
    found: list[Log] = []
    for intent in chosen:
        captured = ledger.captured.get(intent.uuid)
        if captured is None:
            found.append(Log(intent, captured=False, content=b"", dropped_bytes=0))
            continue
        artifacts = load_artifacts(rundir, captured.artifacts)
        read = rundir.blobs.get
        parts = [file_content(artifacts, name, read) or b"" for name in (stream, f"{stream}.tail")]
        dropped = artifacts.files.get(f"{stream}.dropped")
        count = (
            b"0" if not isinstance(dropped, StoredFile) else read(artifacts.blobs[dropped.sha256])
        )
        found.append(Log(intent, True, b"".join(parts), int(count or b"0")))
    return found
