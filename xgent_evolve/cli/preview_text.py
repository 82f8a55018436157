"""How `validate` shows its facts: as text for people, as one JSON object for programs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from xgent_evolve.canonical import Json
from xgent_evolve.cli.output import JsonObject, fault_document, fault_lines
from xgent_evolve.cli.preview import Change, ConditionPreview, Files, Preview, difference
from xgent_evolve.errors import Fault
from xgent_evolve.redact import printable
from xgent_evolve.spec.bounds import KINDS
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.locate import JsonPath, path_text
from xgent_evolve.spec.part import plain_number
from xgent_evolve.spec.scan import scan
from xgent_evolve.store.bundles import Blobs, Entry

_LISTED_FILES = 40
_VALUE_CHARACTERS = 100


def preview_text(loaded: LoadedSpec, facts: Preview, blobs: Blobs | None) -> str:
    """Return the facts as text; with `blobs`, the differences of texts too."""
    spec = loaded.spec
    lines = [
        f"study     {spec.protocol_id}",
        f"question  {spec.question}",
        f"protocol  {facts.protocol.digest()}",
        "",
        "configuration",
        *_configuration(loaded),
        "",
        *_export_lines(loaded, facts),
        "",
        *_write_lines(loaded, facts),
        "",
        "conditions",
        *(line for item in facts.conditions for line in _condition_lines(item, blobs)),
        "",
        "executions at most",
        *(f"  {line}" for line in facts.bounds.lines),
        *(["", *(f"note      {note}" for note in facts.notes)] if facts.notes else []),
        *(["", *_warning_lines(facts.warnings)] if facts.warnings else []),
        "",
        f"valid{_warned(facts.warnings)}; nothing was run and nothing was written",
        f"next      xgent-evolve run --spec {shlex.quote(str(loaded.path))} --output DIR",
    ]
    return "\n".join(lines)


def preview_document(loaded: LoadedSpec, facts: Preview, blobs: Blobs | None) -> JsonObject:
    """Return the facts as JSON; with `blobs`, the differences of texts too."""
    spec = loaded.spec
    return {
        "type": "validation",
        "schema": 1,
        "protocol_id": spec.protocol_id,
        "question": spec.question,
        "protocol": facts.protocol.digest(),
        "configuration": loaded.spec.document(decimals=plain_number),
        "export": {
            "allowed": spec.authority.export_paths,
            "files": _files_document(facts.exported),
            "tasks": [
                {"id": task.id}
                | {view: _files_document(files) for view, files in task.views.items()}
                for task in facts.tasks
            ],
        },
        "write": {
            "allowed": spec.authority.write_paths if spec.authority.allow_apply else [],
            "files": facts.writable,
        },
        "conditions": [_condition_document(item, blobs) for item in facts.conditions],
        "bounds": {kind: getattr(facts.bounds, kind) for kind in KINDS},
        "arithmetic": facts.bounds.lines,
        "notes": facts.notes,
        "warnings": [fault_document(warning) for warning in facts.warnings],
    }


def size_text(size: int) -> str:
    """Return a number of bytes with its unit."""
    if size < 1000:
        return f"{size} B"
    for unit in ("kB", "MB"):
        size_in_unit = size / (1000 if unit == "kB" else 1_000_000)
        if size_in_unit < 999.95:
            return f"{size_in_unit:.1f} {unit}"
    return f"{size / 1_000_000_000:.1f} GB"


def _warning_lines(warnings: Sequence[Fault]) -> Iterator[str]:
    yield "warnings"
    for warning in warnings:
        yield from (f"  {line}" for line in fault_lines(warning, "warning").splitlines())


def _warned(warnings: Sequence[Fault]) -> str:
    if not warnings:
        return ""
    return f", with {len(warnings)} warning{'s' if len(warnings) > 1 else ''}"


def _configuration(loaded: LoadedSpec) -> Iterator[str]:
    """Yield every setting; what the JobSpec does not say is marked as a default."""
    document = scan(loaded.content.decode("utf-8"))
    effective = loaded.spec.document(decimals=plain_number)
    leaves = [item for item in _leaves((), effective) if item[0] != ("$schema",)]
    names = [path_text(path).removeprefix("$.") for path, _ in leaves]
    width = min(48, max(map(len, names)))
    for (path, value), name in zip(leaves, names, strict=True):
        note = "" if document.holds(path) else "  (default)"
        yield f"  {name:<{width}}  {_value_text(value)}{note}"


def _leaves(path: JsonPath, value: Json) -> Iterator[tuple[JsonPath, Json]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _leaves((*path, key), item)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves((*path, index), item)
    else:
        yield path, value


def _value_text(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= _VALUE_CHARACTERS:
        return text
    return f"{text[:_VALUE_CHARACTERS]}... ({len(text)} characters)"


def _export_lines(loaded: LoadedSpec, facts: Preview) -> Iterator[str]:
    allowed = ", ".join(loaded.spec.authority.export_paths)
    yield "may leave this machine"
    yield f"  allowed by authority.export_paths: {allowed}"
    yield f"  from the repository: {_sum_text(facts.exported)}"
    yield from _listing(facts.exported)
    for task in facts.tasks:
        sums = "; ".join(f"{view} {_sum_text(files)}" for view, files in task.views.items())
        yield f"  from the task {task.id}: {sums}"
    if loaded.spec.runtime.model_ca is not None:
        yield f"  certificates for the model driver: {loaded.spec.runtime.model_ca}"


def _write_lines(loaded: LoadedSpec, facts: Preview) -> Iterator[str]:
    yield "apply may write"
    if not loaded.spec.authority.allow_apply:
        yield "  nothing: authority.allow_apply is false"
        return
    yield f"  allowed by authority.write_paths: {', '.join(loaded.spec.authority.write_paths)}"
    for path in facts.writable[:_LISTED_FILES]:
        yield f"    {path}"
    if len(facts.writable) > _LISTED_FILES:
        yield _more(len(facts.writable))
    yield "  and new files of a candidate below the target's paths"


def _listing(files: Files) -> Iterator[str]:
    shown = list(files.items())[:_LISTED_FILES]
    width = min(60, max((len(path) for path, _ in shown), default=0))
    for path, entry in shown:
        yield f"    {path:<{width}}  {_entry_text(entry)}"
    if len(files) > _LISTED_FILES:
        yield _more(len(files))


def _more(total: int) -> str:
    return f"    ... and {total - _LISTED_FILES} more (--json lists all)"


def _sum_text(files: Files) -> str:
    noun = "file" if len(files) == 1 else "files"
    return f"{len(files)} {noun}, {size_text(sum(entry.size for entry in files.values()))}"


def _condition_lines(item: ConditionPreview, blobs: Blobs | None) -> Iterator[str]:
    role = " (baseline)" if item.is_baseline else ""
    levels = f"skill {item.skill}, agents {item.agents}"
    yield f"  {item.id}{role}: {levels}, content {item.content[:19]}"
    if item.is_baseline:
        return
    if not item.changes:
        yield "    no difference from the baseline"
    for change in item.changes:
        yield f"    {change.kind:<8} {change.path}  {_counts(change)}{_change_text(change)}"
        if blobs is not None:
            for line in printable(difference(change, blobs)).splitlines():
                yield f"      {line}"


def _counts(change: Change) -> str:
    if change.added is None or not (change.added or change.removed):
        return ""
    return f"+{change.added} -{change.removed} lines, "


def _change_text(change: Change) -> str:
    sides = [_entry_text(side) for side in (change.before, change.after) if side is not None]
    return " -> ".join(sides)


def _entry_text(entry: Entry) -> str:
    if entry.kind == "link":
        return f"link to {entry.target}"
    mode = ", executable" if entry.mode == 0o755 else ""
    return f"{size_text(entry.size)}{mode}, sha256 {(entry.sha256 or '')[:12]}"


def _files_document(files: Files) -> list[JsonObject]:
    return [{"path": path} | dict(_entry_document(entry)) for path, entry in files.items()]


def _condition_document(item: ConditionPreview, blobs: Blobs | None) -> JsonObject:
    return {
        "id": item.id,
        "skill": item.skill,
        "agents": item.agents,
        "baseline": item.is_baseline,
        "content": item.content,
        "changes": [_change_document(change, blobs) for change in item.changes],
    }


def _change_document(change: Change, blobs: Blobs | None) -> JsonObject:
    document: dict[str, object] = {
        "kind": change.kind,
        "path": change.path,
        "lines_added": change.added,
        "lines_removed": change.removed,
        "before": None if change.before is None else _entry_document(change.before),
        "after": None if change.after is None else _entry_document(change.after),
    }
    return document if blobs is None else document | {"diff": difference(change, blobs)}


def _entry_document(entry: Entry) -> Mapping[str, object]:
    return {
        "kind": entry.kind,
        "mode": f"{entry.mode:o}",
        "size": entry.size,
        "sha256": entry.sha256,
        "target": entry.target,
    }
