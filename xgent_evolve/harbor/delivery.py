"""What an agent may deliver (requirement F4). Pure.

A delivery is judged before it is graded: one that holds a file above the limit, or that touches a
protected path of its case, is a failure of the agent and is recorded as one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from xgent_evolve.canonical import path_text
from xgent_evolve.harbor.artifacts import Delivery
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.paths import covered, last_name

HOOKS = frozenset({"conftest.py", "sitecustomize.py", "usercustomize.py", "pytest.ini"})
"""Files that Python or pytest carries out by itself where it starts or collects (PAT-08)."""


class Refusal(NamedTuple):
    """Why a delivery is not graded."""

    cause: Literal["delivery_too_large", "forbidden_path"]
    paths: tuple[str, ...]
    """The paths at fault."""


def find_refusal(delivery: Delivery, case: Case) -> Refusal | None:
    """Return why a delivery is not graded, or None when it may be."""
    protected = [path_text(path.encode()) for path in case.protected_paths]
    touched = [change.path for change in delivery.changes] + [
        item.path for item in delivery.refused
    ]
    forbidden = tuple(path for path in touched if covered(path, protected))
    if forbidden:
        return Refusal("forbidden_path", forbidden)
    if delivery.refused:
        return Refusal("delivery_too_large", tuple(item.path for item in delivery.refused))
    return None


def find_hooks(delivery: Delivery) -> tuple[str, ...]:
    """Return delivered files that a verifier may carry out without naming them.

    They are delivered like any other file, since a task may be about them; a verifier that runs
    its tests from the workspace runs them too.
    """
    return tuple(
        change.path
        for change in delivery.changes
        if change.after is not None
        and (last_name(change.path) in HOOKS or change.path.endswith(".pth"))
    )
