"""Close a gap by a person's explicit, recorded decision (invariant V5).

A gap is an execution whose truth the receipts do not tell. Only a person can know more, for example
that the host was reinstalled. The execution then counts as an infrastructure failure: it stays in
the journal and in results.jsonl as spent and without a result, and a further attempt may follow.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from xgent_evolve.api.session import Session, open_rundir, open_session
from xgent_evolve.api.status import write_state
from xgent_evolve.errors import InvalidError
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.facts import Intent, Resolved, fact_document
from xgent_evolve.harbor.artifacts import Artifacts, Failure


def resolve(rundir_path: Path, execution: str, reason: str) -> Intent:
    """Record that an unexplained execution counts as lost; return what it was.

    Raises:
        InvalidError: E_RESOLVE: it is no open gap of this run, or the reason is empty.
        RefusedError, StoreError: as for `resume`.

    """
    rundir, protocol = open_rundir(rundir_path)
    with open_session(rundir, protocol, Silent(), {}) as session:
        gap = next((gap for gap in session.ledger.open_gaps() if gap.uuid == execution), None)
        if gap is None or not reason.strip():
            raise InvalidError(
                "there is no such gap to close" if gap is None else "a decision needs a reason",
                code="E_RESOLVE",
                where=f"{rundir.path}: execution {execution}",
                expected="an open gap: " + ", ".join(_open(session)) if gap is None else "a text",
                found=execution if gap is None else "nothing",
                fix=f"xgent-evolve status --run {rundir.path} lists the gaps",
            )
        intent = session.ledger.intents[execution]
        asyncio.run(_record(session, intent, f"{reason.strip()} (gap: {gap.reason})"))
        write_state(rundir, session.ledger)
    return intent


def _open(session: Session) -> list[str]:
    return [gap.uuid for gap in session.ledger.open_gaps()] or ["none"]


async def _record(session: Session, intent: Intent, reason: str) -> None:
    artifacts = Artifacts(
        uuid=intent.uuid,
        slot=intent.slot,
        attempt=intent.attempt,
        kind=intent.kind,
        failure=Failure(stage="resolved", cause="lost", detail=reason),
    )
    digest = await session.executor.keep(artifacts)
    fact = Resolved(uuid=intent.uuid, reason=reason, artifacts=digest)
    await session.journal.append_soon(fact_document(fact))
    session.ledger.apply(fact)
