"""What an optimizer may see: the search projection (requirement F5, invariant V11). Pure.

Of search cases it gets the public task, the result, and the end of what the agent said and
delivered under the text that it is asked to change. Of validation cases it gets one aggregate, of
confirmation cases nothing, and nobody's tests, solutions or grader output. What an agent wrote is
data: the prompt says that no instruction in it counts.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.outcome import captured_output
from xgent_evolve.harbor.request import FileFact
from xgent_evolve.ids import Digest
from xgent_evolve.measure.comparison import Comparison
from xgent_evolve.measure.outcomes import Row, Scored
from xgent_evolve.search.proposal import TEXT_DIRECTORY
from xgent_evolve.strategies.strategy import Proposed, Refused, Step, Version

SHOWN_BYTES = 16 * 1024
"""Most bytes of one output that are shown: its end."""

type JsonTree = bool | int | float | str | list[JsonTree] | dict[str, JsonTree] | None
type Read = Callable[[Digest], bytes]


@dataclass(frozen=True, slots=True)
class Observation:
    """One trial of a search case under the text that is to be changed."""

    row: Row
    artifacts: Artifacts | None
    """What the agent's execution left; None when there is nothing."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Files for the optimizer, by path below the public input directory."""

    files: dict[str, bytes]
    bundles: dict[str, Digest]
    """Frozen bundles by the directory that they are placed in."""


def project(
    protocol: Protocol,
    parent: Version,
    observations: Sequence[Observation],
    steps: Sequence[Step],
    read: Read,
) -> Projection:
    """Return what the optimizer sees about `parent`.

    `observations` may hold trials of every split; what must stay closed is left out here.
    """
    splits = {case.id: case.split for case in protocol.spec.cases}
    shown = [item for item in observations if splits[item.row.case] == "search"]
    held = [item.row for item in observations if splits[item.row.case] == "validation"]
    files = {
        "study.json": _json(_study(protocol, parent)),
        "history.json": _json([_step(step) for step in steps]),
        "results/validation.json": _json(_aggregate(held)),
    }
    if protocol.method is not None:
        files["method.md"] = read(protocol.method)
    for item in shown:
        directory = f"results/search/{item.row.case}/{item.row.repeat}"
        for name, content in _trial(item, read):
            files[f"{directory}/{name}"] = content
    cases = {item.row.case for item in shown}
    bundles = {
        f"results/search/{case.id}/task": case.public for case in protocol.cases if case.id in cases
    }
    sources = {case.workspace for case in protocol.cases if case.id in cases and case.workspace}
    for number, source in enumerate(sorted(sources), start=1):
        bundles[f"source/{number}"] = source
    return Projection(files, bundles)


def _study(protocol: Protocol, parent: Version) -> JsonTree:
    spec = protocol.spec
    rules: list[JsonTree] = [
        {"path": rule.path, "text": rule.text, "match": rule.match}
        for rule in spec.target.protected_rules
    ]
    return {
        "question": spec.question,
        "parent_hash": parent.content,
        "text_directory": TEXT_DIRECTORY,
        "surface": spec.target.surface,
        "paths_that_may_change": list[JsonTree](spec.target.paths),
        "protected_rules": rules,
        "objective": spec.measurement.objective,
        "smallest_gain_worth_having": float(spec.measurement.min_gain),
        "floors": {item.name: float(item.floor) for item in spec.guardrails},
    }


def _step(step: Step) -> JsonTree:
    """Return one earlier proposal: aggregates only, since validation took part in them."""
    common: dict[str, JsonTree] = {
        "proposal": step.number,
        "parent_hash": step.parent.content,
        "decision": step.decision,
    }
    match step.answer:
        case Refused(reasons=reasons, proposal=proposal):
            common["reasons"] = list[JsonTree](reasons)
        case Proposed(proposal=proposal, version=version):
            common["hash"] = version.content
    if proposal is not None:
        common |= {
            "hypothesis": proposal.hypothesis,
            "expected_effect": proposal.expected_effect,
            "counterexample": proposal.counterexample,
            "changed_paths": list[JsonTree](proposal.changed_paths),
        }
    if step.comparison is not None:
        common["result"] = _result(step.comparison)
    return common


def _result(comparison: Comparison) -> JsonTree:
    interval = comparison.interval
    return {
        "estimate": comparison.estimate,
        "interval": None if interval is None else [interval.low, interval.high],
        "paired_groups": comparison.paired_groups,
        "missing_trials": comparison.missing.missing,
        "reasons": [reason.sentence for reason in comparison.verdict.reasons],
    }


def _aggregate(rows: Sequence[Row]) -> JsonTree:
    scores = [row.outcome.value for row in rows if isinstance(row.outcome, Scored)]
    return {
        "trials": len(rows),
        "without_result": len(rows) - len(scores),
        "mean": round(sum(scores) / len(scores), 6) if scores else None,
    }


def _trial(item: Observation, read: Read) -> Iterator[tuple[str, bytes]]:
    row, artifacts = item.row, item.artifacts
    result: dict[str, JsonTree] = {"agent_timed_out": row.agent_timed_out}
    match row.outcome:
        case Scored(value=value):
            result["reward"] = value
        case _:
            result |= {"reward": None, "cause": row.outcome.cause}
    if artifacts is None:
        yield "result.json", _json(result)
        return
    result["checks"] = dict[str, JsonTree](row.checks)
    outputs = {
        "stdout.jsonl": captured_output(artifacts, "stdout", read),
        "stderr.txt": captured_output(artifacts, "stderr", read),
        "delivery.diff": delivery_text(artifacts, read),
    }
    cut: dict[str, JsonTree] = {}
    for name, content in outputs.items():
        cut[name] = {"bytes": len(content), "truncated": len(content) > SHOWN_BYTES}
        yield name, content[-SHOWN_BYTES:]
    result["shown_files"] = cut
    yield "result.json", _json(result)


def delivery_text(artifacts: Artifacts, read: Read) -> bytes:
    """Return a delivery for reading: new text in full, as additions; other changes in a line."""
    lines: list[str] = []
    for change in artifacts.delivery.changes if artifacts.delivery else []:
        new = _text_of(change.after, artifacts.blobs, read)
        what = _words(change.before), _words(change.after)
        lines.append(f"--- {change.path}: {what[0]} -> {what[1]}\n")
        if new is not None:
            lines += difflib.unified_diff([], new, "before", change.path, n=0)
    return "".join(lines).encode()


def _text_of(fact: FileFact | None, blobs: Mapping[str, Digest], read: Read) -> list[str] | None:
    if fact is None or fact.sha256 is None or fact.sha256 not in blobs:
        return None
    try:
        text = read(blobs[fact.sha256]).decode("utf-8")
    except UnicodeDecodeError:
        return None
    return [f"{line}\n" for line in text.splitlines()]


def _words(fact: FileFact | None) -> str:
    if fact is None:
        return "absent"
    size = f", {fact.size} bytes" if fact.kind == "file" else ""
    return f"{fact.kind} {fact.mode:04o}{size}"


def _json(value: JsonTree) -> bytes:
    return (json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode(
        "utf-8", "replace"
    )
