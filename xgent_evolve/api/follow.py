"""Follow what executions print: on their host while they run, then in the run directory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.api.logs import Log, Stream, choose, log_of, tails
from xgent_evolve.api.session import host_of, open_rundir, read_ledger
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.facts import Intent
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.remote.host import Host
from xgent_evolve.store.lock import find_holder
from xgent_evolve.store.rundir import RunDir


@dataclass(frozen=True, slots=True)
class Part:
    """What an execution has printed since the last look."""

    intent: Intent
    captured: bool
    """Whether this is its last part."""
    text: str
    note: str = ""
    """Why there is nothing, for an execution that has ended without output."""


def follow(
    rundir_path: Path,
    which: str,
    stream: Stream,
    tell: Callable[[Part], None],
    *,
    interval_s: float = 2.0,
) -> None:
    """Tell every new part of the chosen executions until all are captured and no controller works.

    Raises as `logs` does; Interrupted when a signal ends it, which changes nothing anywhere.
    """
    rundir, protocol = open_rundir(rundir_path)
    follower = _Follower(rundir, protocol, which, stream, tell, interval_s)
    run_interruptible(follower.follow(), next_step="nothing was changed; follow again")


@dataclass(slots=True)
class _Follower:
    rundir: RunDir
    protocol: Protocol
    which: str
    stream: Stream
    tell: Callable[[Part], None]
    interval_s: float
    _shown: dict[str, str] = field(default_factory=dict[str, str])
    _ended: set[str] = field(default_factory=set[str])

    async def follow(self) -> None:
        """Look again and again over one connection, which is made when it is needed."""
        host = host_of(self.protocol, self.rundir, Silent(), recovery_window_s=0)
        try:
            while True:
                more_may_come = await self._look(host)
                if not more_may_come:
                    return
                await asyncio.sleep(self.interval_s)
        finally:
            await host.close()

    async def _look(self, host: Host) -> bool:
        """Tell what is new; say whether more may come."""
        at_work = find_holder(self.rundir.path / "lock") is not None
        ledger = await asyncio.to_thread(read_ledger, self.rundir, self.protocol)
        chosen = choose(ledger, self.rundir, self.which, may_be_none=at_work)
        missing = [intent for intent in chosen if intent.uuid not in ledger.captured]
        for intent in chosen:
            if intent.uuid in ledger.captured and intent.uuid not in self._ended:
                self._ended.add(intent.uuid)
                self._tell(log_of(self.rundir, ledger, intent, self.stream, None))
        if missing and ledger.preflight is not None:
            found = await tails(host, self.rundir, self.protocol, ledger, missing, self.stream)
            for intent in missing:
                self._tell(log_of(self.rundir, ledger, intent, self.stream, found[intent.uuid]))
        return bool(missing) or at_work

    def _tell(self, log: Log) -> None:
        uuid, text = log.intent.uuid, log.content.decode("utf-8", "replace")
        new = continuation(self._shown.get(uuid, ""), text)
        if text:
            self._shown[uuid] = text
        if new or log.captured:
            note = log.note if log.captured and not text else ""
            self.tell(Part(log.intent, log.captured, new, note))


def continuation(shown: str, now: str) -> str:
    """Return what is new in `now`, of which `shown` was seen before. Pure.

    A host shows the end of a long output, so its beginning may be gone; where nothing of what was
    seen is left, a line says so.
    """
    if not now or now == shown:
        return ""
    if now.startswith(shown):
        return now[len(shown) :]
    for size in (4096, 512, 64):
        known = shown[-size:]
        at = now.rfind(known) if len(known) == size else -1
        if at >= 0:
            return now[at + size :]
    return f"[something between was not shown]\n{now}"
