"""One task folder, looked at before a study names it (requirement M1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.errors import Fault, TaskError
from xgent_evolve.freeze.disk import DiskReader
from xgent_evolve.freeze.tasks import folder_files
from xgent_evolve.tasks.findings import Findings, TaskWarning
from xgent_evolve.tasks.folder import COMPOSE_FILES, DOCKERFILE, folder_faults
from xgent_evolve.tasks.prompt import prompt_of
from xgent_evolve.tasks.settings import TASK_FILE, TaskSettings, read_settings

SOLUTION = "solution/solve.sh"
IMAGE = f"{DOCKERFILE}, or environment.docker_image in {TASK_FILE}"


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found about a task folder."""

    faults: tuple[Fault, ...]
    """Why it cannot be run here; empty when it can."""
    warnings: tuple[TaskWarning, ...]
    settings: TaskSettings
    solution: bool
    """Whether there is a reference solution to check the verifier with."""
    missing: tuple[str, ...]
    """What Harbor 0.24.0 would need to load the folder and have an image; empty when nothing."""
    added: tuple[str, ...]
    """What was added to the folder."""


def examine(folder: Path, *, fix: bool = False) -> Examination:
    """Say whether a task folder can be run here and whether Harbor would load it.

    With `fix` an empty task.toml and an empty environment/ are added where they are missing, and
    nothing else is changed.

    Raises:
        TaskError: E_SPEC_TASK_FILE: there is no such directory, or nothing can be added to it.
        RefusedError: E_FREEZE_RACE, E_FREEZE_SPECIAL_FILE or E_FREEZE_UNREADABLE.

    """
    if not folder.is_dir():
        raise TaskError(
            "the task folder does not exist",
            code="E_SPEC_TASK_FILE",
            where=str(folder),
            expected="a directory with instruction.md and tests/test.sh",
            found="a file" if folder.exists() else "nothing there",
            fix="give the directory of a task",
        )
    added = _add_missing(folder) if fix else ()
    findings = Findings()
    with DiskReader(folder) as reader:
        settings = _settings(reader, folder, findings)
        files = list(folder_files(folder))
        findings.faults.extend(folder_faults(files, settings, str(folder)))
        _require_prompt(reader, folder, findings)
        if reader.kind("tests/test.sh") != "file":
            findings.faults.append(_absent(folder, "tests/test.sh", "the verifier"))
        solution = reader.kind(SOLUTION) == "file"
    return Examination(
        faults=tuple(findings.faults),
        warnings=tuple(findings.warnings),
        settings=settings,
        solution=solution,
        missing=tuple(_missing_for_harbor(folder, files, settings)),
        added=added,
    )


def _settings(reader: DiskReader, folder: Path, findings: Findings) -> TaskSettings:
    kind = reader.kind(TASK_FILE)
    if kind is None:
        return TaskSettings()
    if kind != "file":
        findings.faults.append(_absent(folder, TASK_FILE, "the settings, as a file and no link"))
        return TaskSettings()
    return read_settings(reader.read(TASK_FILE) or b"", f"{folder}/{TASK_FILE}", findings)


def _require_prompt(reader: DiskReader, folder: Path, findings: Findings) -> None:
    if reader.kind("instruction.md") != "file":
        findings.faults.append(_absent(folder, "instruction.md", "the prompt"))
        return
    content = reader.read("instruction.md") or b""
    if not prompt_of(content.decode("utf-8", "replace")).strip():
        findings.faults.append(_absent(folder, "instruction.md", "a prompt that is not empty"))


def _absent(folder: Path, path: str, what: str) -> Fault:
    return Fault(
        code="E_SPEC_TASK_FILE",
        message=f"the task has no usable {path}",
        where=f"{folder}/{path}",
        expected=what,
        fix="add the file",
    )


def _missing_for_harbor(folder: Path, files: list[str], settings: TaskSettings) -> list[str]:
    present = {
        TASK_FILE: (folder / TASK_FILE).is_file(),
        "environment/": (folder / "environment").is_dir(),
        "instruction.md": (folder / "instruction.md").is_file() or (folder / "steps").is_dir(),
        IMAGE: settings.docker_image is not None
        or DOCKERFILE in files
        or any(name in files for name in COMPOSE_FILES),
    }
    return [name for name, there in present.items() if not there]


def _add_missing(folder: Path) -> tuple[str, ...]:
    added: list[str] = []
    try:
        if not (folder / "environment").exists():
            (folder / "environment").mkdir()
            added.append("environment/")
        path = folder / TASK_FILE
        if not path.exists() and not path.is_symlink():
            path.touch(exist_ok=False)
            added.append(TASK_FILE)
    except OSError as error:
        raise TaskError(
            "nothing can be added to the task folder",
            code="E_SPEC_TASK_FILE",
            where=str(error.filename or folder),
            found=error.strerror or "",
            fix="make the folder writable, or leave --fix out",
        ) from error
    return tuple(added)
