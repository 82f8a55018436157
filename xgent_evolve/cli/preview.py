"""What a JobSpec would do: the facts behind `validate`, from frozen bytes held in memory."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from xgent_evolve.errors import Fault
from xgent_evolve.freeze.advice import study_warnings
from xgent_evolve.freeze.places import spec_path
from xgent_evolve.freeze.protocol import FrozenCondition, Protocol
from xgent_evolve.ids import Digest
from xgent_evolve.spec.bounds import Bounds, call_bounds
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered, last_name
from xgent_evolve.spec.surfaces import skill_root
from xgent_evolve.store.bundles import Blobs, Entry, load_bundle

type Files = Mapping[str, Entry]
"""Files by their place, a readable path that is unique within one listing."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file that differs between a condition and the baseline condition."""

    kind: Literal["added", "removed", "changed"]
    path: str
    before: Entry | None
    after: Entry | None
    added: int | None = None
    """Lines that the condition has more; None when it is not text."""
    removed: int | None = None
    """Lines that the condition has less; None when it is not text."""


@dataclass(frozen=True, slots=True)
class ConditionPreview:
    """One condition and its real difference from the baseline condition."""

    id: str
    skill: str
    agents: str
    is_baseline: bool
    content: Digest
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class TaskPreview:
    """The files of one task, by view."""

    id: str
    views: Mapping[str, Files]


@dataclass(frozen=True, slots=True)
class Preview:
    """Everything that `validate` shows."""

    protocol: Protocol
    exported: Files
    """Files of the repository that go to the host."""
    writable: tuple[str, ...]
    """Files of the target, as it is or as a condition has it, that apply may write."""
    tasks: tuple[TaskPreview, ...]
    conditions: tuple[ConditionPreview, ...]
    bounds: Bounds
    notes: tuple[str, ...]
    """What is allowed but will not lead where the question wants to go."""
    warnings: tuple[Fault, ...]
    """What the agent, or the study, would not take as its author means it."""


def preview(loaded: LoadedSpec, protocol: Protocol, blobs: Blobs) -> Preview:
    """Return what a run of `protocol` would export, write, compare and call."""
    spec = loaded.spec
    texts = {item.id: _condition_files(spec, item, blobs) for item in protocol.conditions}
    baseline = texts[spec.baseline_condition]
    exported = _exported(spec, protocol, texts, blobs)
    return Preview(
        protocol=protocol,
        exported=exported,
        writable=_writable(spec, texts),
        tasks=tuple(_tasks(protocol, blobs)),
        conditions=tuple(
            ConditionPreview(
                id=condition.id,
                skill=condition.skill,
                agents=condition.agents,
                is_baseline=condition.id == spec.baseline_condition,
                content=protocol.condition(condition.id).content,
                changes=tuple(
                    _counted(change, blobs) for change in _changes(baseline, texts[condition.id])
                ),
            )
            for condition in spec.conditions
        ),
        bounds=call_bounds(spec),
        notes=tuple(_notes(spec)),
        warnings=study_warnings(loaded, protocol, blobs),
    )


def difference(change: Change, blobs: Blobs) -> str:
    """Return the unified diff of one change; a line that says so when it is not text."""
    before, after = _text(change.before, blobs), _text(change.after, blobs)
    if before is None or after is None:
        return f"{change.path}: not text\n"
    lines = difflib.unified_diff(
        before.splitlines(),
        after.splitlines(),
        fromfile=f"baseline/{change.path}" if change.before else "(no file)",
        tofile=f"condition/{change.path}" if change.after else "(no file)",
        lineterm="",
    )
    if shown := "".join(f"{line}\n" for line in lines):
        return shown
    return f"{change.path}: {'other mode' if before == after else 'other line ends'}, same lines\n"


def _condition_files(spec: JobSpec, condition: FrozenCondition, blobs: Blobs) -> Files:
    files: dict[str, Entry] = {}
    root = skill_root(spec.target)
    if condition.skill is not None and root is not None:
        files |= _placed(spec_path(root), condition.skill.bundle, blobs)
    return files | _placed("", condition.agents, blobs)


def _exported(spec: JobSpec, protocol: Protocol, texts: Mapping[str, Files], blobs: Blobs) -> Files:
    """Return every file of the repository that some part of the study takes along."""
    files: dict[str, Entry] = {}
    roots = {last_name(root): root for root in map(spec_path, spec.source.fixed_skill_roots)}
    # Background skills are the same in every condition.
    for skill in protocol.conditions[0].fixed_skills:
        files |= _placed(roots[skill.name], skill.bundle, blobs)
    for case in protocol.cases:
        if case.workspace is not None:
            files |= _placed("", case.workspace, blobs)
    # Overrides are the JobSpec's own text, and `minimal` is made of its protected rules.
    for condition in sorted(spec.conditions, key=lambda item: item.agents == "minimal"):
        own = set(map(spec_path, condition.overrides))
        for path, entry in texts[condition.id].items():
            if path not in own:
                files.setdefault(path, entry)
    return dict(sorted(files.items()))


def _writable(spec: JobSpec, texts: Mapping[str, Files]) -> tuple[str, ...]:
    if not spec.authority.allow_apply:
        return ()
    writable = [spec_path(path) for path in spec.authority.write_paths]
    allowed = [path for path in map(spec_path, spec.target.paths) if covered(path, writable)]
    known = {path for files in texts.values() for path in files}
    return tuple(sorted(path for path in known if covered(path, allowed)))


def _tasks(protocol: Protocol, blobs: Blobs) -> Iterator[TaskPreview]:
    for case in protocol.cases:
        views = {"public": case.public, "grader": case.grader, "oracle": case.oracle}
        yield TaskPreview(
            case.id, {name: _placed("", bundle, blobs) for name, bundle in views.items()}
        )


def _placed(root: str, bundle: Digest, blobs: Blobs) -> dict[str, Entry]:
    prefix = f"{root}/" if root else ""
    return {
        f"{prefix}{entry.path}": entry
        for entry in load_bundle(blobs, bundle)
        if entry.kind != "dir"
    }


def _changes(baseline: Files, condition: Files) -> Iterator[Change]:
    for path in sorted(baseline.keys() | condition.keys()):
        before, after = baseline.get(path), condition.get(path)
        if before is None:
            yield Change("added", path, None, after)
        elif after is None:
            yield Change("removed", path, before, None)
        elif _facts(before) != _facts(after):
            yield Change("changed", path, before, after)


def _counted(change: Change, blobs: Blobs) -> Change:
    before, after = _text(change.before, blobs), _text(change.after, blobs)
    if before is None or after is None:
        return change
    added = removed = 0
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, old, new)
    for _, start, end, new_start, new_end in matcher.get_opcodes():
        same = old[start:end] == new[new_start:new_end]
        removed += 0 if same else end - start
        added += 0 if same else new_end - new_start
    return replace(change, added=added, removed=removed)


def _facts(entry: Entry) -> tuple[object, ...]:
    return entry.kind, entry.mode, entry.blob, entry.target


def _text(entry: Entry | None, blobs: Blobs) -> str | None:
    if entry is None:
        return ""
    if entry.kind == "link":
        return f"-> {entry.target}\n"
    try:
        text = blobs.get(entry.blob).decode("utf-8") if entry.blob else ""
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _notes(spec: JobSpec) -> Iterator[str]:
    if spec.mode == "smoke":
        yield "mode smoke shows that everything works; it measures no effect"
        return
    if spec.authority.allow_apply and not spec.budget.confirmation_trials:
        yield "nothing is reserved for confirmation, so no candidate can be applied"
