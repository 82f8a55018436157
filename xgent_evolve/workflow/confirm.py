"""Confirm: fresh executions on cases that selected nothing, once, for the best candidate (G2).

Opening the confirmation is a fact of the run. From then on its cases have been shown, and nothing
is selected on them: the search before has come to its end, and no other candidate is let in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.canonical import digest_json
from xgent_evolve.engine.run import Run, Trial
from xgent_evolve.errors import StoreError
from xgent_evolve.execution.facts import ConfirmationOpened
from xgent_evolve.ids import Digest
from xgent_evolve.measure.compare import compare
from xgent_evolve.measure.comparison import Comparison, Decision
from xgent_evolve.spec.cases import Case

type ConfirmationStatus = Literal["not_run", "passed", "failed", "inconclusive"]

_STATUS: dict[Decision, ConfirmationStatus] = {
    "keep": "passed",
    "discard": "failed",
    "inconclusive": "inconclusive",
    "invalid": "inconclusive",
}


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the confirmation came to."""

    status: ConfirmationStatus
    candidate: str | None = None
    """The condition that was confirmed, or was not."""
    content: Digest | None = None
    """Digest of what it shows."""
    comparison: Comparison | None = None
    """Candidate against baseline on the confirmation cases."""
    reason: str = ""
    """Why it was not run."""
    exposed: int = 0
    """How many of its cases another run had shown before."""


def confirmation_cases(run: Run) -> list[Case]:
    """Return the cases that are opened once."""
    return [case for case in run.protocol.spec.cases if case.split == "confirmation"]


async def confirm(run: Run, candidate: str) -> Confirmation:
    """Measure baseline and candidate anew on the confirmation cases, and compare them.

    Raises:
        StoreError: E_CONFIRMATION_OPENED: this run has opened them for another candidate.

    """
    spec = run.protocol.spec
    content = run.condition(candidate).content
    opened = await open_confirmation(run, candidate, content)
    cases = confirmation_cases(run)
    rows = await run.trials(
        [
            Trial(condition, case.id, repeat, "confirm")
            for repeat in range(1, spec.measurement.repeats + 1)
            for case in cases
            for condition in (spec.baseline_condition, candidate)
        ]
    )
    comparison = compare(
        rows,
        baseline=spec.baseline_condition,
        candidate=candidate,
        measurement=spec.measurement,
        guardrails=spec.guardrails,
    )
    status = confirmation_status(comparison)
    return Confirmation(status, candidate, content, comparison, exposed=opened.exposed)


def confirmation_status(comparison: Comparison) -> ConfirmationStatus:
    """Return what a comparison on the confirmation cases means. Pure."""
    return _STATUS[comparison.verdict.decision]


async def open_confirmation(run: Run, candidate: str, content: Digest) -> ConfirmationOpened:
    """Record that the confirmation cases are shown for this candidate, before any is."""
    opened, keys = run.ledger.confirmation, case_keys(run)
    if opened is None:
        exposed = await asyncio.to_thread(run.exposures.count, keys, run.rundir.run_id)
        opened = ConfirmationOpened(candidate=candidate, content=content, exposed=exposed)
        await run.record(opened)
    elif opened.content != content:
        raise StoreError(
            "the confirmation cases have been shown for another candidate",
            code="E_CONFIRMATION_OPENED",
            where=f"candidate {candidate}",
            expected=f"{opened.candidate}, {opened.content}",
            found=content,
            fix="they select nobody any more: start another run with confirmation cases that no"
            " search has seen",
        )
    if not run.replay_only:
        await asyncio.to_thread(run.exposures.keep, keys, run.rundir.run_id)
    return opened


def case_keys(run: Run) -> list[Digest]:
    """Return the digest of each confirmation case, whatever its name."""
    return [
        digest_json(run.protocol.case(case.id).document(without=("id",)))
        for case in confirmation_cases(run)
    ]


def not_run(reason: str) -> Confirmation:
    """Return a confirmation that was not opened."""
    return Confirmation("not_run", reason=reason)
