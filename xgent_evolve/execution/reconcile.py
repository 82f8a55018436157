"""What is true of every registered execution after a crash, with the reason (requirement D3).

The host is asked about all of them at once. `classify` is pure: the same journal and the same
answer always give the same row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.execution.facts import Intent, Ledger
from xgent_evolve.remote.host import Host, Observation

type Outcome = Literal[
    "finished", "resolved", "captured", "never_started", "running", "ended", "exported", "gap"
]
"""finished: captured and cleaned. resolved: a gap that a person closed. captured: only cleanup is
left. never_started: may start under the same identity. running: adopt. ended: export it. exported:
capture it. gap: its truth cannot be established."""

_NOT_STARTED = {"accepted", "created", "staged", "cancel_requested"}
_STARTED = {"start_intent", "started"}
_ENDED = {"exited", "credential_destroyed"}
_EXPORTED = {"exported", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class Row:
    """One execution and what is true of it."""

    intent: Intent
    outcome: Outcome
    known: str
    """The last fact of the journal: registered, accepted, captured or cleaned."""
    host_state: str
    """The last receipt on the host; `-` when the host was not asked."""
    reason: str
    """Why this outcome, in one sentence."""


def open_executions(ledger: Ledger) -> list[Intent]:
    """Return the registered executions whose bytes are not stored yet, oldest first."""
    return [intent for uuid, intent in ledger.intents.items() if uuid not in ledger.captured]


async def reconcile(host: Host, ledger: Ledger) -> list[Row]:
    """Return a row for every registered execution; the host is asked once, if at all."""
    asked = open_executions(ledger)
    found = await host.observe({intent.uuid: 0 for intent in asked}, 0) if asked else {}
    return [classify(intent, ledger, found.get(uuid)) for uuid, intent in ledger.intents.items()]


def classify(intent: Intent, ledger: Ledger, found: Observation | None) -> Row:
    """Return what is true of one execution. Pure."""
    uuid = intent.uuid
    if uuid in ledger.resolved:
        reason = f"a person closed the gap: {ledger.resolved[uuid].reason}"
        return Row(intent, "resolved", "gap", "-", reason)
    if uuid in ledger.gaps:
        return Row(intent, "gap", "gap", "-", ledger.gaps[uuid].reason)
    if uuid in ledger.cleaned:
        return Row(intent, "finished", "cleaned", "-", "every byte is stored, the host is clean")
    if uuid in ledger.captured:
        return Row(intent, "captured", "captured", "-", "every byte is stored; cleanup is left")
    known = "accepted" if uuid in ledger.accepted else "registered"
    if found is None:
        return Row(intent, "gap", known, "-", "the host said nothing about it")
    outcome, reason = _by_host(found, accepted=uuid in ledger.accepted)
    return Row(intent, outcome, known, found.state, reason)


def _by_host(found: Observation, *, accepted: bool) -> tuple[Outcome, str]:
    match found.state:
        case "absent" if accepted:
            return "gap", "the host accepted it and does not know it any more"
        case "absent":
            return "never_started", "it never reached the host"
        case "damaged":
            return "gap", f"its receipts on the host are damaged: {found.detail}"
        case "gap":
            return "gap", str(found.receipts[-1].get("reason", "the host found a gap"))
        case "cleaned":
            return "gap", "the host cleaned it before it was captured"
        case state if state in _NOT_STARTED:
            return "never_started", "the host has it, and no start intent"
        case state if state in _STARTED:
            driven = "driven" if found.driven else "to be driven again"
            return "running", f"a start intent is on record; it is {driven}"
        case state if state in _ENDED:
            return "ended", "its end is on record; what it left is still to be exported"
        case state if state in _EXPORTED:
            return "exported", "its result lies on the host"
        case state:
            return "gap", f"the host's receipt {state!r} is not understood"


def gaps_of(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that stop a run."""
    return [row for row in rows if row.outcome == "gap"]
