"""`xgent-evolve validate`: check a JobSpec and show what it would do, without doing any of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.output import JsonFlag, say, say_json, wants_colour


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
    from xgent_evolve.cli.preview import preview
    from xgent_evolve.cli.preview_text import preview_document, preview_text
    from xgent_evolve.freeze.advice import require_no_warnings
    from xgent_evolve.freeze.build import build_protocol
    from xgent_evolve.spec.load import load_spec
    from xgent_evolve.store.memory import MemoryBlobs

    loaded, blobs = load_spec(spec), MemoryBlobs()
    facts = preview(loaded, build_protocol(loaded, blobs), blobs)
    if strict:
        require_no_warnings(facts.warnings)
    if as_json:
        say_json(preview_document(loaded, facts, blobs if diff else None))
        return
    text = preview_text(loaded, facts, blobs if diff else None)
    if wants_colour(sys.stdout):
        from xgent_evolve.cli.preview_screen import show_preview

        show_preview(text, facts, sys.stdout)
    else:
        say(text)
