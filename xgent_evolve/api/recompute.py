"""A finished run, computed again from its directory: what reports and exports are made from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.evidence import evidence_of
from xgent_evolve.api.replay import replay
from xgent_evolve.api.session import open_rundir, read_ledger, require_finished
from xgent_evolve.engine.run import Run
from xgent_evolve.freeze.code import require_code
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.report.document import Document
from xgent_evolve.report.evidence import AttemptEvidence
from xgent_evolve.report.html import report_html
from xgent_evolve.report.model import json_bytes
from xgent_evolve.report.text import report_text, summary_lines
from xgent_evolve.store.rundir import RunDir


@dataclass(frozen=True, slots=True)
class RunReport:
    """The report of a finished run, computed from its recorded facts and never read from a file."""

    rundir: RunDir
    protocol: Protocol
    document: Document
    """The content of report.json."""
    study: Run
    """Every attempt; it cannot reach a host."""

    def evidence(self) -> list[AttemptEvidence]:
        """Return what every attempt left."""
        return evidence_of(self.study)

    def json(self) -> str:
        """Return the text of report.json."""
        return json_bytes(self.document).decode()

    def markdown(self) -> str:
        """Return the text of report.md."""
        return report_text(self.document)

    def html(self) -> str:
        """Return the text of report.html, with transcripts and patches."""
        return report_html(self.document, self.evidence())

    def summary(self) -> str:
        """Return what `run` says at its end, at most ten lines."""
        return "\n".join(summary_lines(self.document)) + "\n"


def compute_report(run: Path) -> RunReport:
    """Compute the report of a finished run again; nothing is locked, written or connected to.

    Raises:
        RefusedError: E_NOT_A_RUN; E_RUN_UNFINISHED: there is no result yet; E_RUN_CODE: another
            version made the run, so this one cannot compute the same numbers.
        StoreError: recorded facts or bytes are missing or damaged.

    """
    rundir, protocol = open_rundir(run)
    ledger = read_ledger(rundir, protocol)
    require_code(protocol.code)
    require_finished(ledger.finished, rundir)
    again = replay(protocol, rundir, ledger)
    return RunReport(rundir, protocol, again.document, again.run)
