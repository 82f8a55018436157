"""Run a study, or go on with one (requirements A2, A3)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.analysis import comparison_report, smoke_report
from xgent_evolve.canonical import digest_bytes
from xgent_evolve.engine.preflight import Preflighter
from xgent_evolve.engine.run import Run
from xgent_evolve.errors import (
    Interrupted,
    InvalidError,
    RemoteError,
    StoreError,
    TrialError,
)
from xgent_evolve.execution.credential import Credentials
from xgent_evolve.execution.events import Observer, Silent, Story
from xgent_evolve.execution.executor import Executor, gap_error
from xgent_evolve.execution.facts import Finished, Ledger, fact_document, parse_fact
from xgent_evolve.freeze.build import build_protocol, verify_frozen
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.preflight import inspect_host
from xgent_evolve.report.model import Document, json_bytes, report_document
from xgent_evolve.report.text import report_text
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.durable import write_durable
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir
from xgent_evolve.workflow.compare import measure_conditions
from xgent_evolve.workflow.smoke import check_cases


@dataclass(frozen=True, slots=True)
class StudyOutcome:
    """A finished study."""

    rundir: Path
    document: Document
    """The content of report.json."""


def run(
    spec: Path,
    output: Path,
    *,
    observer: Observer | None = None,
    environment: Mapping[str, str] | None = None,
) -> StudyOutcome:
    """Freeze the study of a JobSpec into the new directory `output` and carry it out.

    Raises:
        InvalidError: the JobSpec, a path or the authority is illegal, or `output` exists.
        RefusedError: inputs drift while they are read, or an execution's truth is unknown.
        RemoteError: the host failed; `resume` continues.
        Interrupted: a signal ended it; `resume` continues.

    """
    watcher = observer or Silent()
    loaded = load_spec(spec)
    require_carried_out(loaded.spec.mode)
    credentials = Credentials(loaded.spec.runtime, _environment(environment))
    credentials.require()
    with RunDir.draft(output) as draft:
        watcher.tell(Story("freezing every input by hash"))
        protocol = build_protocol(loaded, draft.blobs)
        draft.write_protocol(protocol.to_bytes())
        # Before the directory gets its name: a host that cannot be used leaves nothing behind.
        run_interruptible(first_visit(protocol, draft, watcher), "nothing was started")
    rundir = RunDir.open(output)
    return _carry_out(rundir, protocol, credentials, watcher)


def resume(
    rundir_path: Path,
    *,
    observer: Observer | None = None,
    environment: Mapping[str, str] | None = None,
) -> StudyOutcome:
    """Go on with a run from its frozen protocol, bytes and receipts alone.

    What is recorded is replayed; registered executions are asked for on the host and adopted; what
    was never submitted is submitted. A finished run is recomputed without any network call.

    Raises:
        RefusedError: another controller owns the run, frozen bytes or code differ, or an
            execution's truth is unknown (exit code 3).
        RemoteError, Interrupted: as for `run`.

    """
    rundir = RunDir.open(rundir_path)
    protocol = load_protocol(rundir)
    verify_frozen(protocol, rundir.blobs)
    credentials = Credentials(protocol.spec.runtime, _environment(environment))
    return _carry_out(rundir, protocol, credentials, observer or Silent())


def load_protocol(rundir: RunDir) -> Protocol:
    """Return the frozen protocol; raises StoreError when it is damaged."""
    try:
        content = rundir.protocol_path.read_bytes()
        protocol = Protocol.model_validate_json(content)
    except (OSError, ValueError) as error:
        raise StoreError(
            "the frozen protocol cannot be read",
            where=str(rundir.protocol_path),
            found=str(error).splitlines()[0],
            fix="restore the run directory from a copy; a protocol is never rebuilt",
        ) from error
    if protocol.to_bytes() != content:
        raise StoreError(
            "protocol.json is not in canonical form, so it was changed",
            where=str(rundir.protocol_path),
            fix="restore the run directory from a copy",
        )
    return protocol


def require_carried_out(mode: str) -> None:
    """Refuse a mode that `validate` knows and this version does not carry out yet."""
    if mode == "search":
        raise InvalidError(
            "mode search is checked by validate and not carried out by this version",
            code="E_MODE",
            where="$.mode",
            expected="smoke or compare",
            found=mode,
            fix="compare candidates that you wrote yourself",
        )


def _environment(environment: Mapping[str, str] | None) -> Mapping[str, str]:
    return os.environ if environment is None else environment


async def first_visit(protocol: Protocol, rundir: RunDir, observer: Observer) -> None:
    """Ask the host once whether it can be used at all; a failure leaves nothing there.

    Raises:
        RemoteError: it cannot.

    """
    spec = protocol.spec
    observer.tell(Story(f"visiting the host {spec.runtime.ssh.host}"))
    host = host_of(protocol, rundir, observer, recovery_window_s=0)
    try:
        await inspect_host(host, spec.runtime, spec.cases)
    except RemoteError:
        await host.forget()
        raise
    finally:
        await host.close()


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


def _carry_out(
    rundir: RunDir, protocol: Protocol, credentials: Credentials, observer: Observer
) -> StudyOutcome:
    with rundir.lock(), rundir.open_journal() as journal:
        ledger = Ledger()
        for number, document in enumerate(journal.facts, start=1):
            ledger.apply(parse_fact(document, number, str(rundir.journal_path)))
        for uuid, gap in ledger.gaps.items():
            raise gap_error(ledger.intents[uuid], gap.reason)
        work = _work(rundir, protocol, journal, ledger, credentials, observer)
        return run_interruptible(work, f"xgent-evolve resume --run {rundir.path}")


async def _work(
    rundir: RunDir,
    protocol: Protocol,
    journal: Journal,
    ledger: Ledger,
    credentials: Credentials,
    observer: Observer,
) -> StudyOutcome:
    """Carry out the protocol's mode and write the reports."""
    window_s = protocol.spec.budget.recovery_window_s
    host = host_of(protocol, rundir, observer, recovery_window_s=window_s)
    executor = Executor(host, rundir, journal, ledger, credentials, "", observer)
    preflight = Preflighter(protocol, rundir, executor, observer)
    study = Run(protocol, rundir, executor, preflight, observer)
    try:
        document = await _analyse(study)
    finally:
        await host.close()
    content = json_bytes(document)
    write_durable(rundir.report_json_path, content)
    write_durable(rundir.report_md_path, report_text(document).encode())
    if ledger.finished is None:
        finished = Finished(report=digest_bytes(content))
        await journal.append_soon(fact_document(finished))
    rundir.write_state({"status": "finished", "executions": len(ledger.intents)})
    require_results(study, rundir.path)
    return StudyOutcome(rundir.path, document)


async def _analyse(study: Run) -> Document:
    try:
        if study.protocol.spec.mode == "smoke":
            return report_document(smoke_report(study, await check_cases(study)))
        return report_document(comparison_report(study, await measure_conditions(study)))
    except BaseExceptionGroup as group:
        raise first_cause(group) from group


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that stopped the run; the others were stopped by it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return first_cause(error)  # pyright: ignore[reportUnknownArgumentType]
        return error
    return group


def require_results(study: Run, rundir: Path) -> None:
    """Say with exit code 4 that infrastructure kept some trial from having a result.

    Raises:
        TrialError: E_TRIAL_INFRA; the report is written all the same.

    """
    final = {row.slot.key: row for row in study.attempts}
    broken = [row for row in final.values() if row.status == "invalid"]
    if broken and study.protocol.spec.mode != "smoke":
        first = broken[0]
        raise TrialError(
            f"{len(broken)} of {len(final)} executions have no result; the report is written",
            where=f"{rundir}: {first.slot.key}, attempt {first.attempt}",
            found=f"{first.cause}: {first.detail}"[:300],
            fix=f"read {rundir / 'report.md'}; the evidence counts these trials as missing",
        )


def run_interruptible[T](work: Coroutine[object, object, T], next_step: str) -> T:
    """Run `work`; the first SIGINT or SIGTERM ends it, what is recorded stays.

    Raises:
        Interrupted: with the number of the signal.

    """

    async def supervised() -> T:
        task = asyncio.ensure_future(work)
        received: list[int] = []

        def stop(number: int) -> None:
            received.append(number)
            task.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        try:
            return await task
        except asyncio.CancelledError:
            if not received:
                raise
            raise Interrupted(
                "stopped by a signal; running executions go on on the host",
                signal_number=received[0],
                fix=next_step,
            ) from None
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    return asyncio.run(supervised())
