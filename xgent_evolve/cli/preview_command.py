"""What `xgent-evolve validate` does, whoever read its command line."""

from __future__ import annotations

import sys
from pathlib import Path

from xgent_evolve.cli.output import say, say_json, wants_colour
from xgent_evolve.cli.preview import preview
from xgent_evolve.cli.preview_text import preview_document, preview_text
from xgent_evolve.freeze.advice import require_no_warnings
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.memory import MemoryBlobs


def show_study(spec: str | Path, *, diff: bool, strict: bool, as_json: bool) -> None:
    """Check the JobSpec at `spec` and print what it would do; nothing is written.

    Raises:
        XgentError: why the study could not be run as written.

    """
    loaded, blobs = load_spec(Path(spec)), MemoryBlobs()
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
