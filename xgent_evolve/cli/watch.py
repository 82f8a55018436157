"""`xgent-evolve watch`: follow a run from another terminal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json
from xgent_evolve.cli.status import status_lines


def watch(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    interval_s: Annotated[
        float, typer.Option("--interval", min=0.2, help="Seconds between two looks.")
    ] = 2.0,
    as_json: JsonFlag = False,
) -> None:
    """Print the status whenever it changes, until no controller is at work any more."""
    from xgent_evolve.api.status import status as read_status

    shown: object = None
    while True:
        found = read_status(run)
        if found.document() != shown:
            shown = found.document()
            if as_json:
                say_json(found.document())
            else:
                say("\n".join(status_lines(found)) + "\n")
        if found.stage != "running":
            return
        time.sleep(interval_s)
