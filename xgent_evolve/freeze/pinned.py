"""A public task's files against the objects of the commit that the study pins (B13)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from xgent_evolve.canonical import digest_bytes, digest_pieces, path_bytes
from xgent_evolve.errors import DriftError, InvalidError
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.reading import Taken
from xgent_evolve.ids import Digest
from xgent_evolve.spec.cases import PublicSource
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered


class _State(NamedTuple):
    mode: int
    size: int
    digest: Digest


def require_pinned(
    loaded: LoadedSpec, number: int, root: Path, listed: list[str], found: Mapping[str, Taken]
) -> None:
    """Compare the listed files of a public case with its commit: bytes, mode, kind, none missing.

    `root` is the task directory; `listed` and the keys of `found` are relative to it.

    Raises:
        DriftError: E_FREEZE_PUBLIC: a file differs, or only one side has it.
        InvalidError: the checkout, the commit or the directory in it is not there.

    """
    source = loaded.spec.cases[number].source
    if not isinstance(source, PublicSource):
        raise TypeError(f"case {number} is not public")
    repository = Repository.open(
        loaded.resolve(source.repo), place(loaded, "cases", number, "source", "repo")
    )
    repository.require_commit(source.commit, place(loaded, "cases", number, "source", "commit"))
    start = _prefix(loaded, number, root, repository)
    expected = _committed(repository, source.commit, start, listed)
    for path in sorted(found.keys() | expected.keys()):
        present = _state(found[path]) if path in found else None
        if present != expected.get(path):
            raise DriftError(
                "a file of the public task differs from the pinned commit",
                code="E_FREEZE_PUBLIC",
                where=f"{root}/{path}",
                expected=f"{_described(expected.get(path))}, as in commit {source.commit[:12]}",
                found=_described(present),
                fix="restore it: git -c core.autocrlf=false checkout <commit> -- <file>",
            )


def _prefix(loaded: LoadedSpec, number: int, root: Path, repository: Repository) -> str:
    """Return the task directory's path in the checkout, with a slash, or nothing for its top."""
    try:
        prefix = root.resolve().relative_to(repository.root).as_posix()
    except ValueError:
        raise InvalidError(
            "the task directory is not in the public checkout",
            code="E_SPEC_PATH",
            where=place(loaded, "cases", number, "task_path"),
            expected=f"a directory below {repository.root}",
            found=str(root),
            fix="correct task_path or source.repo",
        ) from None
    return "" if prefix == "." else f"{spec_path(prefix)}/"


def _committed(
    repository: Repository, commit: str, start: str, listed: list[str]
) -> dict[str, _State]:
    wanted = [f"{start}{path}" for path in listed]
    entries = [
        entry
        for entry in repository.commit_entries(commit)
        if entry.kind == "blob" and covered(entry.path, wanted)
    ]
    blobs = repository.blobs(entry.object_id for entry in entries)
    return {
        entry.path.removeprefix(start): _State(entry.mode, blob.size, digest_pieces(blob.pieces()))
        for entry, blob in zip(entries, blobs, strict=True)
    }


def _state(item: Taken) -> _State:
    if item.kind == "link":
        target = path_bytes(item.target)
        return _State(0o120000, len(target), digest_bytes(target))
    return _State(0o100755 if item.executable else 0o100644, item.size, item.blob)


def _described(state: _State | None) -> str:
    if state is None:
        return "no file"
    return f"mode {state.mode:o}, {state.size} bytes, {state.digest[:19]}"
