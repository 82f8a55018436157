"""The frozen source: the allowed files of the target's working tree, as they are on disk.

What is taken: tracked files at or below source.paths, with their present bytes (deletions count),
and the untracked files of source.new_paths. Nothing else: no ignored or other untracked file, no
`.git`, no special file, no other repository (requirements B3, B4, B12, B14).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from xgent_evolve.canonical import path_bytes, path_text
from xgent_evolve.errors import AuthorityError, DriftError, InvalidError, RefusedError
from xgent_evolve.freeze.disk import DiskReader, Found, nested_repository
from xgent_evolve.freeze.git import IndexEntry, Repository
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.snapshot import Snapshot, keep, require_distinct_names, require_fetched
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered
from xgent_evolve.store.bundles import Blobs, link_stays_inside, parents

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
    with DiskReader(repository.root) as reader:
        _require_present(loaded, listed, tracked, reader)
        added = _new_paths(loaded, index, reader)
        paths = sorted({*(entry.path for entry in tracked), *added}, key=path_bytes)
        _require_no_git_below(paths, reader)
        sparse = {entry.path for entry in tracked if entry.absent_on_purpose}
        entries = keep(_read(paths, sparse, reader), blobs)
    _require_base(loaded, repository)
    require_distinct_names(entries, str(repository.root))
    return Snapshot(str(repository.root), entries)


def freeze_commit(
    repository: Repository, commit: str, paths: Sequence[str], blobs: Blobs
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
    contents = repository.blobs([entry.object_id for entry in chosen])

    def found() -> Iterator[Found]:
        for entry, content in zip(chosen, contents, strict=True):
            kind = "link" if entry.mode == 0o120000 else "file"
            item = Found(entry.path, kind, entry.mode == 0o100755, content)
            _require_allowed(item, origin, None)
            yield item

    entries = keep(found(), blobs)
    require_distinct_names(entries, origin)
    return Snapshot(origin, entries)


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


def _read(paths: list[str], sparse: set[str], reader: DiskReader) -> Iterator[Found]:
    """Read the files that exist; one that is absent and tracked was deleted by the user."""
    for path in paths:
        item = reader.read(path)
        if item is not None:
            _require_allowed(item, str(reader.root), reader.root)
            yield item
        elif path in sparse:
            raise _sparse([path], reader)


def _require_allowed(item: Found, origin: str, root: Path | None) -> None:
    if item.kind == "link":
        _require_inside(item, origin, root)
    else:
        require_fetched(item, origin)


def _require_inside(item: Found, origin: str, root: Path | None) -> None:
    """Refuse a link that leaves the repository: by its text, or by where it leads on disk."""
    target = path_text(item.content)
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
