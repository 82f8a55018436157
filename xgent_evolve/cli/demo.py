"""`xgent-evolve demo`: the main job on this machine, with a scripted model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say


def demo(
    *,
    directory: Annotated[
        Path, typer.Option(help="Where the demo lives; made when missing.")
    ] = Path("xgent-demo"),
    search: Annotated[
        bool, typer.Option("--search", help="Search for a better skill instead.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Compare a skill with its absence on ten small tasks, with real parts and no paid model.

    A loopback SSH server, the local container engine and Codex CLI are real; the model is a
    script that follows instructions. An interrupted demo is resumed by the same command. With
    --search a scripted optimizer proposes two changes of a skill; the one that helps is confirmed
    on tasks that nobody has seen.
    """
    from xgent_evolve.cli.progress import progress
    from xgent_evolve.cli.run import say_outcome
    from xgent_evolve.demo.search_study import REPOSITORY
    from xgent_evolve.demo.tour import show

    with progress(as_json=as_json) as observer:
        tour = show(directory, observer, search=search)
    say_outcome(tour.outcome, as_json=as_json)
    if not as_json:
        say(f"look        xgent-evolve validate --spec {tour.spec} --diff")
        if search:
            repo, made = tour.spec.parent / REPOSITORY, tour.outcome.rundir
            say(f"apply       xgent-evolve apply --run {made} --repo {repo} --dry-run")
