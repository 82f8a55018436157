"""`xgent-evolve cancel`: end a run and everything under way for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


def cancel(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    as_json: JsonFlag = False,
) -> None:
    """Stop the controller, end every execution under way, and store what they left.

    Safe to repeat. A cancelled run keeps its evidence and is not resumed.
    """
    from xgent_evolve.api.cancel import cancel as end_run
    from xgent_evolve.cli.progress import progress

    with progress(as_json=as_json) as observer:
        done = end_run(run, observer=observer)
    if as_json:
        say_json({"type": "cancelled", "ended": done.ended, "already": done.already})
    elif done.already:
        say("nothing was under way any more")
    else:
        say(f"cancelled; {done.ended} executions were under way and have ended")
