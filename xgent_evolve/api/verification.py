"""Compute every number of a finished run again, from receipts and stored bytes alone.

Nothing is locked, written or connected to. A workflow that asks for an execution which is not
recorded ends here as a finding; it can never reach the host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from xgent_evolve.api.evidence import evidence_of
from xgent_evolve.api.replay import Replay, replay
from xgent_evolve.api.session import open_rundir, read_ledger, require_finished
from xgent_evolve.canonical import Json, canonical_bytes, digest_bytes
from xgent_evolve.engine.attempts import attempt_document
from xgent_evolve.errors import StoreError, XgentError
from xgent_evolve.execution.executor import load_artifacts, require_destroyed
from xgent_evolve.execution.facts import Ledger
from xgent_evolve.freeze.build import reachable
from xgent_evolve.freeze.code import require_code
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.events import json_lines
from xgent_evolve.ids import ExecutionId, execution_id
from xgent_evolve.report.document import Document, JsonValue, differences
from xgent_evolve.report.html import report_html
from xgent_evolve.report.model import json_bytes
from xgent_evolve.report.text import report_text
from xgent_evolve.store.rundir import RunDir

_MOST_DIFFERENCES = 50


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as the evidence says."""

    where: str
    expected: str
    found: str


@dataclass(slots=True)
class Verification:
    """What was checked, and what did not hold."""

    executions: int = 0
    """Registered executions whose receipts were followed."""
    blobs: int = 0
    """Stored files that were read and hashed."""
    bytes: int = 0
    numbers: int = 0
    """Values of report.json that were computed again."""
    findings: list[Finding] = field(default_factory=list[Finding])


def verify(rundir_path: Path) -> Verification:
    """Compute a finished run again and compare; findings, not exceptions, say what differs.

    Raises:
        RefusedError: E_NOT_A_RUN, E_RUN_UNFINISHED; E_RUN_CODE: another version made the run, so
            this one cannot compute the same numbers.
        StoreError: protocol or journal cannot be read at all.

    """
    rundir, protocol = open_rundir(rundir_path)
    done, _ = examine(rundir, protocol)
    return done


def examine(rundir: RunDir, protocol: Protocol) -> tuple[Verification, Replay | None]:
    """Verify an open run, and return what its facts come to as well; None when they cannot tell.

    Raises as `verify`.
    """
    ledger = read_ledger(rundir, protocol)
    require_code(protocol.code)
    require_finished(ledger.finished, rundir)
    done = Verification()
    again: Replay | None = None
    check_blobs(rundir, done)
    if not done.findings:
        check_frozen(protocol, rundir, done)
        check_receipts(rundir, ledger, done)
    if not done.findings:
        again = check_report(protocol, rundir, ledger, done)
    return done, again


def check_blobs(rundir: RunDir, done: Verification) -> None:
    """Read and hash every stored file; a damaged one is named and left where it is."""
    for digest in rundir.blobs.digests():
        path = rundir.blobs.path(digest)
        try:
            content = path.read_bytes()
        except OSError as error:
            done.findings.append(Finding(str(path), digest, error.strerror or str(error)))
            continue
        done.blobs += 1
        done.bytes += len(content)
        if digest_bytes(content) != digest:
            found = f"{len(content)} bytes with the hash {digest_bytes(content)}"
            done.findings.append(Finding(str(path), digest, found))


def check_frozen(protocol: Protocol, rundir: RunDir, done: Verification) -> None:
    """Require that every frozen byte is there."""
    try:
        for digest in reachable(protocol, rundir.blobs):
            rundir.blobs.get(digest)
    except StoreError as error:
        done.findings.append(finding_of(error))


def check_receipts(rundir: RunDir, ledger: Ledger, done: Verification) -> None:
    """Follow every execution from its registration to its capture and cleanup (D6, V4, V6)."""
    for uuid, intent in ledger.intents.items():
        done.executions += 1
        where = f"execution {uuid} ({intent.slot} #{intent.attempt})"
        derived = execution_id(rundir.run_id, intent.slot, intent.attempt)
        if derived != uuid:
            done.findings.append(Finding(where, f"the identity {derived}", uuid))
        captured = ledger.captured.get(uuid)
        if captured is None or uuid not in ledger.cleaned:
            missing = "captured" if captured is None else "cleaned"
            done.findings.append(Finding(where, "captured and cleaned", f"no receipt: {missing}"))
            continue
        try:
            if uuid not in ledger.resolved:
                require_destroyed(intent, read_receipts(rundir, ExecutionId(uuid)))
            artifacts = load_artifacts(rundir, captured.artifacts)
            for digest in artifacts.blobs.values():
                rundir.blobs.get(digest)
        except XgentError as error:
            done.findings.append(finding_of(error))
            continue
        record = None if artifacts.record is None else artifacts.record.uuid
        for named in (artifacts.uuid, record):
            if named not in (uuid, None):
                done.findings.append(Finding(where, f"bytes of {uuid}", f"bytes of {named}"))


def read_receipts(rundir: RunDir, uuid: ExecutionId) -> list[dict[str, Json]]:
    """Return the host's receipts of an execution, as they were kept.

    Raises:
        StoreError: E_STORE_MISSING, E_STORE_CORRUPT.

    """
    path = rundir.execution(uuid).remote
    try:
        document = json.loads(path.read_bytes())
        return [dict(receipt) for receipt in document["receipts"]]
    except FileNotFoundError:
        code, found = "E_STORE_MISSING", "no file"
    except (OSError, ValueError, KeyError, TypeError) as error:
        code, found = "E_STORE_CORRUPT", type(error).__name__
    raise StoreError(
        "the receipts of an execution cannot be read",
        code=code,
        where=str(path),
        expected="the receipts that the host gave",
        found=found,
        fix="restore the run directory from a copy",
    )


def check_report(
    protocol: Protocol, rundir: RunDir, ledger: Ledger, done: Verification
) -> Replay | None:
    """Compute the report again and compare it value by value, and with what is rendered from it."""
    try:
        again = replay(protocol, rundir, ledger)
        document = again.document
        page = report_html(document, evidence_of(again.run))
    except XgentError as error:
        done.findings.append(finding_of(error))
        return None
    content = json_bytes(document)
    done.numbers = count_values(document)
    if ledger.finished is not None and ledger.finished.report != digest_bytes(content):
        done.findings.append(
            Finding(
                f"{rundir.journal_path}: the fact finished",
                digest_bytes(content),
                ledger.finished.report,
            )
        )
    texts = {
        rundir.report_json_path: content,
        rundir.report_md_path: report_text(document).encode(),
        rundir.report_html_path: page.encode(),
    }
    for path, wanted in texts.items():
        try:
            found = path.read_bytes()
        except OSError as error:
            done.findings.append(Finding(str(path), "the report", error.strerror or str(error)))
            continue
        if found != wanted and path == rundir.report_json_path:
            done.findings += report_findings(path, document, found)
        elif found != wanted:
            done.findings.append(Finding(str(path), digest_bytes(wanted), digest_bytes(found)))
    done.findings += row_findings(rundir, [attempt_document(row) for row in again.run.attempts])
    return again


def report_findings(path: Path, wanted: Document, content: bytes) -> list[Finding]:
    """Return a finding for every value of report.json that differs."""
    try:
        found = cast("JsonValue", json.loads(content))
    except ValueError:
        return [Finding(str(path), "the report as JSON", f"{len(content)} bytes of something else")]
    differing = list(differences(wanted, found, "$"))
    if not differing:
        return [Finding(str(path), "the report's own byte form", "another layout of equal values")]
    return [
        Finding(f"{path}: {place}", _shown(left), _shown(right))
        for place, left, right in differing[:_MOST_DIFFERENCES]
    ]


def row_findings(rundir: RunDir, rows: list[dict[str, Json]]) -> Iterator[Finding]:
    """Yield a finding for every row of results.jsonl that is missing, doubled or different."""
    path = rundir.results_path
    wanted = {str(row["execution"]): canonical_bytes(row) for row in rows}
    content = path.read_bytes() if path.exists() else b""
    seen: set[str] = set()
    for number, row in enumerate(json_lines(content), start=1):
        name = str(row.get("execution"))
        expected = wanted.get(name)
        if expected is None or name in seen:
            yield Finding(f"{path}:{number}", "one row per execution", f"a further row for {name}")
        elif canonical_bytes(row) != expected:
            yield Finding(f"{path}:{number}", expected.decode(), canonical_bytes(row).decode())
        seen.add(name)
    for name in wanted.keys() - seen:
        yield Finding(str(path), f"a row for {name}", "none")


def finding_of(error: XgentError) -> Finding:
    """Return an error as a finding."""
    return Finding(error.where, error.expected or error.message, error.found or error.code)


def count_values(document: JsonValue) -> int:
    """Return how many values a document holds that are no objects or lists."""
    match document:
        case dict():
            return sum(map(count_values, document.values()))
        case list():
            return sum(map(count_values, document))
        case _:
            return 1


def _shown(value: JsonValue) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 200 else f"{text[:199]}…"
