"""Export a finished run in the layout of another tool (requirement M1)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import cast

from xgent_evolve.api.evidence import artifacts_of, dropped_bytes, transcript_of
from xgent_evolve.api.recompute import RunReport, compute_report
from xgent_evolve.canonical import digest_json, path_bytes
from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import AttemptRow
from xgent_evolve.errors import InvalidError
from xgent_evolve.harbor.artifacts import Artifacts, StoredFile
from xgent_evolve.harbor.job_layout import (
    Document,
    Job,
    Span,
    Trial,
    Value,
    engine_time,
    job_config,
    job_result,
    trial_config,
    trial_names,
    trial_result,
)
from xgent_evolve.harbor.outcome import file_content
from xgent_evolve.harbor.requests import COLLECTED
from xgent_evolve.harbor.trajectory import Conversation, trajectory_document
from xgent_evolve.store.durable import rename_no_replace, store_errors

WORKSPACE = "workspace"
"""Where the delivered files are, below a trial's artifacts."""


@dataclass(frozen=True, slots=True)
class Export:
    """What was written."""

    output: Path
    jobs: dict[str, int]
    """Trials of every job, by the job's name."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A trial to be written: what Harbor is told of it, and the records that it comes from."""

    trial: Trial
    agent: Artifacts
    grade: Artifacts | None


@dataclass(frozen=True, slots=True)
class _Condition:
    job: Job
    work: list[_Work] = field(default_factory=list[_Work])


def export_harbor(run: Path, output: Path) -> Export:
    """Write a finished run as Harbor jobs, one for each condition, into the new directory `output`.

    `harbor view OUTPUT` of Harbor 0.24 opens it. What Harbor has no place for is under the key
    `xgent`. Harbor cannot resume or regrade such a job.

    Raises:
        InvalidError: E_OUTPUT_EXISTS; E_EXPORT: the run measured no trial, as a smoke.
        RefusedError, StoreError: as for `compute_report`, or the file system refused.

    """
    output = Path(os.path.abspath(output))  # noqa: PTH100 - links in the name stay as they are
    if os.path.lexists(output):
        raise _exists(output)
    report = compute_report(run)
    conditions = list(_conditions(report))
    if not conditions:
        raise InvalidError(
            "the run measured no trial, so there is nothing to export",
            code="E_EXPORT",
            where=str(run),
            expected="a run of mode compare or search",
            found=f"mode {report.protocol.spec.mode}",
            fix="export a comparison or a search; report has what a smoke found",
        )
    with store_errors(output):
        output.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{output.name}.draft-", dir=output.parent))
    try:
        with store_errors(output):
            for condition in conditions:
                _write_job(report, condition, building)
            building.chmod(0o755)
            rename_no_replace(building, output)
    except FileExistsError:
        shutil.rmtree(building, ignore_errors=True)
        raise _exists(output) from None
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        raise
    return Export(output, {item.job.name: len(item.job.trials) for item in conditions})


def _conditions(report: RunReport) -> Iterator[_Condition]:
    spec, study = report.protocol.spec, report.study
    rows = [row for row in study.attempts if row.slot.purpose in ("measure", "confirm")]
    order = {condition.id: number for number, condition in enumerate(spec.conditions)}

    def place(row: AttemptRow) -> tuple[int, str, str, int]:
        slot = row.slot
        # A search's own candidates are not in the JobSpec; they come last.
        return (order.get(slot.condition, len(order)), slot.condition, slot.case, slot.repeat)

    rows.sort(key=place)
    for condition, of_condition in groupby(rows, key=lambda row: row.slot.condition):
        work = [
            _trial(report, list(attempts))
            for _, attempts in groupby(
                of_condition, key=lambda row: (row.slot.case, row.slot.repeat)
            )
        ]
        job = Job(
            study=spec.protocol_id,
            protocol=report.protocol.digest(),
            run_id=report.rundir.run_id,
            condition=condition,
            model=spec.runtime.model,
            effort=spec.runtime.effort,
            codex_version=spec.runtime.codex.version,
            repeats=spec.measurement.repeats,
            concurrency=spec.budget.max_concurrency,
            trials=tuple(item.trial for item in work),
        )
        yield _Condition(job, work)


def _trial(report: RunReport, rows: Sequence[AttemptRow]) -> _Work:
    agents = sorted((r for r in rows if r.slot.kind == "agent"), key=lambda row: row.attempt)
    grades = sorted((r for r in rows if r.slot.kind == "grade"), key=lambda row: row.attempt)
    agent, grade = agents[-1], grades[-1] if grades else None
    left = artifacts_of(report.study, agent)
    judged = None if grade is None else artifacts_of(report.study, grade)
    slot, protocol = agent.slot, report.protocol
    telling = grade if grade is not None and grade.status == "invalid" else agent
    trial = Trial(
        execution=agent.uuid,
        case=slot.case,
        task_path=report.study.spec_case(slot.case).task_path,
        task_digest=digest_json(protocol.case(slot.case).document()),
        condition=slot.condition,
        repeat=slot.repeat,
        reward=_reward(agent, grade),
        cause=telling.cause,
        detail=telling.detail,
        usage=agent.usage,
        agent=_span(left),
        grade=Span() if judged is None else _span(judged),
        attempts=tuple(map(_attempt, [*agents, *grades])),
    )
    return _Work(trial, left, judged)


def _reward(agent: AttemptRow, grade: AttemptRow | None) -> float | None:
    """Return 0 or 1 as it was observed; None is no observation and never 0."""
    if grade is None:
        # What may not be delivered is the agent's failure, and there is nothing to grade.
        refused = agent.cause in ("forbidden_path", "delivery_too_large")
        return 0.0 if refused else None
    return {"valid": 1.0, "behaviour_failure": 0.0, "invalid": None}[grade.status]


def _span(artifacts: Artifacts) -> Span:
    engine = artifacts.engine
    if engine is None:
        return Span()
    return Span(engine_time(engine.started_at), engine_time(engine.finished_at))


def _attempt(row: AttemptRow) -> Document:
    usage = row.usage
    return {
        "kind": row.slot.kind,
        "attempt": row.attempt,
        "execution": row.uuid,
        "status": row.status,
        "cause": row.cause,
        "duration_ms": row.duration_ms,
        "n_input_tokens": None if usage is None else usage.input,
        "n_output_tokens": None if usage is None else usage.output,
    }


def _write_job(report: RunReport, condition: _Condition, root: Path) -> None:
    job = condition.job
    directory, names = root / job.name, trial_names(job.trials)
    _write_json(directory / "config.json", job_config(job))
    _write_json(directory / "result.json", job_result(job, names))
    for name, work in zip(names, condition.work, strict=True):
        place = directory / name
        _write_json(place / "config.json", trial_config(job, work.trial, name))
        _write_json(place / "result.json", trial_result(job, work.trial, name))
        _write_agent(report, job, work, place / "agent")
        _write_delivery(report.study, work.agent, place / "artifacts")
        if work.grade is not None:
            _write_verifier(report.study, work.grade, place / "verifier")


def _write_agent(report: RunReport, job: Job, work: _Work, place: Path) -> None:
    blobs, left = report.rundir.blobs, work.agent
    prompt = blobs.get(report.protocol.case(work.trial.case).instruction).decode("utf-8", "replace")
    about = Conversation(
        work.trial.execution, prompt, job.codex_version, job.model, work.trial.usage
    )
    transcript = transcript_of(report.rundir, left)
    trajectory = cast("Document", trajectory_document(transcript, about))
    _write_json(place / "trajectory.json", trajectory)
    _write(place / "codex.txt", _stream(report.study, left, "stdout"))
    _write(place / "stderr.txt", _stream(report.study, left, "stderr"))
    for name, item in left.files.items():
        if name.startswith("sessions/") and isinstance(item, StoredFile):
            _write(_below(place, name), blobs.get(left.blobs[item.sha256]))


def _write_verifier(study: Run, left: Artifacts, place: Path) -> None:
    printed = {f"test-{name}.txt": _stream(study, left, name) for name in ("stdout", "stderr")}
    for name, content in printed.items():
        _write(place / name, content)
    for name, item in left.files.items():
        if name.startswith(f"{COLLECTED}/") and isinstance(item, StoredFile):
            own = name.removeprefix(f"{COLLECTED}/")
            # A verifier may use a name that Harbor reserves for what was printed.
            target = _below(place, f"{COLLECTED}/{own}" if own in printed else own)
            _write(target, study.rundir.blobs.get(left.blobs[item.sha256]))


def _write_delivery(study: Run, left: Artifacts, place: Path) -> None:
    """Write the delivered files, and what else was changed as a list."""
    if left.delivery is None:
        return
    for change in left.delivery.changes:
        after = change.after
        if after is not None and after.kind == "file" and after.sha256 is not None:
            path = _below(place / WORKSPACE, change.path)
            _write(path, study.rundir.blobs.get(left.blobs[after.sha256]))
            path.chmod(0o755 if after.mode & 0o111 else 0o644)
    changes: list[Value] = [change.model_dump(mode="json") for change in left.delivery.changes]
    _write(place / "delivery.json", _json(changes))
    found = bool(changes)
    manifest: list[Value] = [
        {
            "source": f"/{WORKSPACE}",
            "destination": f"artifacts/{WORKSPACE}",
            "type": "directory",
            "status": "ok" if found else "empty",
        }
    ]
    _write(place / "manifest.json", _json(manifest))


def _stream(study: Run, left: Artifacts, name: str) -> bytes:
    """Return a stream as text, with a line where a part of it was not captured."""
    read = study.rundir.blobs.get
    head, tail = (file_content(left, part, read) or b"" for part in (name, f"{name}.tail"))
    dropped = dropped_bytes(study.rundir, left, name)
    between = f"\n[{dropped} bytes were not captured]\n".encode() if dropped else b""
    text = (head + between + tail).decode("utf-8", "replace")
    return text.encode()


def _below(place: Path, name: str) -> Path:
    """Return a path below a directory that this process made; the name was checked at capture."""
    return place / os.fsdecode(path_bytes(name))


def _write_json(path: Path, document: Document) -> None:
    _write(path, _json(document))


def _json(value: Value) -> bytes:
    return json.dumps(value, indent=2, allow_nan=False).encode() + b"\n"


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _exists(path: Path) -> InvalidError:
    return InvalidError(
        "the output directory exists already",
        code="E_OUTPUT_EXISTS",
        where=str(path),
        expected="a path where nothing is yet",
        fix="choose another --output",
    )
