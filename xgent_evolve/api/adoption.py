"""Adopt what is confirmed, or an authorised correction of facts (requirements A4, J1 to J3).

A candidate is written when a search has confirmed it on cases that selected nothing; everything
that says so is computed again first. Whatever else a run has found, apply writes nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.adopt.correction import FILE, Correction, read_correction, require_sources
from xgent_evolve.adopt.diff import file_diff
from xgent_evolve.adopt.plan import Change, already_adopted, find_conflicts
from xgent_evolve.adopt.transaction import adopt, require_free
from xgent_evolve.adopt.worktree import WorkTree
from xgent_evolve.api.candidate import confirmed_changes
from xgent_evolve.api.session import last_finished, open_rundir, require_finished
from xgent_evolve.errors import AuthorityError, UnconfirmedError
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.store.blobs import BlobStore

RECORD = "adoption.json"
"""Name of the file beside the evidence that says how far an adoption has come."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """What apply did, or would do."""

    changed: tuple[str, ...]
    """Paths in the repository; empty when it was as wanted already."""
    warnings: tuple[str, ...]
    diff: str
    """Old and new text of the changed files, as a unified diff."""
    status: str
    """`confirmed` for a candidate, `unverified` for a correction of facts."""
    written: bool
    """False for a dry run."""


def apply(path: Path, repo: Path, *, dry_run: bool = False) -> Adoption:
    """Write a confirmed candidate or an authorised correction into `repo`, all files or none.

    `path` is a run directory, or the package of a correction. Nothing is committed.

    Raises:
        AuthorityError: E_AUTHORITY: the caller did not allow it, or it is another repository.
        RefusedError: E_NOT_A_RUN, E_RUN_UNFINISHED, E_CORRECTION_SOURCE, and those of
            `adopt.transaction.adopt`.
        UnconfirmedError: E_UNCONFIRMED: no candidate of the run is confirmed.
        RefusedError: E_APPLY_EVIDENCE: what the run states does not follow from its evidence.

    """
    if (path / FILE).exists():
        return apply_correction(path, repo, dry_run=dry_run)
    rundir, protocol = open_rundir(path)
    require_finished(last_finished(rundir, protocol), rundir)
    root = require_authority(protocol, repo)
    spec = protocol.spec
    if spec.mode != "search":
        reason = {
            "smoke": "a smoke run never qualifies anything",
            "compare": "a comparison selects; only fresh executions on confirmation cases confirm",
            "calibrate": "a calibration has no candidate",
        }[spec.mode]
        raise UnconfirmedError(
            f"no candidate of this run is confirmed: {reason}",
            where=str(rundir.report_json_path),
            expected="a search with confirmation status passed",
            found=f"mode {spec.mode}",
            fix="nothing was changed; search for a candidate, which is confirmed at the end",
        )
    changes = confirmed_changes(rundir, protocol)
    record = rundir.path / RECORD
    return write(root, changes, rundir.blobs, record, "confirmed", dry_run=dry_run)


def apply_correction(package: Path, repo: Path, *, dry_run: bool) -> Adoption:
    """Write an authorised correction of facts; raises as `apply`."""
    correction = read_correction(package)
    require_allowed(correction, package)
    root = require_commit(repo, correction.base_commit)
    require_sources(correction)
    blobs = BlobStore(package / "blobs")
    record = package / RECORD
    return write(root, correction.changes, blobs, record, correction.status, dry_run=dry_run)


def write(
    root: Path, changes: list[Change], blobs: BlobStore, record: Path, status: str, *, dry_run: bool
) -> Adoption:
    """Write changes, or say what would be written; raises as `apply`."""
    diff = "".join(diff_lines(changes, blobs))
    if dry_run:
        changed, warnings = foresee(root, changes), ()
    else:
        done = adopt(root, changes, blobs.get, record)
        changed, warnings = done.changed, done.warnings
    return Adoption(changed, warnings, diff, status, written=not dry_run)


def foresee(root: Path, changes: list[Change]) -> tuple[str, ...]:
    """Return the paths that an adoption would change now; raises when it would be refused."""
    with WorkTree(root) as tree:
        now = {change.path: tree.observe(change.path) for change in changes}
    if already_adopted(changes, now):
        return ()
    require_free(find_conflicts(changes, now), root)
    return tuple(change.path for change in changes)


def diff_lines(changes: list[Change], blobs: BlobStore) -> Iterator[str]:
    """Yield the lines of a unified diff of all changes."""
    for change in changes:
        before, after = (
            None if state is None else blobs.get(state.digest)
            for state in (change.before, change.after)
        )
        yield from file_diff(change.path, before, after)


def require_allowed(correction: Correction, package: Path) -> None:
    """Require that the caller allowed the correction when it was frozen."""
    if not correction.authorized:
        raise AuthorityError(
            "the correction was frozen without authority to write it",
            where=str(package / FILE),
            expected="authorized: true",
            found="authorized: false",
            fix="nothing was changed; whoever may decide freezes it again with authority",
        )


def require_authority(protocol: Protocol, repo: Path) -> Path:
    """Require that the caller allowed this, in the JobSpec; return the repository's top."""
    authority = protocol.spec.authority
    if not authority.allow_apply:
        raise AuthorityError(
            "the JobSpec does not allow apply",
            where="$.authority.allow_apply",
            expected="true",
            found="false",
            fix="nothing was changed; authority comes from the JobSpec of a new run",
        )
    return require_commit(repo, protocol.spec.target.base_commit)


def require_commit(repo: Path, base: str) -> Path:
    """Return the top directory of a repository that has the commit; raises AuthorityError."""
    repository = Repository.open(repo, "--repo")
    if not repository.has_commit(base):
        raise AuthorityError(
            "this is not the repository that this was made for",
            where=f"--repo {repo}",
            expected=f"a repository with the commit {base}",
            found="no such commit",
            fix="give the repository that the text was frozen from, or fetch that commit",
        )
    return repository.root
