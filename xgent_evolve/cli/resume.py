"""`xgent-evolve resume`: go on with a run, from wherever it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.output import JsonFlag


def resume(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    as_json: JsonFlag = False,
) -> None:
    """Adopt what is running, capture what has ended, submit what was never submitted.

    Only the frozen protocol, bytes and receipts are used. Nothing is paid for twice; an execution
    whose truth cannot be established stops the run with exit status 3.
    """
    from xgent_evolve.api import study
    from xgent_evolve.cli.progress import progress
    from xgent_evolve.cli.run import say_outcome

    with progress(as_json=as_json) as observer:
        outcome = study.resume(run, observer=observer)
    say_outcome(outcome, as_json=as_json)
