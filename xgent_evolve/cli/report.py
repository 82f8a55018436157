"""`xgent-evolve report`: compute a finished run's report again and print or write it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


class ReportFormat(StrEnum):
    """Form of the report."""

    TEXT = "text"
    MD = "md"
    HTML = "html"
    JSON = "json"


def report(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            help="text: the last lines of run; md, html, json: the files of the run directory.",
        ),
    ] = ReportFormat.TEXT,
    output: Annotated[
        Path | None, typer.Option(help="New file to write; stdout when absent.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compute the report of a finished run again from its evidence.

    Nothing in the run directory is written, no host is reached. Exit status 3 when the run is not
    finished or was made by another version.
    """
    from xgent_evolve.api.recompute import compute_report
    from xgent_evolve.api.writing import write_new

    found = compute_report(run)
    if as_json and output is None:
        say_json({"type": "report", "run": str(run), "report": found.document})
        return
    text = {
        ReportFormat.TEXT: found.summary,
        ReportFormat.MD: found.markdown,
        ReportFormat.HTML: found.html,
        ReportFormat.JSON: found.json,
    }[form]()
    if output is None:
        say(text)
        return
    size = write_new(output, text)
    if as_json:
        document = {"type": "report", "run": str(run), "format": form.value}
        say_json({**document, "output": str(output), "bytes": size, "report": found.document})
    else:
        say(f"wrote {output}, {size:,} bytes")
