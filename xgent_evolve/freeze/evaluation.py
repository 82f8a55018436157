"""The judging material of a study of quality: every listed file, frozen (requirement H1).

Nothing is read through a link, and a link may lead only to another listed file, so all of it lies
below the root that the caller allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from xgent_evolve.errors import InvalidError, RefusedError
from xgent_evolve.freeze.crew import take_present
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.snapshot import (
    intake,
    keep,
    read_again,
    require_distinct_names,
    require_fetched,
    require_no_secrets,
)
from xgent_evolve.ids import Digest
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.versions import evaluation_of
from xgent_evolve.store.bundles import Blobs, Entry, link_destination, make_tree, put_bundle

if TYPE_CHECKING:
    from xgent_evolve.spec.models_v2 import Evaluation


def freeze_evaluation(loaded: LoadedSpec, blobs: Blobs) -> Digest | None:
    """Freeze the material of `evaluation.paths`; None for a JobSpec that has none.

    Raises:
        InvalidError: E_SPEC_EVALUATION: the root or something listed is not there.
        RefusedError: an E_FREEZE_ code: something there cannot be frozen.
        DriftError: E_FREEZE_RACE: it changed while it was read.

    """
    evaluation = evaluation_of(loaded.spec)
    if evaluation is None:
        return None
    root = loaded.resolve(evaluation.root)
    if not root.is_dir():
        raise _absent(loaded, ("root",), str(root), "a directory")
    with intake(blobs) as staging, DiskReader(root) as reader:
        listed: dict[str, None] = {}
        for number, name in enumerate(evaluation.paths):
            listed |= dict.fromkeys(_files_at(loaded, ("paths", number), name, reader))
        for field, name in _named(evaluation):
            if reader.kind(spec_path(name)) != "file":
                raise _absent(loaded, field, reader.place(spec_path(name)), "a file")
        found = take_present(reader, list(listed), staging)
        for item in found.values():
            require_fetched(item, str(root))
        allowed = [spec_path(path) for path in loaded.spec.authority.allow_secrets_in]
        require_no_secrets(found.values(), str(root), allowed, "evaluation/")
        entries = keep(found.values(), str(root), staging, blobs, partial(read_again, root))
    require_distinct_names(entries, str(root))
    _require_links_inside(entries, str(root))
    return put_bundle(blobs, make_tree(entries.values()))


def _named(evaluation: Evaluation) -> Iterator[tuple[tuple[str, ...], str]]:
    for case, path in evaluation.rubrics.items():
        yield ("rubrics", case), path
    yield ("calibration",), evaluation.calibration
    if evaluation.auxiliary is not None:
        yield ("auxiliary", "rubric_path"), evaluation.auxiliary.rubric_path
        yield ("auxiliary", "calibration_path"), evaluation.auxiliary.calibration_path


def _files_at(
    loaded: LoadedSpec, field: tuple[str | int, ...], name: str, reader: DiskReader
) -> Iterator[str]:
    path = spec_path(name)
    match reader.kind(path):
        case None:
            raise _absent(loaded, field, reader.place(path), "a file or a directory")
        case "dir":
            yield from reader.walk(path)
        case _:
            yield path


def _require_links_inside(entries: dict[str, Entry], root: str) -> None:
    for entry in entries.values():
        if entry.kind != "link":
            continue
        destination = link_destination(entry.path, entry.target or "")
        if destination not in entries:
            raise RefusedError(
                "a link of the judging material leads to nothing that is frozen",
                code="E_FREEZE_LINK_ESCAPE",
                where=f"{root}/{entry.path}",
                expected="a link to a file of evaluation.paths",
                found=entry.target or "",
                fix="replace it by what it leads to, or list that too",
            )


def _absent(
    loaded: LoadedSpec, field: tuple[str | int, ...], found: str, expected: str
) -> InvalidError:
    return InvalidError(
        "the judging material is not there",
        code="E_SPEC_EVALUATION",
        where=place(loaded, "evaluation", *field),
        expected=expected,
        found=found,
        fix="correct the path, or create the file",
    )
