"""What an editor declares about its edits, and whether that covers what it changed.

One edit is one independent mechanism with its wiring, however many files that takes. A candidate is
always held against the incumbent: what an earlier attempt in the same checkout left behind belongs
to the declaration too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One declared mechanism."""

    id: str
    component: str
    """The claimed label; `labels.normalise` decides."""
    hypothesis: str
    targets_mode: str
    """Failure mode, capability gap or success habit that it is aimed at."""
    predicted_affected: tuple[str, ...]
    """Tasks whose score it is expected to move; may be empty."""
    retroactive_check: str
    """How its effect can be seen in the traces at hand."""
    paths: tuple[str, ...]
    """Files that it changes, relative to the root of the text."""


def differences(incumbent: Mapping[str, str], checkout: Mapping[str, str]) -> frozenset[str]:
    """Return the paths that were added, changed or removed since the incumbent.

    Both map a path to an id of its content and mode.
    """
    paths = incumbent.keys() | checkout.keys()
    return frozenset(path for path in paths if incumbent.get(path) != checkout.get(path))


def undeclared(edits: Sequence[Edit], changed: Collection[str]) -> tuple[str, ...]:
    """Return the changed paths that no edit declares, sorted."""
    return tuple(sorted(set(changed) - {path for edit in edits for path in edit.paths}))


def declaration_faults(
    edits: Sequence[Edit], changed: Collection[str], budget: int
) -> tuple[str, ...]:
    """Return what is wrong with a declaration, as sentences; empty when it is legal.

    `changed` are the differences to the incumbent, `budget` how many edits the round allows. Paths
    may be shared by edits, and may name what is unchanged in the end; but every edit must have
    changed something.
    """
    faults: list[str] = []
    if not changed:
        faults.append("Nothing was changed.")
    if not edits:
        faults.append("No edit is declared.")
    if len(edits) > budget:
        faults.append(f"{len(edits)} edits are declared; this round allows {budget}.")
    repeated = sorted(name for name, count in Counter(e.id for e in edits).items() if count > 1)
    faults += [f"The id {name} is declared more than once." for name in repeated]
    for number, edit in enumerate(edits, 1):
        faults += _faults_of(edit, number, changed)
    missing = undeclared(edits, changed)
    if missing:
        faults.append(f"No edit declares these changed paths: {', '.join(missing)}.")
    return tuple(faults)


def _faults_of(edit: Edit, number: int, changed: Collection[str]) -> list[str]:
    name = f"Edit {edit.id}" if edit.id.strip() else f"Edit number {number}"
    fields = ("id", "component", "hypothesis", "targets_mode", "retroactive_check")
    blank = [field for field in fields if not str(getattr(edit, field)).strip()]
    faults = [f"{name} leaves {', '.join(blank)} blank."] if blank else []
    if set(edit.paths).isdisjoint(changed):
        faults.append(f"{name} changed none of its paths.")
    return faults
