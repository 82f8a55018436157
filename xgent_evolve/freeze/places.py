"""Where in the JobSpec something was asked for."""

from __future__ import annotations

from xgent_evolve.canonical import path_text
from xgent_evolve.spec.faults import where
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.scan import scan


def place(loaded: LoadedSpec, *path: str | int) -> str:
    """Return `file:line:column: $.json.path` of a value; only errors need it."""
    document = scan(loaded.content.decode("utf-8", "replace"))
    return where(str(loaded.path), document.position(path), path)


def spec_path(text: str) -> str:
    """Return the text form of a path as a JobSpec writes it, where `%` has no meaning."""
    return path_text(text.encode("utf-8", "surrogatepass"))
