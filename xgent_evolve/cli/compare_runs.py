"""`xgent-evolve compare-runs`: two finished runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


def compare_runs(
    first: Annotated[Path, typer.Argument(help="Directory of a run.")],
    second: Annotated[Path, typer.Argument(help="Directory of another run.")],
    *,
    as_json: JsonFlag = False,
) -> None:
    """Show two finished runs side by side: what was frozen differently, and what each found.

    Where both measured the same tasks under one condition, the difference is shown case by case. It
    is never decided on: two runs are two occasions. (Mode compare of a JobSpec decides, within one
    run.)
    """
    from xgent_evolve.api.run_comparison import compare_runs as put_side_by_side
    from xgent_evolve.report.run_comparison import comparison_lines

    document = put_side_by_side(first, second)
    if as_json:
        say_json(document)
    else:
        say("\n".join(comparison_lines(document)))
