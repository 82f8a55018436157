"""`xgent-evolve apply`: adopt a confirmed candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.output import JsonFlag


def apply(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    repo: Annotated[Path, typer.Option(help="Repository that the candidate is for.")],
    as_json: JsonFlag = False,  # noqa: ARG001 - a refusal is rendered by main
) -> None:
    """Write a confirmed candidate into a repository, all files or none.

    What is not confirmed on held-out cases is refused with exit status 3, and nothing is changed.
    """
    from xgent_evolve.api import adoption

    adoption.apply(run, repo)
