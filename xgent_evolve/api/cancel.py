"""End a run and everything that is under way for it, and keep what there is.

Safe to repeat: what has ended stays as it ended.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.api.session import Session, open_rundir, open_session, read_ledger
from xgent_evolve.api.status import write_state
from xgent_evolve.errors import BusyError
from xgent_evolve.execution.events import Observer, Silent, Story
from xgent_evolve.execution.facts import Cancelled, fact_document
from xgent_evolve.execution.reconcile import open_executions
from xgent_evolve.harbor.request import PAID
from xgent_evolve.store.lock import find_holder
from xgent_evolve.store.rundir import RunDir

CONTROLLER_LEAVES_S = 30


@dataclass(frozen=True, slots=True)
class Cancellation:
    """What cancelling did."""

    ended: int
    """Executions that were under way and have ended now."""
    already: bool
    """Whether the run had been cancelled or finished before."""


def cancel(
    rundir_path: Path,
    *,
    observer: Observer | None = None,
    environment: Mapping[str, str] | None = None,
) -> Cancellation:
    """Stop the controller if one is at work, end every execution under way, store what they left.

    Raises:
        BusyError: the controller runs on another machine, or does not leave.
        RemoteError: the host cannot be reached; nothing is lost, cancel again later.
        StoreError: the run directory is damaged.

    """
    watcher = observer or Silent()
    rundir, protocol = open_rundir(rundir_path)
    ledger = read_ledger(rundir, protocol)
    if ledger.cancelled or (ledger.finished is not None and not open_executions(ledger)):
        return Cancellation(ended=0, already=True)
    _stop_controller(rundir, watcher)
    with open_session(rundir, protocol, watcher, environment) as session:
        try:
            ended = run_interruptible(
                _end(session), next_step=f"xgent-evolve cancel --run {rundir.path}"
            )
        finally:
            write_state(rundir, session.ledger)
    return Cancellation(ended=ended, already=False)


def _stop_controller(rundir: RunDir, observer: Observer) -> None:
    """Ask the controller that owns the run to leave; what it started goes on without it."""
    lock = rundir.path / "lock"
    holder = find_holder(lock)
    if holder is None:
        return
    if holder.host != socket.gethostname():
        raise BusyError(
            "the run is worked on from another machine",
            where=str(lock),
            found=f"process {holder.pid} on {holder.host} since {holder.since}",
            fix=f"cancel on {holder.host}, or stop that process first",
        )
    observer.tell(Story(f"asking the controller (process {holder.pid}) to leave"))
    os.kill(holder.pid, signal.SIGTERM)
    end = time.monotonic() + CONTROLLER_LEAVES_S
    while find_holder(lock) is not None:
        if time.monotonic() > end:
            raise BusyError(
                "the controller does not leave",
                where=str(lock),
                found=f"process {holder.pid}",
                fix=f"end process {holder.pid} (kill -KILL loses nothing), then cancel again",
            )
        time.sleep(0.1)


async def _end(session: Session) -> int:
    """End, capture and clean what is under way; then say that the run is over."""
    executor, ledger = session.executor, session.ledger
    executor.ending = True
    try:
        under_way = [intent for intent in open_executions(ledger) if intent.uuid not in ledger.gaps]
        if under_way:
            uuids = [intent.uuid for intent in under_way]
            found = await session.host.observe(dict.fromkeys(uuids, 0), 0)
            there = [intent for intent in under_way if found[intent.uuid].state != "absent"]
            await session.host.cancel([intent.uuid for intent in there], executor.socket)
            for intent in there:
                needs_credential = intent.kind in PAID
                await executor.collect(intent, needs_credential=needs_credential)
        left = [uuid for uuid in ledger.captured if uuid not in ledger.cleaned]
        if left:
            await executor.clean(left)
    finally:
        await session.host.close()
    fact = Cancelled()
    await session.journal.append_soon(fact_document(fact))
    ledger.apply(fact)
    return len(under_way)
