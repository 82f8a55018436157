"""A package of corrected facts: new text that nobody measured, and says so (requirement J3).

    PACKAGE/
      correction.json   what changes, from which bytes, on the word of which sources
      blobs/            the old text, the new text and the sources

It is no experiment: it is marked `unverified` for ever and confirms nothing. Whether it may be
written comes from the caller alone, never from text in a repository.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.adopt.plan import Change, FileState
from xgent_evolve.adopt.worktree import WorkTree
from xgent_evolve.canonical import canonical_bytes, digest_bytes
from xgent_evolve.errors import InvalidError, RefusedError, StoreError
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.places import spec_path
from xgent_evolve.ids import Digest
from xgent_evolve.spec.paths import unsafe_reason
from xgent_evolve.store.blobs import BlobStore
from xgent_evolve.store.durable import (
    make_directory_durable,
    rename_no_replace,
    store_errors,
    sync_directory,
    write_durable,
)

FILE = "correction.json"


class Source(BaseModel):
    """A file that shows that the new text is right."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    path: str
    """Where it lies: an absolute path."""
    content: Digest
    """Its bytes when the correction was frozen."""


class Correction(BaseModel):
    """Content of correction.json."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    type: Literal["xgent-evolve/correction/1"] = "xgent-evolve/correction/1"
    status: Literal["unverified"] = "unverified"
    """Nothing was measured."""
    confirmed_best: None = None
    """A correction confirms no candidate."""
    base_commit: str
    """The commit that the repository stood on."""
    changes: list[Change]
    """Old and new state of every file, by path."""
    sources: list[Source]
    """What the correction rests on."""
    authorized: bool
    """Whether the caller allowed it to be written."""


def freeze_correction(
    repo: Path,
    changes: Mapping[str, str],
    evidence_paths: Sequence[Path],
    output: Path,
    *,
    authorized: bool = False,
) -> Correction:
    """Freeze corrected text and its sources into the new directory `output`; write nothing else.

    `changes` maps the path of an existing file in the repository to its whole new text;
    `evidence_paths` are the files that show that it is right. Without `authorized`, which is the
    caller's word alone, `apply` refuses the package (requirement J3).

    Raises:
        InvalidError: E_CORRECTION: nothing is changed, a path is no regular file of the
            repository, or there is no source; E_OUTPUT_EXISTS; E_SPEC_REPO.
        StoreError: the file system refused.

    """
    repository = Repository.open(repo, "repo")
    base = repository.find_head()
    if base is None:
        raise _illegal("the repository has no commit", str(repo), "make a first commit")
    if not changes or not evidence_paths:
        missing = "changes" if not changes else "evidence_paths"
        raise _illegal(f"a correction needs {missing}", str(output), "name at least one file")
    if os.path.lexists(output):
        raise InvalidError(
            "the output directory exists",
            code="E_OUTPUT_EXISTS",
            where=str(output),
            expected="a new name",
            fix="choose another directory",
        )
    temporary = output.with_name(f".{output.name}.{os.urandom(4).hex()}.tmp")
    with store_errors(output):
        make_directory_durable(temporary)
        try:
            blobs = BlobStore(temporary / "blobs")
            correction = Correction(
                base_commit=base,
                changes=_freeze_changes(repository.root, changes, blobs),
                sources=[_freeze_source(path, blobs) for path in evidence_paths],
                authorized=authorized,
            )
            write_durable(temporary / FILE, _to_bytes(correction))
            rename_no_replace(temporary, output)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_directory(output.parent)
    return correction


def read_correction(package: Path) -> Correction:
    """Return a package's content.

    Raises:
        StoreError: E_STORE_CORRUPT: it is not canonical or not a correction.

    """
    path = package / FILE
    with store_errors(path):
        content = path.read_bytes()
    try:
        correction = Correction.model_validate(json.loads(content))
    except (ValueError, ValidationError) as error:
        raise _damaged(path, type(error).__name__) from error
    if _to_bytes(correction) != content:
        raise _damaged(path, "another byte form than the canonical one")
    return correction


def require_sources(correction: Correction) -> None:
    """Require that every source still says what it said.

    Raises:
        RefusedError: E_CORRECTION_SOURCE.

    """
    for source in correction.sources:
        try:
            found = digest_bytes(Path(source.path).read_bytes())
        except OSError as error:
            found = error.strerror or str(error)
        if found != source.content:
            raise RefusedError(
                "a source of the correction is no longer what it was",
                code="E_CORRECTION_SOURCE",
                where=source.path,
                expected=source.content,
                found=found,
                fix="nothing was changed; check the fact again and freeze another correction",
            )


def _freeze_changes(root: Path, changes: Mapping[str, str], blobs: BlobStore) -> list[Change]:
    frozen: list[Change] = []
    with WorkTree(root) as tree:
        for name in sorted(changes):
            path, text = _safe_path(name), changes[name].encode()
            now = tree.observe(path)
            if now.state is None or now.behind_link:
                found = "behind a link" if now.behind_link else now.kind
                raise _illegal(
                    f"a correction changes a regular file, and this is {found}",
                    f"{root}/{path}",
                    "name a file of the repository, relative to its top, not through a link",
                )
            before = tree.read(path)
            state = FileState(digest_bytes(before), executable=now.state.executable)
            after = FileState(digest_bytes(text), executable=now.state.executable)
            if state == after:
                raise _illegal(
                    "the new text is the old one", f"{root}/{path}", "leave this file out"
                )
            blobs.put_many([before, text])
            frozen.append(Change(path, state, after))
    return frozen


def _safe_path(name: str) -> str:
    reason = unsafe_reason(name)
    if reason is not None:
        raise _illegal(reason, repr(name), "name a file relative to the repository's top")
    return spec_path(name)


def _freeze_source(path: Path, blobs: BlobStore) -> Source:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _illegal(
            f"a source cannot be read: {error.strerror}", str(path), "name an existing file"
        ) from error
    return Source(path=str(path.resolve()), content=blobs.put(content))


def _to_bytes(correction: Correction) -> bytes:
    return canonical_bytes(correction.model_dump(mode="json"))


def _illegal(message: str, where: str, fix: str) -> InvalidError:
    return InvalidError(message, code="E_CORRECTION", where=where, fix=fix)


def _damaged(path: Path, found: str) -> StoreError:
    return StoreError(
        "the correction cannot be read",
        code="E_STORE_CORRUPT",
        where=str(path),
        found=found,
        fix="restore the package from a copy, or freeze it again",
    )
