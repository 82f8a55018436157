"""A run directory that is open for work: locked, its journal folded, its host within reach."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from xgent_evolve.engine.gate import Gate
from xgent_evolve.engine.preflight import Preflighter
from xgent_evolve.engine.run import Run
from xgent_evolve.errors import RefusedError, StoreError
from xgent_evolve.execution.credential import Credentials
from xgent_evolve.execution.events import Observer, Story
from xgent_evolve.execution.executor import Executor
from xgent_evolve.execution.facts import Finished, Frozen, Ledger, parse_fact
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.report import HostState
from xgent_evolve.store.exposures import Exposures, no_exposures, user_exposures
from xgent_evolve.store.journal import Fact, Journal, read_facts
from xgent_evolve.store.rundir import RunDir
from xgent_evolve.store.task_checks import TaskChecks, no_task_checks, user_task_checks


@dataclass(slots=True)
class Session:
    """Everything that work on one run needs."""

    rundir: RunDir
    protocol: Protocol
    journal: Journal
    ledger: Ledger
    host: Host
    executor: Executor
    observer: Observer
    task_checks: TaskChecks = field(default_factory=no_task_checks)
    exposures: Exposures = field(default_factory=no_exposures)
    gate: Gate = field(default_factory=Gate)

    def study(self) -> Run:
        """Return the run as a workflow sees it."""
        preflight = Preflighter(self.protocol, self.rundir, self.executor, self.observer)
        return Run(
            self.protocol,
            self.rundir,
            self.executor,
            preflight,
            self.observer,
            self.gate,
            self.exposures,
        )

    def next_step(self) -> str:
        """Return the command that goes on with the run."""
        return f"xgent-evolve resume --run {self.rundir.path}"


@contextmanager
def open_session(
    rundir: RunDir,
    protocol: Protocol,
    observer: Observer,
    environment: Mapping[str, str] | None = None,
    *,
    recovery_window_s: float | None = None,
) -> Generator[Session]:
    """Lock a run and yield it; nothing is connected yet.

    Raises:
        BusyError: another controller owns the run.
        StoreError: the journal is damaged.

    """
    with rundir.lock(), rundir.open_journal() as journal:
        ledger = fold(journal.facts, rundir)
        require_frozen(ledger.frozen, protocol, rundir)
        window = protocol.spec.budget.recovery_window_s
        host = host_of(
            protocol,
            rundir,
            observer,
            recovery_window_s=window if recovery_window_s is None else recovery_window_s,
        )
        credentials = credentials_of(protocol, environment)
        socket = recorded_socket(rundir, ledger)
        executor = Executor(host, rundir, journal, ledger, credentials, socket, observer)
        checks = user_task_checks(environment)
        yield Session(
            rundir,
            protocol,
            journal,
            ledger,
            host,
            executor,
            observer,
            checks,
            user_exposures(environment),
        )


def fold(facts: Sequence[Fact], rundir: RunDir) -> Ledger:
    """Return what the facts of a journal say together."""
    ledger = Ledger()
    for number, document in enumerate(facts, start=1):
        ledger.apply(parse_fact(document, number, str(rundir.journal_path)))
    return ledger


def require_frozen(frozen: Frozen | None, protocol: Protocol, rundir: RunDir) -> None:
    """Require that protocol.json is the one that the journal began with.

    Raises:
        StoreError: E_STORE_CORRUPT: it was changed, or the journal does not say.

    """
    if frozen is None or frozen.protocol != protocol.digest():
        raise StoreError(
            "protocol.json is not the protocol of this run",
            code="E_STORE_CORRUPT",
            where=str(rundir.protocol_path),
            expected="its digest as the first fact" if frozen is None else frozen.protocol,
            found=protocol.digest(),
            fix="restore it from a copy of the run directory; a study is changed by a new run",
        )


def read_ledger(rundir: RunDir, protocol: Protocol) -> Ledger:
    """Return what the journal says, without a lock and without writing anything.

    Raises:
        StoreError: the journal is damaged, or protocol.json is not the run's.

    """
    ledger = fold(read_facts(rundir.journal_path), rundir)
    require_frozen(ledger.frozen, protocol, rundir)
    return ledger


def last_finished(rundir: RunDir, protocol: Protocol) -> Finished | None:
    """Return the fact that a run came to its end, or None.

    The whole chain of the journal is checked; between its first and its last fact nothing needs to
    be understood for it. Raises as `read_ledger` does.
    """
    facts = read_facts(rundir.journal_path)
    where = str(rundir.journal_path)
    first = parse_fact(facts[0], 1, where) if facts else None
    require_frozen(first if isinstance(first, Frozen) else None, protocol, rundir)
    for number in range(len(facts), 0, -1):
        if facts[number - 1].get("type") == "finished":
            fact = parse_fact(facts[number - 1], number, where)
            return fact if isinstance(fact, Finished) else None
    return None


def require_finished(finished: Finished | None, rundir: RunDir) -> Finished:
    """Return the fact that a run came to its end.

    Raises:
        RefusedError: E_RUN_UNFINISHED.

    """
    if finished is None:
        raise RefusedError(
            "the run is not finished, so it has no result yet",
            code="E_RUN_UNFINISHED",
            where=str(rundir.path),
            expected="a finished run",
            found="no report in the journal",
            fix=f"xgent-evolve resume --run {rundir.path}",
        )
    return finished


def host_of(
    protocol: Protocol, rundir: RunDir, observer: Observer, *, recovery_window_s: float
) -> Host:
    """Return the protocol's host, with the frozen host runner; nothing is connected yet."""
    return Host(
        protocol.spec.runtime.ssh,
        protocol.spec.runtime.remote_root,
        {name: rundir.blobs.get(digest) for name, digest in protocol.payload.items()},
        recovery_window_s=recovery_window_s,
        on_story=lambda text: observer.tell(Story(text)),
    )


def credentials_of(protocol: Protocol, environment: Mapping[str, str] | None) -> Credentials:
    """Return where the protocol's credential comes from."""
    return Credentials(protocol.spec.runtime, os.environ if environment is None else environment)


def recorded_socket(rundir: RunDir, ledger: Ledger) -> str:
    """Return the engine's socket that preflight recorded; empty before the first preflight."""
    if ledger.preflight is None:
        return ""
    content = rundir.blobs.get(ledger.preflight.facts)
    return HostState.model_validate_json(content).socket


def load_protocol(rundir: RunDir) -> Protocol:
    """Return the frozen protocol; raises StoreError when it is missing or damaged."""
    try:
        content = rundir.protocol_path.read_bytes()
    except OSError as error:
        raise StoreError(
            "the frozen protocol cannot be read",
            where=str(rundir.protocol_path),
            found=error.strerror or "",
            fix="restore the run directory from a copy; a protocol is never rebuilt",
        ) from error
    return Protocol.from_bytes(content)


def open_rundir(path: Path) -> tuple[RunDir, Protocol]:
    """Return a run directory and its protocol.

    Raises:
        RefusedError: E_NOT_A_RUN.
        StoreError: the protocol is damaged.

    """
    rundir = RunDir.open(path)
    return rundir, load_protocol(rundir)
