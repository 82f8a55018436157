"""What the executions of a run left, read from the store for a page or an export."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import AttemptRow
from xgent_evolve.execution.executor import load_artifacts
from xgent_evolve.harbor.artifacts import Artifacts, StoredFile
from xgent_evolve.harbor.outcome import captured_output, file_content
from xgent_evolve.harbor.patch import PathPatch, read_patch
from xgent_evolve.harbor.request import PAID, FileFact
from xgent_evolve.harbor.requests import COLLECTED
from xgent_evolve.harbor.transcript import Transcript, read_transcript
from xgent_evolve.ids import Digest
from xgent_evolve.report.evidence import AttemptEvidence, Contents, StoredBytes, Stream
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.rundir import RunDir


def evidence_of(run: Run) -> list[AttemptEvidence]:
    """Return every attempt that the run has seen, each with the way to what it left."""
    return [_evidence(run, row) for row in run.attempts]


def _evidence(run: Run, row: AttemptRow) -> AttemptEvidence:
    slot = row.slot
    return AttemptEvidence(
        purpose=slot.purpose,
        condition=slot.condition,
        case=slot.case,
        repeat=slot.repeat,
        kind=slot.kind,
        attempt=row.attempt,
        status=row.status,
        cause=row.cause,
        detail=row.detail,
        execution=row.uuid,
        load=partial(contents_of, run, row),
    )


def contents_of(run: Run, row: AttemptRow) -> Contents:
    """Read what an execution left. Raises StoreError when bytes are missing or damaged."""
    artifacts = artifacts_of(run, row)
    agent = row.slot.kind in PAID
    names: tuple[str, ...] = ("stderr",) if agent else ("stdout", "stderr")
    if row.slot.kind == "grade":
        names = (*sorted(name for name in artifacts.files if name.startswith(COLLECTED)), *names)
    streams = [stream_of(run.rundir, artifacts, name) for name in names]
    return Contents(
        transcript=transcript_of(run.rundir, artifacts) if agent else None,
        streams=[stream for stream in streams if stream.text.strip()],
        patch=patch_of(run, artifacts, row),
        stored=stored_bytes(run.rundir, artifacts),
    )


def artifacts_of(run: Run, row: AttemptRow) -> Artifacts:
    """Return the record of what an attempt left."""
    return load_artifacts(run.rundir, run.ledger.captured[row.uuid].artifacts)


def transcript_of(rundir: RunDir, artifacts: Artifacts) -> Transcript:
    """Return what the agent said and did."""
    read = rundir.blobs.get
    head, tail = (file_content(artifacts, name, read) or b"" for name in ("stdout", "stdout.tail"))
    return read_transcript(head, tail, dropped_bytes(rundir, artifacts, "stdout"))


def stream_of(rundir: RunDir, artifacts: Artifacts, name: str) -> Stream:
    """Return what a command printed on a stream, as text."""
    text = captured_output(artifacts, name, rundir.blobs.get).decode("utf-8", "replace")
    return Stream(name, text, dropped_bytes(rundir, artifacts, name))


def dropped_bytes(rundir: RunDir, artifacts: Artifacts, name: str) -> int:
    """Return how many bytes of a stream were not captured."""
    content = file_content(artifacts, f"{name}.dropped", rundir.blobs.get) or b""
    return int(content) if content.strip().isdigit() else 0


def patch_of(run: Run, artifacts: Artifacts, row: AttemptRow) -> list[PathPatch] | None:
    """Return the delivery as text; None for an execution without one."""
    if artifacts.delivery is None or row.slot.kind == "probe":
        return None
    before, rundir = frozen_files(run, row), run.rundir

    def old(_path: str, fact: FileFact) -> bytes | None:
        digest = before.get(fact.sha256 or "")
        return None if digest is None else rundir.blobs.get(digest)

    def new(fact: FileFact) -> bytes:
        return rundir.blobs.get(artifacts.blobs[fact.sha256 or ""])

    return read_patch(artifacts.delivery, old, new)


def frozen_files(run: Run, row: AttemptRow) -> dict[str, Digest]:
    """Return the frozen bytes of a workspace by SHA-256; an image's own are not among them."""
    shown = run.condition(row.slot.condition)
    workspace = run.protocol.case(row.slot.case).workspace
    if row.slot.kind == "optimizer":
        bundles = [shown.agents, *([shown.skill.bundle] if shown.skill else [])]
    elif workspace is None:
        return {}
    else:
        bundles = [workspace, shown.agents]
    return {
        entry.sha256: entry.blob
        for digest in bundles
        for entry in load_bundle(run.rundir.blobs, digest)
        if entry.sha256 is not None and entry.blob is not None
    }


def stored_bytes(rundir: RunDir, artifacts: Artifacts) -> Sequence[StoredBytes]:
    """Return what was captured and where it lies, the streams first."""
    found = [
        StoredBytes(name, place_of(rundir, artifacts.blobs[item.sha256]), item.size)
        for name, item in sorted(artifacts.files.items(), key=lambda pair: _rank(pair[0]))
        if isinstance(item, StoredFile) and item.size
    ]
    record = StoredBytes(
        "record of the execution, with its delivery",
        f"executions/{artifacts.uuid}/artifacts.json",
        len(artifacts.to_bytes()),
    )
    return [record, *found]


def place_of(rundir: RunDir, digest: Digest) -> str:
    """Return where a blob lies, relative to the run directory."""
    return rundir.blobs.path(digest).relative_to(rundir.path).as_posix()


def _rank(name: str) -> tuple[bool, str]:
    return (not name.startswith(("stdout", "stderr")), name)
