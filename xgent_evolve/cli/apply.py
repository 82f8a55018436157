"""`xgent-evolve apply`: adopt a confirmed candidate, or an authorised correction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json, tell

if TYPE_CHECKING:
    from xgent_evolve.api.adoption import Adoption


def apply(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run, or of a correction.")],
    repo: Annotated[Path, typer.Option(help="Repository that it is for.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the diff, write nothing.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a confirmed candidate or a correction into a repository, all files or none.

    What is not confirmed on held-out cases is refused with exit status 3, and nothing is changed.
    Nothing is committed.
    """
    from xgent_evolve.api import adoption

    done = adoption.apply(run, repo, dry_run=dry_run)
    if as_json:
        say_json(document_of(done))
        return
    for warning in done.warnings:
        tell(warning)
    if dry_run:
        say(done.diff if done.changed else "nothing to do: the repository has this text already")
        return
    say("\n".join([headline(done), *(f"  {path}" for path in done.changed)]))


def headline(done: Adoption) -> str:
    """Return what was done, in one line."""
    if not done.changed:
        return "nothing to do: the repository has this text already"
    noun = "file" if len(done.changed) == 1 else "files"
    return f"changed {len(done.changed)} {noun} ({done.status}); look with git diff, then commit"


def document_of(done: Adoption) -> dict[str, object]:
    """Return the JSON form."""
    return {
        "type": "adoption",
        "changed": list(done.changed),
        "warnings": list(done.warnings),
        "diff": done.diff,
        "status": done.status,
        "written": done.written,
    }
