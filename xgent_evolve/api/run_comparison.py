"""Compare two finished runs: their frozen inputs, what each found, what they share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from xgent_evolve.api.recompute import compute_report
from xgent_evolve.api.session import last_finished, open_rundir, require_finished
from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import DriftError, StoreError
from xgent_evolve.freeze.code import require_code
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.report.document import Document
from xgent_evolve.report.run_comparison import FinishedRun, compared_runs
from xgent_evolve.store.rundir import RunDir


def compare_runs(first: Path, second: Path) -> Document:
    """Return two finished runs side by side; nothing is locked, written or connected to.

    Each report is computed again from its evidence where this version made the run; otherwise the
    report that its journal names is read, and the document says so.

    Raises:
        RefusedError: E_NOT_A_RUN, E_RUN_UNFINISHED.
        StoreError: recorded facts or bytes are missing or damaged.

    """
    return compared_runs(_finished(first), _finished(second))


def _finished(path: Path) -> FinishedRun:
    rundir, protocol = open_rundir(path)
    try:
        require_code(protocol.code)
    except DriftError:
        report = _recorded_report(rundir, protocol)
        return FinishedRun(str(path), frozen_inputs(protocol), report, "recorded")
    report = compute_report(path).document
    return FinishedRun(str(path), frozen_inputs(protocol), report, "computed")


def frozen_inputs(protocol: Protocol) -> Document:
    """Return everything frozen, with cases and conditions by name: what may differ between runs."""
    document = cast("Document", protocol.document())
    spec = cast("Document", document.pop("spec"))
    declared = {
        kind: {str(item["id"]): item for item in cast("list[Document]", spec.pop(kind))}
        for kind in ("cases", "conditions")
    }
    frozen = {
        kind: {str(item["id"]): item for item in cast("list[Document]", document.pop(kind))}
        for kind in ("cases", "conditions")
    }
    return {
        **document,
        "spec": spec,
        **{
            kind: {
                name: {"declared": declared[kind][name], "frozen": item}
                for name, item in frozen[kind].items()
            }
            for kind in frozen
        },
    }


def _recorded_report(rundir: RunDir, protocol: Protocol) -> Document:
    finished = require_finished(last_finished(rundir, protocol), rundir)
    try:
        content = rundir.report_json_path.read_bytes()
    except OSError:
        content = b""
    if digest_bytes(content) != finished.report:
        raise StoreError(
            "report.json is not the one that the journal names",
            code="E_STORE_CORRUPT",
            where=str(rundir.report_json_path),
            expected=finished.report,
            found=digest_bytes(content),
            fix="restore it from a copy, or use the version of xgent-evolve that made the run",
        )
    return cast("Document", json.loads(content))
