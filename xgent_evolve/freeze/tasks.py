"""The task.toml of every case, read before anything is frozen or spent (requirement M1).

All faults of all cases are told at once. What the files decide goes into the Protocol; what is
merely doubtful can be read out of the Protocol again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from xgent_evolve.errors import SpecError, TaskError
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.protocol import CaseLimits, CaseVariables, Protocol
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.store.bundles import Blobs
from xgent_evolve.tasks.agreement import check_agreement
from xgent_evolve.tasks.findings import Findings, TaskWarning
from xgent_evolve.tasks.folder import folder_faults
from xgent_evolve.tasks.limits import effective_limits, warn_of_lowered
from xgent_evolve.tasks.settings import TASK_FILE, TaskSettings, read_settings


class ReadTask(NamedTuple):
    """What one case's task.toml decides."""

    content: bytes | None
    """The file; None when the task has none."""
    limits: CaseLimits
    variables: CaseVariables


def read_tasks(loaded: LoadedSpec) -> list[ReadTask]:
    """Return what the task.toml of each case decides, in the order of the cases.

    Raises:
        SpecError: with every fault: E_SPEC_TASK_TOML, E_SPEC_TASK_FEATURE, E_SPEC_TASK_MISMATCH
            or E_SPEC_RESOURCE.
        TaskError: E_SPEC_TASK_FILE: it is a link.
        RefusedError: E_FREEZE_RACE, E_FREEZE_SPECIAL_FILE or E_FREEZE_UNREADABLE.

    """
    findings, found = Findings(), list[ReadTask]()
    for case in loaded.spec.cases:
        root = loaded.resolve(case.task_path)
        content = _task_file(root)
        settings = _settings(case, content, _file(root), findings)
        findings.faults.extend(folder_faults(folder_files(root), settings, str(root)))
        found.append(_read(loaded.spec, content, settings))
    if findings.faults:
        raise SpecError(tuple(findings.faults))
    return found


def task_warnings(protocol: Protocol, blobs: Blobs) -> list[TaskWarning]:
    """Return what is doubtful about the task.toml files of a frozen study."""
    findings = Findings()
    for case, frozen in zip(protocol.spec.cases, protocol.cases, strict=True):
        content = None if frozen.task_file is None else blobs.get(frozen.task_file)
        file = _file(Path(case.task_path))
        settings = _settings(case, content, file, findings)
        limits = effective_limits(settings, protocol.spec.runtime, protocol.spec.budget)
        warn_of_lowered(settings, limits, f"{file} (case {case.id})", findings)
    return findings.warnings


def folder_files(root: Path) -> Iterator[str]:
    """Yield the files whose presence in a task folder asks for something."""
    if (root / "trajectory.json").is_file():
        yield "trajectory.json"
    for part in ("environment", "steps"):
        for directory, _, names in os.walk(root / part):
            for name in names:
                yield (Path(directory) / name).relative_to(root).as_posix()


def _task_file(root: Path) -> bytes | None:
    if not root.is_dir():
        return None  # told with the views, which need the directory
    with DiskReader(root) as reader:
        is_link = reader.kind(TASK_FILE) == "link"
        content = reader.read(TASK_FILE)
    if is_link:
        raise TaskError(
            "the task's settings are no file of the task",
            code="E_SPEC_TASK_FILE",
            where=_file(root),
            expected="a file, or nothing",
            found="a link",
            fix="replace the link by a copy",
        )
    return content


def _settings(case: Case, content: bytes | None, file: str, findings: Findings) -> TaskSettings:
    settings = TaskSettings() if content is None else read_settings(content, file, findings)
    check_agreement(settings, case, file, findings)
    return settings


def _read(spec: JobSpec, content: bytes | None, settings: TaskSettings) -> ReadTask:
    limits = effective_limits(settings, spec.runtime, spec.budget)
    return ReadTask(
        content,
        CaseLimits(
            agent_timeout_s=limits.agent_timeout_s,
            grade_timeout_s=limits.grade_timeout_s,
            cpus=limits.cpus,
            memory_mb=limits.memory_mb,
        ),
        CaseVariables(
            everywhere=dict(settings.environment),
            verifier=dict(settings.verifier_environment),
            solution=dict(settings.solution_environment),
        ),
    )


def _file(root: Path) -> str:
    return f"{root}/{TASK_FILE}"
