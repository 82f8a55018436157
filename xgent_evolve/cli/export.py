"""`xgent-evolve export`: a finished run in the layout of another tool."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


class ExportFormat(StrEnum):
    """Layout of the export."""

    HARBOR = "harbor"


def export(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    output: Annotated[Path, typer.Option(help="New directory to write.")],
    form: Annotated[
        ExportFormat, typer.Option("--format", help="harbor: jobs that `harbor view` opens.")
    ] = ExportFormat.HARBOR,
    as_json: JsonFlag = False,
) -> None:
    """Write a finished comparison as Harbor jobs, one for each condition, with trajectories.

    Computed from the evidence; the run directory is not changed and no host is reached.
    """
    from xgent_evolve.api.export import export_harbor

    done = export_harbor(run, output)
    if as_json:
        jobs = [{"job": name, "trials": count} for name, count in done.jobs.items()]
        document = {"type": "export", "run": str(run), "format": form.value}
        say_json({**document, "output": str(done.output), "jobs": jobs})
        return
    lines = [f"job         {name}: {count} trials" for name, count in done.jobs.items()]
    say("\n".join([*lines, f"look        harbor view {done.output}"]))
