"""The execution protocol: intent, upload, accept, drive, observe, capture, clean.

Each step is durable before the next one begins, and each may be done again: carrying out an
execution that was interrupted anywhere is the same call as carrying it out the first time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.errors import GapError, HostError
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
from xgent_evolve.harbor.artifacts import Artifacts, Failure, StoredFile
from xgent_evolve.harbor.request import PAID
from xgent_evolve.harbor.requests import Planned
from xgent_evolve.ids import Digest, ExecutionId
from xgent_evolve.remote.host import Host, Observation
from xgent_evolve.store.bundles import is_safe_path, parents
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir

OBSERVE_WAIT_S = 60
MAX_READS = 3
"""How often receipts that cannot be read are asked for before it is a gap (requirement D4)."""
UNREAD_PAUSE_S = 0.5
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
    ending: bool = False
    """Whether everything under way is being ended (cancel)."""

    async def execute(self, planned: Planned, slot: str, attempt: int) -> Artifacts:
        """Return what the execution left, from wherever it stands now.

        Raises:
            GapError: its truth cannot be established.
            SshError, HostError: the host cannot be reached or used; resume continues.

        """
        uuid = ExecutionId(planned.request.uuid)
        self.require_no_gap(uuid)
        if uuid not in self.ledger.captured:
            intent = await self._register(planned, slot, attempt)
            await self._submit(planned, intent)
            await self.collect(intent, needs_credential=planned.request.secrets)
        if uuid not in self.ledger.cleaned:
            await self.clean([uuid])
        return load_artifacts(self.rundir, self.ledger.captured[uuid].artifacts)

    async def collect(self, intent: Intent, *, needs_credential: bool) -> None:
        """Wait for the end of an execution that the host has accepted, and store what it left."""
        receipts = await self._wait(intent, needs_credential=needs_credential)
        crash_point("executor.ended")
        await self._capture(intent, receipts)

    def require_no_gap(self, uuid: ExecutionId) -> None:
        """Raise GapError when the journal holds an unexplained gap for this execution."""
        gap = self.ledger.gaps.get(uuid)
        if gap is not None and uuid not in self.ledger.resolved:
            raise gap_error(self.ledger.intents[uuid], gap.reason)

    async def _register(self, planned: Planned, slot: str, attempt: int) -> Intent:
        """Make the intent durable here, before anything leaves this machine (invariant V1)."""
        request = planned.request
        intent = Intent(
            uuid=request.uuid,
            slot=slot,
            attempt=attempt,
            kind=request.kind,
            request_sha256=request.sha256(),
        )
        known = self.ledger.intents.get(request.uuid)
        if known is not None:
            if known != intent:
                await self.gap(known, "the request is not the one that was registered")
            return known
        crash_point("executor.register")
        directory = self.rundir.execution(ExecutionId(request.uuid))
        content = canonical_bytes(fact_document(intent))
        await asyncio.to_thread(directory.write, directory.intent.name, content)
        await self._record(intent)
        crash_point("executor.registered")
        self._tell(intent, "registered")
        return intent

    async def _submit(self, planned: Planned, intent: Intent) -> None:
        """Bring the execution to the host, unless it is there already."""
        uuid = intent.uuid
        if uuid not in self.ledger.accepted:
            sources, blobs = planned.sources, self.rundir.blobs
            await self.host.upload(
                planned.request.blobs(), lambda sha256: blobs.get(sources[sha256])
            )
            crash_point("executor.uploaded")
            self._tell(intent, "uploaded")
            answer = await self.host.accept(uuid, planned.request.text())
            if answer != "accepted":
                await self.gap(intent, "the host holds another request under this identity")
            crash_point("executor.accepted")
            await self._record(Accepted(uuid=uuid))
        else:
            found = (await self.host.observe({uuid: 0}, 0))[uuid]
            if found.state == "absent":
                await self.gap(intent, "the host accepted it and does not know it any more")
            self._tell(intent, "adopted")
        crash_point("executor.drive")
        await self._drive(intent, needs_credential=planned.request.secrets)
        crash_point("executor.driven")

    async def _drive(self, intent: Intent, *, needs_credential: bool) -> None:
        secrets = Credential()
        if needs_credential:
            # Ending a run must not fail for want of a key: without it, less is kept.
            find = self.credentials.find if self.ending else self.credentials.require
            secrets = find()
        await self.host.drive(
            [intent.uuid], credential=secrets.content, credential_file=secrets.host_file
        )

    async def _wait(self, intent: Intent, *, needs_credential: bool) -> list[dict[str, Json]]:
        """Return all receipts once the execution has ended on the host."""
        uuid = intent.uuid
        receipts: list[dict[str, Json]] = []
        unread, drives = 0, 1
        while True:
            seen = {uuid: len(receipts)}
            observed = await self.host.observe(seen, OBSERVE_WAIT_S, ("started",))
            found: Observation = observed[uuid]
            receipts.extend(found.receipts)
            if any(receipt["kind"] == "started" for receipt in found.receipts):
                self._tell(intent, "running")
            match found.state:
                case "absent" | "damaged":
                    unread += 1
                    if unread >= MAX_READS:
                        await self.gap(intent, found.detail or "its receipts are gone")
                    await asyncio.sleep(UNREAD_PAUSE_S)
                case "gap":
                    await self.gap(intent, str(receipts[-1]["reason"]))
                case "cleaned":
                    await self.gap(intent, "the host cleaned it before it was captured")
                case "exported" | "failed" | "cancelled":
                    return receipts
                case _ if not found.driven and not found.receipts:
                    drives += 1
                    if drives > MAX_DRIVES:
                        await self.gap(intent, f"it stops at {found.state} however it is driven")
                    await self._drive(intent, needs_credential=needs_credential)
                case _:
                    pass

    async def _capture(self, intent: Intent, receipts: list[dict[str, Json]]) -> None:
        """Store every byte that came back, then the record that names them (invariant V6)."""
        by_kind = {str(receipt["kind"]): receipt for receipt in receipts}
        blobs: dict[str, Digest] = {}
        if "exported" in by_kind:
            objects = cast("dict[str, int]", by_kind["exported"]["objects"])
            contents: dict[str, bytes] = {}
            await self.host.fetch(intent.uuid, objects, contents.__setitem__)
            crash_point("executor.fetched")
            # The host replaces secrets at capture; this is the second net.
            kept = [self._redacted(content) for content in contents.values()]
            digests = await asyncio.to_thread(self.rundir.blobs.put_many, kept)
            blobs = dict(zip(contents, digests, strict=True))
        try:
            artifacts = artifacts_of(intent, by_kind, blobs)
        except (KeyError, ValidationError) as error:
            await self.gap(intent, f"its receipts are not understood: {error}")
            raise AssertionError from error
        digest = await self.keep(artifacts)
        await self._write_remote(intent.uuid, receipts)
        crash_point("executor.stored")
        await self._record(Captured(uuid=intent.uuid, artifacts=digest))
        crash_point("executor.captured")
        self._tell(intent, "captured")

    async def keep(self, artifacts: Artifacts) -> Digest:
        """Store the record of an execution as a blob and as artifacts.json."""
        content = artifacts.to_bytes()
        digest = await asyncio.to_thread(self.rundir.blobs.put, content)
        directory = self.rundir.execution(ExecutionId(artifacts.uuid))
        await asyncio.to_thread(directory.write, directory.artifacts.name, content)
        return digest

    def _redacted(self, content: bytes) -> bytes:
        for secret in self.credentials.known_values():
            content = content.replace(secret, b"[REDACTED]")
        return content

    async def clean(self, uuids: Sequence[str]) -> None:
        """Remove what captured executions own on the host (invariant V7)."""
        crash_point("executor.clean")
        receipts = await self.host.cleanup(uuids, self.socket)
        crash_point("executor.removed")
        for uuid in uuids:
            await self._write_remote(uuid, receipts[uuid])
            require_destroyed(self.ledger.intents[uuid], receipts[uuid])
            await self._record(Cleaned(uuid=uuid))
        crash_point("executor.cleaned")

    async def _write_remote(self, uuid: str, receipts: list[dict[str, Json]]) -> None:
        directory = self.rundir.execution(ExecutionId(uuid))
        content = canonical_bytes({"receipts": receipts})
        await asyncio.to_thread(directory.write, directory.remote.name, content)

    async def gap(self, intent: Intent, reason: str) -> None:
        """Record that the truth is unknown, and raise GapError (invariant V5)."""
        if intent.uuid not in self.ledger.gaps:
            await self._record(Gap(uuid=intent.uuid, reason=reason))
        raise gap_error(intent, reason)

    async def _record(self, fact: FactModel) -> None:
        await self.journal.append_soon(fact_document(fact))
        self.ledger.apply(fact)

    def _tell(self, intent: Intent, phase: Phase) -> None:
        self.observer.tell(
            ExecutionMoved(intent.uuid, intent.slot, intent.attempt, intent.kind, phase)
        )


def require_destroyed(intent: Intent, receipts: Sequence[Mapping[str, Json]]) -> None:
    """Require the receipt that an execution's credential is gone (requirement E4).

    Raises:
        HostError: E_REMOTE_CREDENTIAL_KEPT: there is none, so it does not count as cleaned.

    """
    if intent.kind not in PAID:
        return
    for receipt in receipts:
        if receipt["kind"] == "credential_destroyed" or receipt.get("credential_destroyed") is True:
            return
    raise HostError(
        "the host has no receipt that a credential was destroyed",
        code="E_REMOTE_CREDENTIAL_KEPT",
        where=f"execution {intent.uuid}: {intent.slot}, attempt {intent.attempt}",
        expected="a receipt credential_destroyed, or one of the cleanup that says so",
        found=", ".join(str(receipt["kind"]) for receipt in receipts) or "no receipts",
        fix=f"remove the container xg-{intent.uuid} on the host, if it is there; then resume",
    )


def gap_error(intent: Intent, reason: str) -> GapError:
    """Return the error that stops a run at an execution whose truth is unknown."""
    return GapError(
        f"what became of an execution cannot be established: {reason}",
        where=f"execution {intent.uuid}: {intent.slot}, attempt {intent.attempt}",
        expected="a receipt for every step",
        fix="look at executions/<uuid>/ in the run and on the host; when you know what became"
        f" of it: xgent-evolve resolve --run DIR --execution {intent.uuid} --reason TEXT",
    )


def artifacts_of(
    intent: Intent, receipts: dict[str, dict[str, Json]], blobs: dict[str, Digest]
) -> Artifacts:
    """Return the record of what came back; every file's bytes must be among `blobs`."""
    common: dict[str, Json] = {
        "uuid": intent.uuid,
        "slot": intent.slot,
        "attempt": intent.attempt,
        "kind": intent.kind,
    }
    if "cancelled" in receipts:
        before = Failure(stage="cancelled", cause="before_start", detail="it was cancelled")
        return Artifacts.model_validate({**common, "failure": before.model_dump()})
    if "failed" in receipts:
        failed = receipts["failed"]
        failure: dict[str, Json] = {key: failed[key] for key in ("stage", "cause", "detail")}
        return Artifacts.model_validate({**common, "failure": failure})
    exported, exited = receipts["exported"], receipts["exited"]
    unsafe = find_unsafe_name(exported)
    if unsafe is not None:
        refused = Failure(stage="receive", cause="unsafe_member", detail=repr(unsafe))
        return Artifacts.model_validate({**common, "failure": refused.model_dump()})
    artifacts = Artifacts.model_validate(
        {
            **common,
            "record": exported["record"],
            "command_started": exported.get("command_started", True),
            "engine": exited["engine"],
            "forced": exited["forced"],
            "files": exported["files"],
            "delivery": exported["delivery"],
            "outside": exported.get("outside"),
            "blobs": cast("dict[str, Json]", blobs),
            "redactions": exported["redactions"],
        }
    )
    for item in artifacts.files.values():
        if isinstance(item, StoredFile) and item.sha256 not in blobs:
            raise KeyError(item.sha256)
    return artifacts


def find_unsafe_name(exported: dict[str, Json]) -> str | None:
    """Return a name that leads out of where it belongs, or None.

    The host is not trusted to name files: a delivery's path may not leave the workspace, by itself
    or through a link of the same delivery, nor a captured file its execution.
    """
    files = cast("dict[str, Json]", exported["files"])
    delivery = cast("dict[str, list[dict[str, Json]]] | None", exported["delivery"])
    changes = delivery["changes"] if delivery else []
    after = {str(change["path"]): change["after"] for change in changes}
    for name in [*(name.removeprefix("/") for name in files), *after]:
        if not is_safe_path(name):
            return name
    for path in after:
        for parent in parents(path):
            fact = after.get(parent)
            if after[path] is not None and isinstance(fact, dict) and fact.get("kind") != "dir":
                return path
    return None


def load_artifacts(rundir: RunDir, digest: Digest) -> Artifacts:
    """Return a captured record from the store; raises StoreError when it is damaged."""
    return Artifacts.model_validate_json(rundir.blobs.get(digest))
