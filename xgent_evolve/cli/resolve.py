"""`xgent-evolve resolve`: close a gap by an explicit, recorded decision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


def resolve(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    execution: Annotated[str, typer.Option(help="UUID of the execution.")],
    reason: Annotated[str, typer.Option(help="What you know about it; it is recorded.")],
    as_json: JsonFlag = False,
) -> None:
    """Record that an execution whose truth is unknown counts as lost.

    It stays in the evidence as spent and without a result; `resume` may then try its slot again
    within budget.max_retries. Nothing on the host is touched.
    """
    from xgent_evolve.api.resolve import resolve as close_gap

    intent = close_gap(run, execution, reason)
    if as_json:
        say_json({"type": "resolved", "execution": execution, "slot": intent.slot})
    else:
        say(f"{intent.slot} #{intent.attempt} counts as lost")
        say(f"next        xgent-evolve resume --run {run}")
