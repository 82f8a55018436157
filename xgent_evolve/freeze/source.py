"""The frozen source: the allowed files of the target's working tree, as they are on disk.

What is taken: tracked files at or below source.paths, with their present bytes (deletions count),
and the untracked files of source.new_paths. Nothing else: no ignored or other untracked file, no
`.git`, no special file, no other repository (requirements B3, B4, B12, B14).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import AuthorityError, DriftError, InvalidError, RefusedError
from xgent_evolve.freeze.crew import take_all
from xgent_evolve.freeze.disk import DiskReader, nested_repository
from xgent_evolve.freeze.git import CommitEntry, CommittedBlob, IndexEntry, Repository
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import FrozenSource
from xgent_evolve.freeze.reading import WHOLE_BYTES, Taken, git_object, take_content, take_pieces
from xgent_evolve.freeze.snapshot import (
    Snapshot,
    intake,
    keep,
    read_again,
    require_distinct_names,
    require_fetched,
    require_no_secrets,
)
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered
from xgent_evolve.store.bundles import Blobs, link_stays_inside, parents

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging

_GITLINK = 0o160000


def freeze_source(loaded: LoadedSpec, repository: Repository, blobs: Blobs) -> Snapshot:
    """Freeze the source of a study.

    Raises:
        InvalidError: E_SPEC_PATH: a listed path is absent, untracked, or not what it should be.
        AuthorityError: E_AUTHORITY_EXPORT: a listed path may not leave this machine.
        RefusedError: an E_FREEZE_ code says which state of the tree cannot be frozen.
        DriftError: E_FREEZE_BASE or E_FREEZE_RACE: the tree is not, or not still, at the base.

    """
    _require_exportable(loaded)
    _require_base(loaded, repository)
    index = repository.index()
    _require_merged(index, repository)
    listed = [spec_path(path) for path in loaded.spec.source.paths]
    _require_no_nested(index, listed, repository)
    tracked = [entry for entry in index if covered(entry.path, listed)]
    git_hash = "sha1" if len(loaded.spec.target.base_commit) == 40 else "sha256"
    with intake(blobs) as staging, DiskReader(repository.root) as reader:
        _require_present(loaded, listed, tracked, reader)
        added = _new_paths(loaded, index, reader)
        paths = sorted({*(entry.path for entry in tracked), *added}, key=path_bytes)
        _require_no_git_below(paths, reader)
        _require_no_bare(paths, str(repository.root))
        require_distinct_names(paths, str(repository.root))
        found = take_all(reader, paths, staging, git_hash)
        sparse = [entry.path for entry in tracked if entry.absent_on_purpose]
        if absent := [path for path in sparse if path not in found]:
            raise _sparse(absent, reader)
        _require_allowed(loaded, found.values(), repository.root)
        entries = keep(
            found.values(),
            str(repository.root),
            staging,
            blobs,
            partial(read_again, repository.root),
        )
    _require_base(loaded, repository)
    difference = _difference(loaded, repository, tracked, found)
    return Snapshot(str(repository.root), entries, difference)


def freeze_commit(
    loaded: LoadedSpec, repository: Repository, commit: str, paths: Sequence[str], blobs: Blobs
) -> Snapshot:
    """Freeze what a commit has at or below `paths`, from its objects; the disk plays no part.

    Raises:
        InvalidError: E_SPEC_COMMIT: the commit is not here.
        RefusedError: an E_FREEZE_ code, as for `freeze_source`.

    """
    origin = f"{repository.root}@{commit[:12]}"
    chosen = [entry for entry in repository.commit_entries(commit) if covered(entry.path, paths)]
    for entry in chosen:
        if entry.kind == "commit":
            raise nested_repository(f"{origin}/{entry.path}")
    _require_no_bare([entry.path for entry in chosen], origin)
    require_distinct_names([entry.path for entry in chosen], origin)
    objects = {entry.path: entry.object_id for entry in chosen}
    with intake(blobs) as staging:
        committed = repository.blobs(objects.values())
        pairs = zip(chosen, committed, strict=True)
        found = [_take_committed(entry, blob, staging) for entry, blob in pairs]
        _require_allowed(loaded, found, None, origin)
        entries = keep(
            found, origin, staging, blobs, lambda path: repository.read_blob(objects[path])
        )
    return Snapshot(origin, entries)


def _take_committed(entry: CommitEntry, blob: CommittedBlob, staging: Staging | None) -> Taken:
    if entry.mode == 0o120000:
        return Taken(entry.path, "link", target=path_text(b"".join(blob.pieces())))
    if blob.size <= WHOLE_BYTES:
        taken = take_content(entry.path, b"".join(blob.pieces()), staging)
    else:
        taken = take_pieces(entry.path, blob.size, blob.pieces(), staging)
    return taken._replace(executable=entry.mode == 0o100755)


def _difference(
    loaded: LoadedSpec,
    repository: Repository,
    tracked: list[IndexEntry],
    found: dict[str, Taken],
) -> FrozenSource:
    """Compare what was frozen with the base commit's objects, byte for byte and without filters."""
    target = loaded.spec.target
    listed = [spec_path(path) for path in loaded.spec.source.paths]
    committed = {
        entry.path: (entry.mode, entry.object_id)
        for entry in repository.commit_entries(target.base_commit)
        if covered(entry.path, listed)
    }
    kind = "sha1" if len(target.base_commit) == 40 else "sha256"
    changed = [
        path for path, item in found.items() if committed.get(path) != _git_state(item, kind)
    ]
    unwatched = {entry.path for entry in tracked if entry.unwatched}
    return FrozenSource(
        changed=changed,
        deleted=sorted(committed.keys() - found.keys(), key=path_bytes),
        hidden=[path for path in changed if path in unwatched],
    )


def _git_state(item: Taken, git_hash: str) -> tuple[int, str]:
    if item.kind == "link":
        return 0o120000, git_object(path_bytes(item.target), git_hash)
    return 0o100755 if item.executable else 0o100644, item.git_object


def _require_exportable(loaded: LoadedSpec) -> None:
    source = loaded.spec.source
    for field in ("paths", "new_paths", "fixed_skill_roots"):
        for number, path in enumerate(getattr(source, field)):
            if not covered(path, loaded.spec.authority.export_paths):
                raise AuthorityError(
                    "the caller does not allow this path to leave the machine",
                    code="E_AUTHORITY_EXPORT",
                    where=place(loaded, "source", field, number),
                    expected="a path at or below one of authority.export_paths",
                    found=path,
                    fix="ask the owner to add it to authority.export_paths, or leave it out",
                )


def _require_base(loaded: LoadedSpec, repository: Repository) -> None:
    head = repository.find_head()
    if head != loaded.spec.target.base_commit:
        raise DriftError(
            "the working tree does not stand on the base commit",
            code="E_FREEZE_BASE",
            where=place(loaded, "target", "base_commit"),
            expected=loaded.spec.target.base_commit,
            found=head or "a repository without a commit",
            fix=f"check the base out in {repository.root}, or put the present commit into the spec",
        )


def _require_merged(index: list[IndexEntry], repository: Repository) -> None:
    unmerged = sorted({entry.path for entry in index if entry.stage})
    if unmerged:
        raise RefusedError(
            "a merge is unfinished",
            code="E_FREEZE_UNMERGED",
            where=str(repository.root),
            found=_some(unmerged),
            fix="finish or abort the merge, then repeat",
        )


def _require_no_nested(index: list[IndexEntry], listed: list[str], repository: Repository) -> None:
    submodules = [
        entry.path for entry in index if entry.mode == _GITLINK and covered(entry.path, listed)
    ]
    for path in (*submodules, *repository.nested_repositories(listed)):
        raise nested_repository(f"{repository.root}/{path}")


def _require_no_git_below(paths: list[str], reader: DiskReader) -> None:
    """Refuse files whose directory is a repository of its own, which Git may not report."""
    for directory in sorted({directory for path in paths for directory in parents(path)}):
        if reader.kind(f"{directory}/.git") is not None:
            raise nested_repository(reader.place(directory))


def _require_no_bare(paths: Sequence[str], origin: str) -> None:
    """Refuse repositories without a working tree, which are files like any other to Git."""
    directories = {directory for path in paths for directory in parents(path)}
    for path in paths:
        top = path.removesuffix("/HEAD")
        if top != path and {f"{top}/objects", f"{top}/refs"} <= directories:
            raise nested_repository(f"{origin}/{top}")


def _require_present(
    loaded: LoadedSpec, listed: list[str], tracked: list[IndexEntry], reader: DiskReader
) -> None:
    """Refuse a listed path that names nothing, or neither a tracked nor an added file."""
    added = [spec_path(path) for path in loaded.spec.source.new_paths]
    for number, path in enumerate(listed):
        below = [entry for entry in tracked if covered(entry.path, [path])]
        kind = reader.kind(path)
        if kind is None and any(entry.absent_on_purpose for entry in below):
            raise _sparse([entry.path for entry in below], reader)
        if kind is not None and (below or any(covered(item, [path]) for item in added)):
            continue
        raise InvalidError(
            "a listed path does not exist" if kind is None else "a listed path is not tracked",
            code="E_SPEC_PATH",
            where=place(loaded, "source", "paths", number),
            expected=f"a tracked file or directory below {reader.root}",
            found=path if kind is None else f"{path}: nothing that Git tracks",
            fix="correct the path"
            if kind is None
            else "git add it, or list its files in source.new_paths",
        )


def _new_paths(loaded: LoadedSpec, index: list[IndexEntry], reader: DiskReader) -> list[str]:
    """Return source.new_paths after checking that each is one untracked file."""
    known = {entry.path for entry in index}
    added = [spec_path(path) for path in loaded.spec.source.new_paths]
    for number, path in enumerate(added):
        kind = reader.kind(path)
        if kind in {"file", "link", "other"} and path not in known:
            continue
        fixes = {
            None: "create it, or correct the path",
            "dir": "list its files one by one",
        }
        raise InvalidError(
            "a new path is tracked already" if path in known else "a new path is not a file",
            code="E_SPEC_PATH",
            where=place(loaded, "source", "new_paths", number),
            expected="an untracked file that exists",
            found=f"{path}: {'tracked' if path in known else kind or 'nothing there'}",
            fix="move it to source.paths" if path in known else fixes.get(kind, ""),
        )
    return added


def _require_allowed(
    loaded: LoadedSpec, taken: Collection[Taken], root: Path | None, origin: str = ""
) -> None:
    """Refuse links that lead out, LFS pointers and secrets, unless the JobSpec allows them.

    `root` is where the links lie on disk, or None for a commit, which `origin` names.
    """
    origin = origin or str(root)
    pointers = [spec_path(path) for path in loaded.spec.source.allow_lfs_pointers]
    for item in taken:
        if item.kind == "link":
            _require_inside(item, origin, root)
        else:
            require_fetched(item, origin, pointers)
    allowed = [spec_path(path) for path in loaded.spec.authority.allow_secrets_in]
    require_no_secrets(taken, origin, allowed)


def _require_inside(item: Taken, origin: str, root: Path | None) -> None:
    """Refuse a link that leaves the repository: by its text, or by where it leads on disk."""
    target = item.target
    inside = link_stays_inside(item.path, target)
    parts = target.encode().lower().split(b"/")
    if inside and root is not None:
        reached = os.path.realpath(os.fsencode(root) + b"/" + path_bytes(item.path))
        inside = reached.startswith(os.fsencode(root) + b"/")
        parts += reached.removeprefix(os.fsencode(root)).lower().split(b"/")
    if not inside or b".git" in parts:
        raise RefusedError(
            "a link leads out of the repository",
            code="E_FREEZE_LINK_ESCAPE",
            where=f"{origin}/{item.path}",
            expected="a relative link to a place inside the repository",
            found=f"-> {target}",
            fix="replace the link by what it leads to, or leave it out",
        )


def _sparse(paths: list[str], reader: DiskReader) -> RefusedError:
    return RefusedError(
        "a sparse checkout leaves out files that are to be frozen",
        code="E_FREEZE_SPARSE",
        where=str(reader.root),
        found=_some(paths),
        fix="widen it with: git sparse-checkout add <directory>, or list narrower paths",
    )


def _some(paths: list[str]) -> str:
    shown = ", ".join(paths[:5])
    return shown if len(paths) <= 5 else f"{shown} and {len(paths) - 5} more"
