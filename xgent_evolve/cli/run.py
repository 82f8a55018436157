"""`xgent-evolve run`: freeze a study and carry it out."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json, tell

if TYPE_CHECKING:
    from xgent_evolve.api.study import StudyOutcome


class OnInterrupt(StrEnum):
    """What the first Ctrl-C does; the second always leaves at once."""

    DETACH = "detach"
    DRAIN = "drain"


OnInterruptOption = Annotated[
    OnInterrupt,
    typer.Option(
        help="First Ctrl-C: leave at once while executions go on on the host (detach), or begin"
        " nothing new and wait for what is under way (drain). A second one leaves at once."
    ),
]
"""Declare it as `on_interrupt: OnInterruptOption = OnInterrupt.DETACH`."""


def run(
    *,
    spec: Annotated[Path, typer.Option(help="The JobSpec.")],
    output: Annotated[Path, typer.Option(help="Directory of the run; it must not exist.")],
    on_interrupt: OnInterruptOption = OnInterrupt.DETACH,
    as_json: JsonFlag = False,
) -> None:
    """Freeze every input by hash, then carry the study out on its host."""
    from xgent_evolve.api import study
    from xgent_evolve.cli.progress import progress

    if not as_json:
        tell(f"from another terminal: xgent-evolve watch --run {output}")
    with progress(as_json=as_json) as observer:
        outcome = study.run(spec, output, observer=observer, on_interrupt=on_interrupt.value)
    say_outcome(outcome, as_json=as_json)


def say_outcome(outcome: StudyOutcome, *, as_json: bool) -> None:
    """Print what a study found and where its report is."""
    from xgent_evolve.report.text import summary_lines

    report = outcome.rundir / "report.md"
    if as_json:
        say_json({"type": "result", "report": outcome.document, "run": str(outcome.rundir)})
    else:
        say("\n".join([*summary_lines(outcome.document), f"report      {report}"]))
