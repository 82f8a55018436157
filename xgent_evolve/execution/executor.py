"""The execution protocol: intent, upload, accept, drive, observe, capture, clean.

Each step is durable before the next one begins, and each may be done again: carrying out an
execution that was interrupted anywhere is the same call as carrying it out the first time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.errors import GapError
from xgent_evolve.execution.credential import Credential, Credentials
from xgent_evolve.execution.events import ExecutionMoved, Observer, Phase
from xgent_evolve.execution.facts import (
    Accepted,
    Captured,
    Cleaned,
    FactModel,
    Gap,
    Intent,
    Ledger,
    fact_document,
)
from xgent_evolve.harbor.artifacts import Artifacts, StoredFile
from xgent_evolve.harbor.requests import Planned
from xgent_evolve.ids import Digest, ExecutionId
from xgent_evolve.remote.host import Host, Observation
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir

OBSERVE_WAIT_S = 20
MAX_DRIVES = 5
"""How often an execution that nobody drives is driven again before it counts as a gap."""


@dataclass(slots=True)
class Executor:
    """Carries out executions on one host and records what became of them."""

    host: Host
    rundir: RunDir
    journal: Journal
    ledger: Ledger
    credentials: Credentials
    socket: str
    observer: Observer

    async def execute(self, planned: Planned, slot: str, attempt: int) -> Artifacts:
        """Return what the execution left, from wherever it stands now.

        Raises:
            GapError: its truth cannot be established.
            SshError, HostError: the host cannot be reached or used; resume continues.

        """
        uuid = ExecutionId(planned.request.uuid)
        self.require_no_gap(uuid)
        captured = self.ledger.captured.get(uuid)
        if captured is None:
            await self._register(planned, slot, attempt)
            await self._submit(planned, slot, attempt)
            receipts = await self._wait(planned, slot, attempt)
            captured = await self._capture(planned, slot, attempt, receipts)
        artifacts = load_artifacts(self.rundir, captured.artifacts)
        if uuid not in self.ledger.cleaned:
            await self._clean(uuid)
        return artifacts

    def require_no_gap(self, uuid: ExecutionId) -> None:
        """Raise GapError when the journal holds an unexplained gap for this execution."""
        gap = self.ledger.gaps.get(uuid)
        if gap is not None:
            raise gap_error(self.ledger.intents[uuid], gap.reason)

    async def _register(self, planned: Planned, slot: str, attempt: int) -> None:
        request = planned.request
        known = self.ledger.intents.get(request.uuid)
        if known is not None:
            if known.request_sha256 != request.sha256():
                await self._gap(request.uuid, "the request is not the one that was registered")
            return
        intent = Intent(
            uuid=request.uuid,
            slot=slot,
            attempt=attempt,
            kind=request.kind,
            request_sha256=request.sha256(),
        )
        directory = self.rundir.execution(ExecutionId(request.uuid))
        content = canonical_bytes(fact_document(intent))
        await asyncio.to_thread(directory.write, directory.intent.name, content)
        await self._record(intent)
        self._tell(planned, slot, attempt, "registered")

    async def _submit(self, planned: Planned, slot: str, attempt: int) -> None:
        """Bring the execution to the host, unless it is there already."""
        request = planned.request
        uuid = request.uuid
        if uuid not in self.ledger.accepted:
            sources, blobs = planned.sources, self.rundir.blobs
            await self.host.upload(request.blobs(), lambda sha256: blobs.get(sources[sha256]))
            self._tell(planned, slot, attempt, "uploaded")
            answer = await self.host.accept(uuid, request.text())
            if answer != "accepted":
                await self._gap(uuid, "the host holds another request under this identity")
            await self._record(Accepted(uuid=uuid))
        else:
            found = (await self.host.observe({uuid: 0}, 0))[uuid]
            if found.state == "absent":
                await self._gap(uuid, "the host accepted it and does not know it any more")
            self._tell(planned, slot, attempt, "adopted")
        await self._drive(planned)

    async def _drive(self, planned: Planned) -> None:
        secrets = self.credentials.require() if planned.request.secrets else Credential()
        await self.host.drive(
            [planned.request.uuid],
            credential=secrets.content,
            credential_file=secrets.host_file,
        )

    async def _wait(self, planned: Planned, slot: str, attempt: int) -> list[dict[str, Json]]:
        """Return all receipts once the execution has ended on the host."""
        uuid = planned.request.uuid
        receipts: list[dict[str, Json]] = []
        drives = 1
        while True:
            seen = {uuid: len(receipts)}
            found: Observation = (await self.host.observe(seen, OBSERVE_WAIT_S))[uuid]
            receipts.extend(found.receipts)
            if any(receipt["kind"] == "started" for receipt in found.receipts):
                self._tell(planned, slot, attempt, "running")
            match found.state:
                case "absent" | "damaged":
                    await self._gap(uuid, found.detail or "its receipts are gone from the host")
                case "gap":
                    await self._gap(uuid, str(receipts[-1]["reason"]))
                case "cleaned":
                    await self._gap(uuid, "the host cleaned it before it was captured")
                case "exported" | "failed":
                    return receipts
                case _ if not found.driven and not found.receipts:
                    drives += 1
                    if drives > MAX_DRIVES:
                        await self._gap(uuid, f"it stops at {found.state} however it is driven")
                    await self._drive(planned)
                case _:
                    pass

    async def _capture(
        self, planned: Planned, slot: str, attempt: int, receipts: list[dict[str, Json]]
    ) -> Captured:
        """Store every byte that came back, then the record that names them (invariant V6)."""
        request = planned.request
        by_kind = {str(receipt["kind"]): receipt for receipt in receipts}
        blobs: dict[str, Digest] = {}
        if "exported" in by_kind:
            objects = cast("dict[str, int]", by_kind["exported"]["objects"])
            contents: dict[str, bytes] = {}
            await self.host.fetch(request.uuid, objects, contents.__setitem__)
            # The host replaces secrets at capture; this is the second net.
            kept = [self._redacted(content) for content in contents.values()]
            digests = await asyncio.to_thread(self.rundir.blobs.put_many, kept)
            blobs = dict(zip(contents, digests, strict=True))
        try:
            artifacts = artifacts_of(planned, slot, attempt, by_kind, blobs)
        except (KeyError, ValidationError) as error:
            await self._gap(request.uuid, f"its receipts are not understood: {error}")
            raise AssertionError from error
        content = artifacts.to_bytes()
        digest = await asyncio.to_thread(self.rundir.blobs.put, content)
        directory = self.rundir.execution(ExecutionId(request.uuid))
        await asyncio.to_thread(directory.write, directory.artifacts.name, content)
        await self._write_remote(request.uuid, receipts)
        captured = Captured(uuid=request.uuid, artifacts=digest)
        await self._record(captured)
        self._tell(planned, slot, attempt, "captured")
        return captured

    def _redacted(self, content: bytes) -> bytes:
        for secret in self.credentials.known_values():
            content = content.replace(secret, b"[REDACTED]")
        return content

    async def _clean(self, uuid: ExecutionId) -> None:
        """Remove what the execution owns on the host; only after capture (invariant V7)."""
        receipt = (await self.host.cleanup([uuid], self.socket))[uuid]
        found = (await self.host.observe({uuid: 0}, 0))[uuid]
        await self._write_remote(uuid, found.receipts or [receipt])
        await self._record(Cleaned(uuid=uuid))

    async def _write_remote(self, uuid: str, receipts: list[dict[str, Json]]) -> None:
        directory = self.rundir.execution(ExecutionId(uuid))
        content = canonical_bytes({"receipts": receipts})
        await asyncio.to_thread(directory.write, directory.remote.name, content)

    async def _gap(self, uuid: str, reason: str) -> None:
        """Record that the truth is unknown, and stop (invariant V5)."""
        await self._record(Gap(uuid=uuid, reason=reason))
        raise gap_error(self.ledger.intents[uuid], reason)

    async def _record(self, fact: FactModel) -> None:
        await self.journal.append_soon(fact_document(fact))
        self.ledger.apply(fact)

    def _tell(self, planned: Planned, slot: str, attempt: int, phase: Phase) -> None:
        request = planned.request
        self.observer.tell(ExecutionMoved(request.uuid, slot, attempt, request.kind, phase))


def gap_error(intent: Intent, reason: str) -> GapError:
    """Return the error that stops a run at an execution whose truth is unknown."""
    return GapError(
        f"what became of an execution cannot be established: {reason}",
        where=f"execution {intent.uuid}: {intent.slot}, attempt {intent.attempt}",
        expected="a receipt for every step",
        fix="look at executions/<uuid>/ in the run and on the host; nothing is paid for twice,"
        " so the run stays stopped here",
    )


def artifacts_of(
    planned: Planned,
    slot: str,
    attempt: int,
    receipts: dict[str, dict[str, Json]],
    blobs: dict[str, Digest],
) -> Artifacts:
    """Return the record of what came back; every file's bytes must be among `blobs`."""
    request = planned.request
    common: dict[str, Json] = {
        "uuid": request.uuid,
        "slot": slot,
        "attempt": attempt,
        "kind": request.kind,
    }
    if "failed" in receipts:
        failed = receipts["failed"]
        failure: dict[str, Json] = {key: failed[key] for key in ("stage", "cause", "detail")}
        return Artifacts.model_validate({**common, "failure": failure})
    exported, exited = receipts["exported"], receipts["exited"]
    artifacts = Artifacts.model_validate(
        {
            **common,
            "record": exported["record"],
            "command_started": exported.get("command_started", True),
            "engine": exited["engine"],
            "forced": exited["forced"],
            "files": exported["files"],
            "delivery": exported["delivery"],
            "blobs": cast("dict[str, Json]", blobs),
            "redactions": exported["redactions"],
        }
    )
    for item in artifacts.files.values():
        if isinstance(item, StoredFile) and item.sha256 not in blobs:
            raise KeyError(item.sha256)
    return artifacts


def load_artifacts(rundir: RunDir, digest: Digest) -> Artifacts:
    """Return a captured record from the store; raises StoreError when it is damaged."""
    return Artifacts.model_validate_json(rundir.blobs.get(digest))
