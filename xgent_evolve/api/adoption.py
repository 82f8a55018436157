"""Adopt a confirmed candidate (requirement A4, J1).

Confirmation is a study of its own on cases that selected nothing. This version measures and
compares; it does not confirm, so there is nothing yet that apply may write, and it says why.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from xgent_evolve.api.session import open_rundir
from xgent_evolve.canonical import Json
from xgent_evolve.errors import AuthorityError, RefusedError, UnconfirmedError
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.store.rundir import RunDir


def apply(rundir_path: Path, repo: Path) -> None:
    """Adopt the confirmed candidate of a run into `repo`, or refuse and change nothing.

    Raises:
        AuthorityError: E_AUTHORITY: the JobSpec does not allow it, or names another repository.
        RefusedError: E_NOT_A_RUN, E_RUN_UNFINISHED.
        UnconfirmedError: E_UNCONFIRMED: no candidate of the run is confirmed.

    """
    rundir, protocol = open_rundir(rundir_path)
    require_finished(rundir)
    require_authority(protocol, repo)
    spec = protocol.spec
    status = confirmation_status(rundir)
    reason = {
        "smoke": "a smoke run never qualifies anything",
        "compare": "a comparison selects; only fresh executions on confirmation cases confirm",
        "search": "the search has no confirmed candidate",
    }[spec.mode]
    raise UnconfirmedError(
        f"no candidate of this run is confirmed: {reason}",
        where=str(rundir.report_json_path),
        expected="confirmation status passed",
        found=f"confirmation status {status}",
        fix="nothing was changed; confirm the candidate on cases of the split confirmation first",
    )


def require_finished(rundir: RunDir) -> None:
    """Require that the run has a report."""
    if not rundir.report_json_path.exists():
        raise RefusedError(
            "the run is not finished",
            code="E_RUN_UNFINISHED",
            where=str(rundir.path),
            expected="report.json",
            found="no report",
            fix=f"xgent-evolve resume --run {rundir.path}",
        )


def require_authority(protocol: Protocol, repo: Path) -> None:
    """Require that the caller allowed this, in the JobSpec, for this repository."""
    authority = protocol.spec.authority
    if not authority.allow_apply:
        raise AuthorityError(
            "the JobSpec does not allow apply",
            where="$.authority.allow_apply",
            expected="true",
            found="false",
            fix="nothing was changed; authority comes from the JobSpec of a new run",
        )
    base = protocol.spec.target.base_commit
    if not Repository.open(repo, "--repo").has_commit(base):
        raise AuthorityError(
            "this is not the repository that the run was made for",
            where=f"--repo {repo}",
            expected=f"a repository with the commit {base}",
            found="no such commit",
            fix=f"give the repository of the JobSpec ({authority.repo}), or fetch that commit",
        )


def confirmation_status(rundir: RunDir) -> str:
    """Return the confirmation status that the report states."""
    document = cast("dict[str, Json]", json.loads(rundir.report_json_path.read_bytes()))
    confirmation = document.get("confirmation")
    return str(confirmation.get("status")) if isinstance(confirmation, dict) else "unknown"
