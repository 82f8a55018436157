"""`xgent-evolve verify`: compute a finished run again and compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from xgent_evolve.api.verification import Verification


def verify(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    as_json: JsonFlag = False,
) -> None:
    """Compute every number of a finished run again from its receipts, and name any difference.

    No host, no model, no lock, nothing written. Exit status 3 when something differs.
    """
    from xgent_evolve.api.verification import verify as compute_again
    from xgent_evolve.errors import StoreError

    done = compute_again(run)
    if as_json:
        say_json(document_of(run, done))
    if done.findings:
        first = done.findings[0]
        if as_json:
            raise typer.Exit(StoreError.exit_code)
        say("\n".join(finding_lines(done)))
        raise StoreError(
            f"{len(done.findings)} of the run's statements do not follow from its evidence",
            code="E_VERIFY",
            where=first.where,
            expected=first.expected,
            found=first.found,
            fix="restore the run directory from a copy; do not rely on this report",
        )
    if not as_json:
        say("\n".join(summary_lines(done)))


def summary_lines(done: Verification) -> list[str]:
    """Return what was checked."""
    return [
        "verified: every number follows from the recorded evidence",
        f"  {done.executions} executions registered, captured and cleaned",
        f"  {done.blobs} stored files with their hash, {done.bytes:,} bytes",
        f"  {done.numbers} values of report.json, report.md and report.html, results.jsonl",
    ]


def finding_lines(done: Verification) -> list[str]:
    """Return every finding in three lines."""
    return [
        line
        for finding in done.findings
        for line in (
            finding.where,
            f"  expected  {finding.expected}",
            f"  found     {finding.found}",
        )
    ]


def document_of(run: Path, done: Verification) -> dict[str, object]:
    """Return the JSON form."""
    return {
        "type": "verification",
        "run": str(run),
        "verified": not done.findings,
        "executions": done.executions,
        "blobs": done.blobs,
        "bytes": done.bytes,
        "values": done.numbers,
        "findings": [
            {"where": item.where, "expected": item.expected, "found": item.found}
            for item in done.findings
        ],
    }
