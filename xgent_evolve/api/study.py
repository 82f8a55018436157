"""Run a study, or go on with one (requirements A2, A3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xgent_evolve.api.analysis import comparison_report, search_report, smoke_report
from xgent_evolve.api.evidence import evidence_of
from xgent_evolve.api.interrupt import OnInterrupt, run_interruptible
from xgent_evolve.api.session import (
    Session,
    credentials_of,
    host_of,
    last_finished,
    open_rundir,
    open_session,
    read_ledger,
)
from xgent_evolve.api.status import write_state
from xgent_evolve.canonical import digest_bytes
from xgent_evolve.engine.run import Run
from xgent_evolve.engine.task_memory import TaskMemory
from xgent_evolve.errors import HostError, InvalidError, RefusedError, RemoteError, TrialError
from xgent_evolve.execution.events import Observer, Silent, Story
from xgent_evolve.execution.executor import gap_error
from xgent_evolve.execution.facts import Finished, Frozen, Ledger, fact_document
from xgent_evolve.execution.reconcile import Row, gaps_of, open_executions, reconcile
from xgent_evolve.freeze.advice import study_warnings
from xgent_evolve.freeze.build import build_protocol, verify_frozen
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.remote.preflight import inspect_host, require_own_login
from xgent_evolve.report.access import part, parts
from xgent_evolve.report.html import report_html
from xgent_evolve.report.model import Document, json_bytes, report_document
from xgent_evolve.report.text import report_text
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.crashpoints import crash_point
from xgent_evolve.store.durable import write_durable
from xgent_evolve.store.rundir import RunDir
from xgent_evolve.workflow.checks import Check, Verdict
from xgent_evolve.workflow.compare import measure_conditions
from xgent_evolve.workflow.search import search
from xgent_evolve.workflow.smoke import check_cases
from xgent_evolve.workflow.task_check import TaskCheck, require_sound


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
    on_interrupt: OnInterrupt = "detach",
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
    require_carried_out(loaded.spec)
    with RunDir.draft(output) as draft:
        watcher.tell(Story("freezing every input by hash"))
        protocol = build_protocol(loaded, draft.blobs)
        for warning in study_warnings(loaded, protocol, draft.blobs):
            watcher.tell(Story(f"warning {warning.code}: {warning.message}"))
        credentials_of(protocol, environment).require()
        draft.write_protocol(protocol.to_bytes())
        with draft.open_journal() as journal:
            journal.append(fact_document(Frozen(protocol=protocol.digest())))
        # Before the directory gets its name: a host that cannot be used leaves nothing behind.
        visit = first_visit(protocol, draft, watcher)
        run_interruptible(visit, next_step="nothing was started; run again")
    with open_session(RunDir.open(output), protocol, watcher, environment) as session:
        return carry_out(session, on_interrupt)


def resume(
    rundir_path: Path,
    *,
    observer: Observer | None = None,
    environment: Mapping[str, str] | None = None,
    on_interrupt: OnInterrupt = "detach",
) -> StudyOutcome:
    """Go on with a run from its frozen protocol, bytes and receipts alone.

    What is recorded is replayed; registered executions are asked for on the host, all in one
    question, and adopted; what was never submitted is submitted. A finished run is recomputed
    without any network call.

    Raises:
        RefusedError: another controller owns the run, it was cancelled, frozen bytes or code
            differ, or an execution's truth is unknown (exit code 3).
        RemoteError, Interrupted: as for `run`.

    """
    rundir, protocol = open_rundir(rundir_path)
    finished = find_finished(rundir, protocol)
    if finished is not None:
        return finished
    verify_frozen(protocol, rundir.blobs)
    with open_session(rundir, protocol, observer or Silent(), environment) as session:
        return carry_out(session, on_interrupt)


def find_finished(rundir: RunDir, protocol: Protocol) -> StudyOutcome | None:
    """Return a finished run's outcome when its report is the one that the journal names.

    Nothing is locked, written or connected to. Without that report, or with another, None: then
    everything is computed again from the recorded bytes. Raises TrialError as `run` does.
    """
    finished = last_finished(rundir, protocol)
    if finished is None or not rundir.report_json_path.exists():
        return None
    content = rundir.report_json_path.read_bytes()
    if digest_bytes(content) != finished.report:
        return None
    document = cast("Document", json.loads(content))
    require_results(document, rundir.path)
    return StudyOutcome(rundir.path, document)


def plan_resume(rundir_path: Path, *, observer: Observer | None = None) -> list[Row]:
    """Return what `resume` would find for every registered execution; nothing is changed.

    Raises:
        RefusedError, StoreError: as for `resume`.
        RemoteError: the host cannot be asked.

    """
    rundir, protocol = open_rundir(rundir_path)
    ledger = read_ledger(rundir, protocol)
    host = host_of(protocol, rundir, observer or Silent(), recovery_window_s=0)

    async def ask() -> list[Row]:
        try:
            return await reconcile(host, ledger)
        finally:
            await host.close()

    return run_interruptible(ask(), next_step="nothing was changed")


def require_carried_out(spec: JobSpec) -> None:
    """Refuse what `validate` knows and this version does not carry out yet.

    Raises:
        InvalidError: E_MODE.

    """
    if spec.schema_version == 2:
        raise InvalidError(
            "version 2 is checked by validate and not carried out by this version",
            code="E_MODE",
            where="$.schema_version",
            expected="1",
            found="2",
            fix="compare task success with a JobSpec of version 1",
        )
    if spec.optimizer is not None and spec.optimizer.strategy != "hillclimb":
        raise InvalidError(
            "this strategy is checked by validate and not carried out by this version",
            code="E_MODE",
            where="$.optimizer.strategy",
            expected="hillclimb",
            found=spec.optimizer.strategy,
            fix='set optimizer.strategy to "hillclimb"',
        )


async def first_visit(protocol: Protocol, rundir: RunDir, observer: Observer) -> None:
    """Ask the host once whether it can be used at all; a failure leaves nothing there.

    Raises:
        RemoteError: it cannot.

    """
    runtime = protocol.spec.runtime
    observer.tell(Story(f"visiting the host {runtime.ssh.host}"))
    host = host_of(protocol, rundir, observer, recovery_window_s=0)
    try:
        report = await inspect_host(host, runtime, protocol.spec.cases)
        require_own_login(report, protocol.spec.budget.max_concurrency)
    except RemoteError:
        await host.forget()
        raise
    finally:
        await host.close()


def carry_out(session: Session, on_interrupt: OnInterrupt) -> StudyOutcome:
    """Carry a locked run out to its report, whatever has happened to it before."""
    require_open(session.ledger, session.rundir.path)
    try:
        return run_interruptible(
            _work(session),
            next_step=session.next_step(),
            gate=session.gate,
            on_interrupt=on_interrupt,
        )
    finally:
        write_state(session.rundir, session.ledger)


def require_open(ledger: Ledger, path: Path) -> None:
    """Require that nothing forbids going on.

    Raises:
        GapError: an execution's truth is unknown and nobody has decided.
        RefusedError: E_RUN_CANCELLED.

    """
    for gap in ledger.open_gaps():
        raise gap_error(ledger.intents[gap.uuid], gap.reason)
    if ledger.cancelled:
        raise RefusedError(
            "the run was cancelled",
            code="E_RUN_CANCELLED",
            where=str(path),
            fix="what was measured is kept; start another run for a new result",
        )


async def _work(session: Session) -> StudyOutcome:
    try:
        await _stop_at_gaps(session)
        study = session.study()
        document = await _analyse(study, TaskMemory(study, session.task_checks))
        page = await asyncio.to_thread(report_html, document, evidence_of(study))
    finally:
        await session.host.close()
    content = json_bytes(document)
    rundir = session.rundir
    crash_point("study.report")
    write_durable(rundir.report_md_path, report_text(document).encode())
    write_durable(rundir.report_html_path, page.encode())
    write_durable(rundir.report_json_path, content)
    if session.ledger.finished is None:
        finished = Finished(report=digest_bytes(content))
        await session.journal.append_soon(fact_document(finished))
        session.ledger.apply(finished)
    crash_point("study.finished")
    require_results(document, rundir.path)
    return StudyOutcome(rundir.path, document)


async def _stop_at_gaps(session: Session) -> None:
    """Ask for every registered execution before anything new is paid for (requirement D3)."""
    if not open_executions(session.ledger):
        return
    gaps = gaps_of(await reconcile(session.host, session.ledger))
    for row in gaps[1:]:
        session.observer.tell(Story(f"gap: {row.intent.slot}: {row.reason}"))
    if gaps:
        await session.executor.gap(gaps[0].intent, gaps[0].reason)


async def _analyse(study: Run, memory: TaskMemory) -> Document:
    try:
        if study.protocol.spec.mode == "smoke":
            return report_document(smoke_report(study, await check_cases(study, memory)))
        if study.protocol.spec.mode == "search":
            return report_document(search_report(study, await search(study, memory)))
        return report_document(comparison_report(study, await measure_conditions(study, memory)))
    except BaseExceptionGroup as group:
        raise first_cause(group) from group


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error that stopped the run; the others were stopped by it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return first_cause(error)  # pyright: ignore[reportUnknownArgumentType]
        return error
    return group


def require_results(document: Document, rundir: Path) -> None:
    """Say with an exit code that the study cannot be carried out, or that a trial has no result.

    The report is written all the same.

    Raises:
        HostError: E_REMOTE_SANDBOX, in a smoke.
        TaskCheckError: E_SPEC_TASK_ORACLE, in a smoke.
        TrialError: E_TRIAL_BAD_REWARD: verifiers left no usable reward; E_TRIAL_INFRA.

    """
    require_sandboxes(document, rundir)
    require_sound(smoke_checks(document))
    last: dict[tuple[str, ...], Document] = {}
    for row in parts(document, "attempts"):
        last[tuple(str(row[name]) for name in ("kind", "condition", "case", "repeat"))] = row
    broken = {slot: row for slot, row in last.items() if row["status"] == "invalid"}
    if broken:
        (kind, condition, case, repeat), row = next(iter(broken.items()))
        rewards = all(str(row["cause"]).startswith("reward_") for row in broken.values())
        raise TrialError(
            f"{len(broken)} of {len(last)} executions have no result; the report is written",
            code="E_TRIAL_BAD_REWARD" if rewards else "E_TRIAL_INFRA",
            where=f"{rundir}: {condition}/{case}/{repeat}/{kind}, attempt {row['attempt']}",
            found=str(row["cause"]),
            fix=f"read {rundir / 'report.md'}; the evidence counts these trials as missing",
        )


def require_sandboxes(document: Document, rundir: Path) -> None:
    """Require that the sandbox held for every case of a smoke.

    Raises:
        HostError: E_REMOTE_SANDBOX, with what the first failing check said.

    """
    probes = [(str(case["case"]), part(case, "probe")) for case in parts(document, "smoke")]
    failed = [(name, probe) for name, probe in probes if probe["status"] != "passed"]
    if failed:
        name, probe = failed[0]
        raise HostError(
            f"the agent's sandbox does not hold for {len(failed)} of {len(probes)} cases; the"
            " report is written",
            code="E_REMOTE_SANDBOX",
            where=f"{rundir}: case {name}",
            expected="user namespaces, and a shell that sees its workspace and nothing else",
            found=str(probe["detail"]),
            fix="see docs/isolation.md for what host and image must allow, then start another run",
        )


def smoke_checks(document: Document) -> list[TaskCheck]:
    """Return what a smoke's report says about its tasks; nothing for another report."""
    checks: list[TaskCheck] = []
    for case in parts(document, "smoke"):
        untouched, oracle = (
            Check(cast("Verdict", step["status"]), str(step["detail"]))
            for step in (part(case, name) for name in ("untouched", "oracle"))
        )
        checks.append(TaskCheck(str(case["case"]), untouched, oracle))
    return checks
