"""What of a condition's AGENTS.md text reaches the agent, and what is paid for in vain."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from xgent_evolve.errors import Fault, InvalidError
from xgent_evolve.freeze.instructions import (
    OVERRIDE_FILE,
    PROJECT_DOC_MAX_BYTES,
    LoadedText,
    loaded_texts,
    only_import,
)
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import FrozenCondition, Protocol
from xgent_evolve.ids import Digest
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import last_name
from xgent_evolve.spec.surfaces import AGENTS_FILE, agents_paths
from xgent_evolve.store.bundles import Blobs, load_bundle

_SHOWN_CHARACTERS = 60

type Texts = Mapping[str, LoadedText]
"""What is loaded of every instruction file, by path."""


def require_reachable(
    loaded: LoadedSpec,
    conditions: Sequence[FrozenCondition],
    workspaces: Iterable[Digest],
    blobs: Blobs,
) -> None:
    """Refuse a candidate whose whole difference lies behind the agent's size limit.

    Raises:
        InvalidError: E_SPEC_CHANGE_UNREACHABLE: no trial could show a difference.

    """
    workspaces = list(workspaces)
    if not agents_paths(loaded.spec.target) or not workspaces:
        return
    by_id = {item.id: item for item in conditions}
    baseline = by_id[loaded.spec.baseline_condition]
    before = _condition_texts(baseline, workspaces, PROJECT_DOC_MAX_BYTES, blobs)
    for number, condition in enumerate(loaded.spec.conditions):
        frozen = by_id[condition.id]
        if condition.agents != "candidate" or frozen.agents == baseline.agents:
            continue
        after = _condition_texts(frozen, workspaces, PROJECT_DOC_MAX_BYTES, blobs)
        if _shown(before) == _shown(after):
            raise _unreachable(loaded, number, before, after)


def shows_difference(
    protocol: Protocol, before: FrozenCondition, after: FrozenCondition, blobs: Blobs
) -> bool:
    """Say whether an agent gets different instructions or skills in two conditions."""
    if before.agents == after.agents:
        return before.content != after.content
    workspaces = _workspaces(protocol)
    limit = protocol.project_doc_max_bytes
    left, right = (
        _shown(_condition_texts(item, workspaces, limit, blobs)) for item in (before, after)
    )
    return left != right or before.skill != after.skill


def agents_warnings(loaded: LoadedSpec, protocol: Protocol, blobs: Blobs) -> list[Fault]:
    """Return what of the conditions' AGENTS.md text the agent would not get. Pure.

    Nothing when no case takes it along: AGENTS.md text is placed in cases of kind repo alone.
    """
    workspaces = _workspaces(protocol)
    if not workspaces:
        return []
    warnings: dict[Fault, list[str]] = {}
    for number, condition in enumerate(protocol.conditions):
        limit = protocol.project_doc_max_bytes
        texts = _condition_texts(condition, workspaces, limit, blobs)
        for text in texts.values():
            for warning in _text_warnings(text, limit, _where(loaded, number, text.path)):
                warnings.setdefault(warning, []).append(condition.id)
    warnings |= {item: [] for item in _nested_warnings(loaded)}
    return [_in_conditions(warning, names) for warning, names in warnings.items()]


def _workspaces(protocol: Protocol) -> list[Digest]:
    found = (case.workspace for case in protocol.cases)
    return list(dict.fromkeys(item for item in found if item is not None))


def _condition_texts(
    condition: FrozenCondition, workspaces: Iterable[Digest], limit: int, blobs: Blobs
) -> Texts:
    files = {
        entry.path: blobs.get(entry.blob)
        for entry in load_bundle(blobs, condition.agents)
        if entry.blob is not None
    }
    for workspace in workspaces:
        for entry in load_bundle(blobs, workspace):
            if entry.blob is not None and last_name(entry.path) == OVERRIDE_FILE:
                files.setdefault(entry.path, blobs.get(entry.blob))
    return loaded_texts(files, limit)


def _shown(texts: Texts) -> dict[str, str]:
    return {path: text.text for path, text in texts.items() if text.text.strip()}


def _text_warnings(text: LoadedText, limit: int, where: str) -> Iterator[Fault]:
    if text.lost:
        number = text.first_lost_line
        broken = ", and the cut falls into a character" if text.cuts_character else ""
        yield Fault(
            code="W_AGENTS_TRUNCATED",
            message=f"the agent does not get the end of {text.path}",
            where=f"{where}, line {number}",
            expected=f"at most {limit} bytes together with the files of the directories above"
            " (project_doc_max_bytes, which every trial sets)",
            found=f"{text.kept} of {len(text.content)} bytes are loaded{broken}; the first lost"
            f" line is {number}: {_short(text.line(number))}",
            fix="shorten it, or move what matters to the top",
        )
    if (imported := only_import(text.content)) is not None:
        yield Fault(
            code="W_AGENTS_IMPORT",
            message=f"{text.path} is an import, which the agent does not follow",
            where=where,
            expected="the text itself, or a symbolic link to it",
            found=_short(imported),
            fix=f"replace it by a link to {imported.removeprefix('@')}, or by its text",
        )


def _nested_warnings(loaded: LoadedSpec) -> Iterator[Fault]:
    """Yield files under study that are not loaded where the trials work: at the top."""
    if not agents_paths(loaded.spec.target):
        return
    for number, condition in enumerate(loaded.spec.conditions):
        nested = [
            path for path in condition.overrides if "/" in path and last_name(path) == AGENTS_FILE
        ]
        for path in nested:
            yield Fault(
                code="W_AGENTS_NESTED",
                message=f"the agent starts above {path} and reads it only when it opens it",
                where=place(loaded, "conditions", number, "overrides", path),
                expected="AGENTS.md at the top of the repository, which is always loaded",
                found=path,
                fix="expect a smaller effect, or change the file at the top",
            )


def _where(loaded: LoadedSpec, number: int, path: str) -> str:
    condition = loaded.spec.conditions[number]
    for name in condition.overrides:
        if spec_path(name) == path:
            return place(loaded, "conditions", number, "overrides", name)
    return f"{loaded.resolve(loaded.spec.target.repo)}/{path}"


def _in_conditions(warning: Fault, names: list[str]) -> Fault:
    if not names:
        return warning
    noun = "condition" if len(names) == 1 else "conditions"
    return Fault(
        code=warning.code,
        message=f"{warning.message} ({noun} {', '.join(names)})",
        where=warning.where,
        expected=warning.expected,
        found=warning.found,
        fix=warning.fix,
    )


def _unreachable(loaded: LoadedSpec, number: int, before: Texts, after: Texts) -> InvalidError:
    condition = loaded.spec.conditions[number]
    changed = sorted(
        path
        for path in before.keys() | after.keys()
        if path not in before or path not in after or before[path].content != after[path].content
    )
    kept = ", ".join(
        f"{path} ({text.kept} of {len(text.content)} bytes are loaded)"
        for path in changed
        if (text := after.get(path) or before.get(path)) is not None
    )
    return InvalidError(
        f"the agent gets nothing of what condition {condition.id} changes",
        code="E_SPEC_CHANGE_UNREACHABLE",
        where=place(loaded, "conditions", number, "overrides"),
        expected=f"a change within the first {PROJECT_DOC_MAX_BYTES} bytes of the instruction"
        " files, of which the agent drops the rest",
        found=f"a change behind that in {kept}" if kept else "a change of hidden files",
        fix="move the changed text up, or shorten what stands before it",
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}...")
