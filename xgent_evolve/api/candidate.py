"""Write the confirmed candidate of a search: from its evidence, never from its report (J1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xgent_evolve.adopt.plan import Change, FileState
from xgent_evolve.api.verification import Verification, examine
from xgent_evolve.errors import AuthorityError, RefusedError, UnconfirmedError
from xgent_evolve.freeze.places import spec_path
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.search.text import lost_rules, studied_text
from xgent_evolve.spec.parts import Target
from xgent_evolve.spec.paths import covered
from xgent_evolve.store.bundles import Blobs, Entry, Tree
from xgent_evolve.store.rundir import RunDir
from xgent_evolve.workflow.confirm import Confirmation


def confirmed_changes(rundir: RunDir, protocol: Protocol) -> list[Change]:
    """Return what the confirmed candidate changes, after everything was computed again.

    Every stored byte, receipt, request and number is checked as `verify` does; then the candidate
    must be confirmed by them, keep every protected rule, and stay within authority.write_paths.

    Raises:
        RefusedError: E_APPLY_EVIDENCE: the run's statements do not follow from its evidence;
            E_RUN_UNFINISHED, E_RUN_CODE.
        UnconfirmedError: E_UNCONFIRMED, with what the confirmation came to.
        AuthorityError: E_AUTHORITY: a changed path may not be written.

    """
    done, again = examine(rundir, protocol)
    require_evidence(done, rundir.path)
    if again is None or again.search is None:
        raise AssertionError("a search that was verified has a result")
    confirmation = again.search.confirmation
    require_confirmed(confirmation, rundir.report_json_path)
    target, blobs = protocol.spec.target, rundir.blobs
    baseline = again.run.condition(protocol.spec.baseline_condition)
    candidate = again.run.condition(confirmation.candidate or "")
    before = studied_text(target, baseline, blobs)
    after = studied_text(target, candidate, blobs)
    require_kept_rules(target, after, blobs)
    changes = changes_between(before, after)
    require_writable(protocol, changes)
    return changes


def require_evidence(done: Verification, run: Path) -> None:
    """Require that every statement of the run follows from its evidence."""
    if not done.findings:
        return
    first = done.findings[0]
    raise RefusedError(
        f"{len(done.findings)} of the run's statements do not follow from its evidence",
        code="E_APPLY_EVIDENCE",
        where=first.where,
        expected=first.expected,
        found=first.found,
        fix=f"nothing was changed; all of them: xgent-evolve verify --run {run}",
    )


def require_confirmed(confirmation: Confirmation, report: Path) -> None:
    """Require that the confirmation passed."""
    if confirmation.status == "passed":
        return
    reason = f" ({confirmation.reason})" if confirmation.reason else ""
    raise UnconfirmedError(
        "no candidate of this run is confirmed",
        where=str(report),
        expected="confirmation status passed",
        found=f"confirmation status {confirmation.status}{reason}",
        fix="nothing was changed; only what cases confirm that selected nothing is applied",
    )


def require_kept_rules(target: Target, text: Tree, blobs: Blobs) -> None:
    """Require every protected rule of the text once more, whatever the search has checked (J1)."""
    for rule in lost_rules(target, text, lambda entry: _content(entry, blobs)):
        raise RefusedError(
            "the candidate drops a protected rule",
            code="E_APPLY_EVIDENCE",
            where="$.target.protected_rules",
            expected=f"{rule.path} with {rule.text.strip().partition(chr(10))[0]!r}",
            found="the text without it",
            fix="nothing was changed",
        )


def _content(entry: Entry, blobs: Blobs) -> bytes:
    return b"" if entry.blob is None else blobs.get(entry.blob)


def changes_between(before: Tree, after: Tree) -> list[Change]:
    """Return the files that differ between two versions of the text, by path. Pure."""
    left, right = ({entry.path: entry for entry in tree} for tree in (before, after))
    return [
        Change(path, _state(left.get(path)), _state(right.get(path)))
        for path in sorted(left.keys() | right.keys())
        if _state(left.get(path)) != _state(right.get(path))
    ]


def _state(entry: Entry | None) -> FileState | None:
    if entry is None or entry.blob is None:
        return None
    return FileState(entry.blob, executable=entry.mode == 0o755)


def require_writable(protocol: Protocol, changes: Sequence[Change]) -> None:
    """Require that the caller lets apply write every changed path."""
    allowed = [spec_path(path) for path in protocol.spec.authority.write_paths]
    for change in changes:
        if not covered(change.path, allowed):
            raise AuthorityError(
                "the JobSpec does not let apply write this path",
                where="$.authority.write_paths",
                expected=", ".join(protocol.spec.authority.write_paths) or "a path",
                found=change.path,
                fix="nothing was changed; authority comes from the JobSpec of a new run",
            )
