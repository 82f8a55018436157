"""`xgent-evolve validate`: check a JobSpec and show what it would do, without doing any of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag


def validate(
    *,
    spec: Annotated[Path, typer.Option(help="The JobSpec to check.")],
    diff: Annotated[bool, typer.Option("--diff", help="Show the difference of texts.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Take warnings as errors.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check a JobSpec and show what it would do.

    Shows the effective configuration, the files that may leave this machine, the files that
    apply may write, the real difference of every condition from the baseline, how many
    executions there can be at most, and warnings about text that the agent would not get.
    Reaches no host, calls no model and writes no file.
    """
    from xgent_evolve.cli.preview_command import show_study

    show_study(spec, diff=diff, strict=strict, as_json=as_json)
