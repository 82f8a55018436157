"""A finished run that never ran: frozen, recorded and stored by the classes that a run uses."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from startup import write_spec

from xgent_evolve.canonical import canonical_bytes
from xgent_evolve.engine.slots import Slot
from xgent_evolve.execution.facts import (
    Accepted,
    Captured,
    Cleaned,
    FactModel,
    Frozen,
    Intent,
    Preflight,
    TaskChecked,
    fact_document,
)
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.harbor.artifacts import Artifacts, Delivery, EngineState, ExitRecord, StoredFile
from xgent_evolve.harbor.requests import COLLECTED
from xgent_evolve.ids import Digest, ExecutionId, execution_id
from xgent_evolve.remote.report import EngineReport, HostState
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.journal import Journal
from xgent_evolve.store.rundir import RunDir

CASES, CONDITIONS = 5, ("absent", "candidate")
SLOTS_PER_REPEAT = CASES * len(CONDITIONS) * 2
"""Executions of one repeat: each trial is an agent's work and its grade."""

_BATCH = 2_000
_USAGE = {"input_tokens": 1200, "cached_input_tokens": 256, "output_tokens": 90}
_EVENTS = [
    {"type": "thread.started", "thread_id": "@"},
    {"type": "turn.started"},
    *({"type": "item.completed", "item": {"id": f"item_{n}", "text": "x" * 400}} for n in range(8)),
    {"type": "turn.completed", "usage": {**_USAGE, "reasoning_output_tokens": 16}},
]


@dataclass(frozen=True)
class Made:
    """One execution that is about to be stored."""

    intent: Intent
    artifacts: Artifacts
    contents: tuple[bytes, ...]
    """Bytes that came back, in the order of the artifact's files."""


def synthetic_run(directory: Path, executions: int) -> Path:
    """Return the directory of a finished run with so many executions, all of them cleaned."""
    spec = write_spec(directory / "study")
    document = json.loads(spec.read_text())
    document["cases"] = document["cases"][:CASES]
    document["measurement"]["repeats"] = executions // SLOTS_PER_REPEAT
    document["budget"]["max_trials"] = executions
    spec.write_text(json.dumps(document))
    path = directory / "run"
    with RunDir.draft(path) as draft:
        protocol = build_protocol(load_spec(spec), draft.blobs)
        draft.write_protocol(protocol.to_bytes())
    rundir = RunDir.open(path)
    cases = [case.id for case in protocol.spec.cases]
    repeats = range(1, protocol.spec.measurement.repeats + 1)
    with rundir.lock(), rundir.open_journal() as journal:
        frozen = Frozen(protocol=protocol.digest())
        known = [
            TaskChecked(case=case, key=protocol.digest(), run_id=rundir.run_id) for case in cases
        ]
        asyncio.run(append(journal, [frozen, preflight(rundir), *known]))
        probe = Slot("preflight", protocol.spec.baseline_condition, cases[0], 1, "probe")
        store(rundir, journal, [execution(rundir, probe, 0, {"stdout": b"sandbox-ok\n"})])
        made = [
            item
            for repeat, case, condition in product(repeats, cases, CONDITIONS)
            for item in trial(rundir, condition, case, repeat)
        ]
        for start in range(0, len(made), _BATCH):
            store(rundir, journal, made[start : start + _BATCH])
    return path


def preflight(rundir: RunDir) -> Preflight:
    """Return what a host could have been."""
    engine = EngineReport(
        version="20.10", api="1.41", architecture="x86_64", security=[], storage="overlay2", id="@"
    )
    state = HostState(python="3", architecture="x86_64", socket="/s", engine=engine, images={})
    content = canonical_bytes(state.model_dump(mode="json"))
    return Preflight(facts=rundir.blobs.put(content), tool_manifest_sha256="0" * 64)


def trial(rundir: RunDir, condition: str, case: str, repeat: int) -> Iterator[Made]:
    """Yield the two executions of one trial; the candidate mostly succeeds."""
    agent = Slot("measure", condition, case, repeat, "agent")
    events = "".join(json.dumps(event) + "\n" for event in _EVENTS).replace("@", agent.key)
    yield execution(rundir, agent, 0, {"stdout": events.encode(), "stderr": b""})
    grade = Slot("measure", condition, case, repeat, "grade")
    passed = condition == "candidate" and sha256(grade.key.encode()) > "4"
    reward = {f"{COLLECTED}/reward.txt": b"1\n" if passed else b"0\n"}
    yield execution(rundir, grade, 0 if passed else 1, reward)


def execution(rundir: RunDir, slot: Slot, exit_code: int, files: dict[str, bytes]) -> Made:
    """Return an execution that ended and left `files`."""
    uuid = execution_id(rundir.run_id, slot.key, 1)
    intent = Intent(
        uuid=uuid, slot=slot.key, attempt=1, kind=slot.kind, request_sha256=sha256(uuid.encode())
    )
    artifacts = Artifacts(
        uuid=uuid,
        slot=slot.key,
        attempt=1,
        kind=slot.kind,
        record=ExitRecord(
            uuid=uuid,
            container=sha256(b"container" + uuid.encode()),
            status="ended",
            exit_code=exit_code,
            expired=False,
            started_cs=100,
            ended_cs=250,
        ),
        engine=EngineState(exit_code=0, oom_killed=False, started_at="", finished_at=""),
        files={
            name: StoredFile(sha256=sha256(content), size=len(content))
            for name, content in files.items()
        },
        delivery=Delivery(changes=[], refused=[]) if slot.kind == "agent" else None,
    )
    return Made(intent, artifacts, tuple(files.values()))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def store(rundir: RunDir, journal: Journal, batch: list[Made]) -> None:
    """Store the bytes, the records and the facts of some executions."""
    contents = [content for made in batch for content in made.contents]
    digests = iter(rundir.blobs.put_many(contents))
    complete: list[Artifacts] = []
    for made in batch:
        named: dict[str, Digest] = {sha256(content): next(digests) for content in made.contents}
        complete.append(made.artifacts.model_copy(update={"blobs": named}))
    records = rundir.blobs.put_many([artifacts.to_bytes() for artifacts in complete])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pair: write_files(rundir, *pair), zip(batch, complete, strict=True)))
    facts: list[FactModel] = []
    for made, record in zip(batch, records, strict=True):
        uuid = made.intent.uuid
        facts += [made.intent, Accepted(uuid=uuid), Captured(uuid=uuid, artifacts=record)]
        facts.append(Cleaned(uuid=uuid))
    asyncio.run(append(journal, facts))


def write_files(rundir: RunDir, made: Made, artifacts: Artifacts) -> None:
    """Write the three files of one execution."""
    directory = rundir.execution(ExecutionId(made.intent.uuid))
    directory.write(directory.intent.name, canonical_bytes(fact_document(made.intent)))
    receipts = [{"kind": kind, "seq": seq} for seq, kind in enumerate(("accepted", "cleaned"))]
    directory.write(directory.remote.name, canonical_bytes({"receipts": receipts}))
    directory.write(directory.artifacts.name, artifacts.to_bytes())


async def append(journal: Journal, facts: list[FactModel]) -> None:
    """Append facts; concurrent ones share an fsync."""
    await asyncio.gather(*(journal.append_soon(fact_document(fact)) for fact in facts))
