"""Carry a finished study out again from its recorded facts alone: no host, no write, no call."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.analysis import comparison_report, search_report, smoke_report
from xgent_evolve.api.session import credentials_of, host_of
from xgent_evolve.engine.preflight import Preflighter
from xgent_evolve.engine.run import Run
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.errors import XgentError
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.executor import Executor
from xgent_evolve.execution.facts import Ledger
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.report.document import Document
from xgent_evolve.report.model import report_document
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir
from xgent_evolve.store.task_checks import no_task_checks
from xgent_evolve.workflow.compare import measure_conditions
from xgent_evolve.workflow.search import SearchResult, search
from xgent_evolve.workflow.smoke import check_cases


@dataclass(frozen=True, slots=True)
class Replay:
    """What the recorded facts come to."""

    run: Run
    """With every attempt and every candidate; it cannot reach a host."""
    document: Document
    """The content of report.json."""
    search: SearchResult | None
    """Mode search alone."""


def replay(protocol: Protocol, rundir: RunDir, ledger: Ledger) -> Replay:
    """Compute a study again.

    Raises:
        StoreError: a fact or stored bytes that it needs are missing or damaged.
        XgentError: whatever the study itself ends with.

    """
    return asyncio.run(_replay(protocol, rundir, ledger))


async def _replay(protocol: Protocol, rundir: RunDir, ledger: Ledger) -> Replay:
    observer = Silent()
    host = host_of(protocol, rundir, observer, recovery_window_s=0)
    with tempfile.TemporaryDirectory(prefix="xgent-evolve-replay-") as scratch:
        # A replay writes no fact; the journal of the run is not opened for writing.
        journal = Journal.create(Path(scratch) / "journal.jsonl")
        credentials = credentials_of(protocol, {})
        executor = Executor(host, rundir, journal, ledger, credentials, "", observer)
        preflight = Preflighter(protocol, rundir, executor, observer)
        run = Run(protocol, rundir, executor, preflight, observer, replay_only=True)
        memory = TaskMemory(run, no_task_checks())
        found: SearchResult | None = None
        try:
            if protocol.spec.mode == "smoke":
                report = smoke_report(run, await check_cases(run, memory))
            elif protocol.spec.mode == "search":
                found = await search(run, memory)
                report = search_report(run, found)
            else:
                report = comparison_report(run, await measure_conditions(run, memory))
        except BaseExceptionGroup as group:
            errors = group.subgroup(XgentError)
            if errors is None:
                raise
            raise _leaf(errors) from group
        finally:
            journal.close()
    return Replay(run, report_document(report), found)


def _leaf(group: BaseExceptionGroup[XgentError]) -> XgentError:
    first = group.exceptions[0]
    return first if isinstance(first, XgentError) else _leaf(first)
