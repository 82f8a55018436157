"""`xgent-evolve resume`: go on with a run, from wherever it stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json
from xgent_evolve.cli.run import OnInterrupt, OnInterruptOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xgent_evolve.execution.reconcile import Row


def resume(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what is true of every execution, and why.")
    ] = False,
    on_interrupt: OnInterruptOption = OnInterrupt.DETACH,
    as_json: JsonFlag = False,
) -> None:
    """Adopt what is running, capture what has ended, submit what was never submitted.

    Only the frozen protocol, bytes and receipts are used. Nothing is paid for twice; an execution
    whose truth cannot be established stops the run with exit status 3.
    """
    from xgent_evolve.api import study
    from xgent_evolve.cli.progress import progress
    from xgent_evolve.cli.run import say_outcome

    if dry_run:
        say_rows(study.plan_resume(run), as_json=as_json)
        return
    with progress(as_json=as_json) as observer:
        outcome = study.resume(run, observer=observer, on_interrupt=on_interrupt.value)
    say_outcome(outcome, as_json=as_json)


def say_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print what is true of every registered execution."""
    if as_json:
        say_json(
            {
                "type": "reconciliation",
                "executions": [
                    {
                        "execution": row.intent.uuid,
                        "slot": row.intent.slot,
                        "attempt": row.intent.attempt,
                        "outcome": row.outcome,
                        "known": row.known,
                        "host_state": row.host_state,
                        "reason": row.reason,
                    }
                    for row in rows
                ],
            }
        )
        return
    for row in rows:
        say(f"{row.outcome:<14}{row.intent.slot} #{row.intent.attempt}  {row.intent.uuid}")
        say(f"{'':<14}here {row.known}, there {row.host_state}: {row.reason}")
    say(f"{len(rows)} registered executions; nothing was changed")
