"""Establishes once what the host is, records it, and holds later visits to it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.errors import DriftError, StoreError
from xgent_evolve.execution.events import Observer, Story
from xgent_evolve.execution.executor import Executor
from xgent_evolve.execution.facts import Preflight, fact_document
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.inputs import HostFacts, ImageFacts
from xgent_evolve.harbor.requests import Planner
from xgent_evolve.remote.fitness import has_apparmor
from xgent_evolve.remote.preflight import (
    CodexInstall,
    image_path,
    inspect_host,
    install_codex,
    require_own_login,
    tool_tree,
)
from xgent_evolve.remote.report import HostReport, HostState
from xgent_evolve.store.rundir import RunDir


def host_facts(report: HostState, tool: str) -> HostFacts:
    """Return what requests depend on; `tool` is the verified install below the remote root."""
    return HostFacts(
        socket=report.socket,
        engine_id=report.engine.id,
        tool=tool,
        apparmor=has_apparmor(report),
        images={
            name: ImageFacts(id=image.id, path=image_path(image))
            for name, image in report.images.items()
            if image is not None
        },
    )


def host_document(report: HostReport, codex: CodexInstall | None) -> dict[str, Json]:
    """Return all that is known of a host: the content of host.json."""
    document = cast("dict[str, Json]", report.model_dump(mode="json"))
    install = None if codex is None else {**codex._asdict()}
    return {"type": "xgent-evolve/host/1", **document, "codex": install}


@dataclass(slots=True)
class Preflighter:
    """Makes the planner of requests; the first use in a process visits the host."""

    protocol: Protocol
    rundir: RunDir
    executor: Executor
    observer: Observer
    _planner: Planner | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def visited(self) -> Planner | None:
        """The planner, when this process has visited the host."""
        return self._planner

    async def planner(self) -> Planner:
        """Return the planner for this host.

        Raises:
            HostError, ToolError, SshError: the host cannot do what the run needs.
            DriftError: E_REMOTE_DRIFT: it is not what it was when the run began.

        """
        async with self._lock:
            if self._planner is None:
                self._planner = await self._visit()
        return self._planner

    async def _visit(self) -> Planner:
        spec = self.protocol.spec
        host = self.executor.host
        self.observer.tell(Story(f"checking the host {spec.runtime.ssh.host}"))
        report = await inspect_host(host, spec.runtime, spec.cases)
        require_own_login(report, spec.budget.max_concurrency)
        codex = await install_codex(host, spec.runtime.codex)
        frozen = canonical_bytes(report.state().model_dump(mode="json"))
        digest = await asyncio.to_thread(self.rundir.blobs.put, frozen)
        fact = Preflight(facts=digest, tool_manifest_sha256=codex.manifest_sha256)
        known = self.executor.ledger.preflight
        if known is None:
            found = host_document(report, codex)
            await asyncio.to_thread(self.rundir.write_host, found)
            await self.executor.journal.append_soon(fact_document(fact))
            self.executor.ledger.apply(fact)
        elif known != fact:
            raise self._drift(known, fact)
        self.executor.socket = report.socket
        facts = host_facts(report, codex.directory)
        return Planner(self.protocol, self.rundir.blobs, self.rundir.run_id, facts)

    def recorded(self) -> Planner:
        """Return the planner for the host as it was recorded; nothing is visited.

        Raises:
            StoreError: the record is missing or damaged.

        """
        known = self.executor.ledger.preflight
        if known is None:
            raise StoreError(
                "the recorded facts do not say what the host was",
                code="E_STORE_MISSING",
                where=f"{self.rundir.journal_path}: preflight",
                fix="restore the run directory from a copy",
            )
        if self._planner is None:
            state = HostState.model_validate_json(self.rundir.blobs.get(known.facts))
            facts = host_facts(state, tool_tree(self.protocol.spec.runtime.codex))
            blobs, run_id = self.rundir.blobs, self.rundir.run_id
            self._planner = Planner(self.protocol, blobs, run_id, facts)
        return self._planner

    def _drift(self, known: Preflight, found: Preflight) -> DriftError:
        tool = known.tool_manifest_sha256 != found.tool_manifest_sha256
        return DriftError(
            "the host is not what it was when the run began",
            code="E_REMOTE_DRIFT",
            where=f"host {self.protocol.spec.runtime.ssh.host}: "
            + ("the Codex install" if tool else "engine or images"),
            expected=known.tool_manifest_sha256 if tool else known.facts,
            found=found.tool_manifest_sha256 if tool else found.facts,
            fix="bring the host back to that state, or start another run",
        )
