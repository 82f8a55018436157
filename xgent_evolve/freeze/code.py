"""The parts of this package that decide a score, by hash, and the scripts that are shipped.

A run that is resumed, replayed or applied must meet the code that it was frozen with; a changed
part is named (requirement C2).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from xgent_evolve.canonical import Json, digest_bytes, digest_json
from xgent_evolve.errors import DriftError
from xgent_evolve.ids import Digest

PARTS = (
    "api",
    "canonical.py",
    "engine",
    "execution",
    "harbor",
    "measure",
    "payload",
    "redact.py",
    "report",
    "search",
    "strategies",
    "workflow",
)
"""Subpackages, and modules of the top level, whose source is frozen by hash."""

_PACKAGE = "xgent_evolve"


def code_digests() -> dict[str, Digest]:
    """Return one digest for each part, over the sorted paths and contents of its files."""
    return {part: _digest(part) for part in PARTS}


def payload_files() -> dict[str, bytes]:
    """Return the files that are shipped to a host, by path below the payload part."""
    return {path: content for path, content in _files("payload") if path != "__init__.py"}


def require_code(frozen: dict[str, Digest]) -> None:
    """Refuse to go on with other code than `frozen` says.

    Raises:
        DriftError: E_RUN_CODE naming every part that differs.

    """
    present = code_digests()
    changed = sorted(
        part for part in frozen.keys() | present.keys() if frozen.get(part) != present.get(part)
    )
    if changed:
        raise DriftError(
            f"the code of this run has changed: {', '.join(changed)}",
            code="E_RUN_CODE",
            where=", ".join(f"{_PACKAGE}/{part}" for part in changed),
            expected=", ".join(f"{part} {frozen.get(part)}" for part in changed),
            found=", ".join(f"{part} {present.get(part)}" for part in changed),
            fix="use the version of xgent-evolve that made the run, or start a new run",
        )


def _digest(part: str) -> Digest:
    listing: list[Json] = [[path, digest_bytes(content)] for path, content in _files(part)]
    return digest_json({"type": "xgent-evolve/code/1", "part": part, "files": listing})


def _files(part: str) -> Iterator[tuple[str, bytes]]:
    place = Path(__file__).parents[1] / part
    if place.is_file():
        yield part, place.read_bytes()
    else:
        yield from sorted(_walk(place, ""))


def _walk(directory: Path, prefix: str) -> Iterator[tuple[str, bytes]]:
    for item in directory.iterdir():
        if item.is_dir():
            if item.name != "__pycache__":
                yield from _walk(item, f"{prefix}{item.name}/")
        elif not item.name.endswith((".pyc", ".pyo")) and not item.name.startswith("."):
            yield f"{prefix}{item.name}", item.read_bytes()
