"""The tasks of a folder: which can be run here, and what each says about itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from xgent_evolve.api.init.request import InitRequest, LeftOut, missing
from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import Fault
from xgent_evolve.freeze.git import Repository
from xgent_evolve.freeze.tasks import folder_files
from xgent_evolve.tasks.findings import Findings
from xgent_evolve.tasks.folder import folder_faults
from xgent_evolve.tasks.prompt import prompt_of
from xgent_evolve.tasks.settings import TASK_FILE, TaskSettings, read_settings

NEEDED = ("instruction.md", "tests/test.sh")
SOLUTION = "solution/solve.sh"
DEFAULT_PLACE = "/app"
_WORKDIR = re.compile(r"^\s*WORKDIR\s+(/[^\s$]*)\s*$", re.MULTILINE | re.IGNORECASE)
_REQUIREMENT_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class FoundTask:
    """A task folder that can be run."""

    name: str
    """Its id in the study."""
    path: Path
    settings: TaskSettings
    requirement: str
    """The beginning of its prompt."""
    place: str | None
    """Working directory in the container; None when nothing names one."""
    known_until: str
    """Date of its newest file."""
    solved: bool
    """Whether it has a reference solution."""


def find_folder(request: InitRequest, repository: Repository, faults: list[Fault]) -> Path | None:
    """Return the folder of tasks: the caller's, or the one of the repository that has some."""
    if request.tasks is not None:
        if request.tasks.is_dir():
            return request.tasks.resolve()
        faults.append(
            missing("the tasks", flag="--tasks DIR", found=f"no directory {request.tasks}")
        )
        return None
    paths = {entry.path for entry in repository.index()}
    folders = {
        path.removesuffix("/instruction.md").rpartition("/")[0]
        for path in paths
        if path.endswith("/instruction.md")
        and path.replace("/instruction.md", "/tests/test.sh") in paths
    }
    if len(folders) == 1:
        return repository.root / path_bytes(folders.pop()).decode("utf-8", "surrogateescape")
    found = ", ".join(sorted(folders)) or f"no task folder in {repository.root}"
    faults.append(missing("where the tasks are", flag="--tasks DIR", found=found))
    return None


def find_tasks(
    folder: Path, faults: list[Fault], *, unchecked: bool
) -> tuple[list[FoundTask], list[LeftOut]]:
    """Return the tasks of a folder that can be run, and the others with the reason.

    With `unchecked` a task needs no reference solution. A fault is added when none can be run.
    """
    found: list[FoundTask] = []
    left_out: list[LeftOut] = []
    names: set[str] = set()
    for path in _folders(folder):
        task = _read(path, names, unchecked=unchecked)
        if isinstance(task, LeftOut):
            left_out.append(task)
        else:
            names.add(task.name.casefold())
            found.append(task)
    if not found:
        reasons = "; ".join(f"{item.task}: {item.reason}" for item in left_out)
        faults.append(
            missing("a task that can be run", flag="--tasks DIR", found=reasons or "none there")
        )
    return found, left_out


def _folders(folder: Path) -> Iterable[Path]:
    if (folder / NEEDED[0]).exists() or (folder / TASK_FILE).exists():
        return [folder]
    entries = sorted(folder.iterdir(), key=lambda item: item.name)
    return [
        item
        for item in entries
        if item.is_dir() and any((item / name).exists() for name in (*NEEDED, TASK_FILE))
    ]


def _read(path: Path, names: set[str], *, unchecked: bool) -> FoundTask | LeftOut:
    for name in NEEDED:
        if not (path / name).is_file():
            return LeftOut(path.name, f"it has no {name}")
    solved = (path / SOLUTION).is_file()
    if not solved and not unchecked:
        return LeftOut(path.name, f"it has no {SOLUTION} (--unchecked takes it all the same)")
    findings = Findings()
    file, settings = path / TASK_FILE, TaskSettings()
    try:
        if file.exists():
            settings = read_settings(file.read_bytes(), str(file), findings)
        findings.faults.extend(folder_faults(folder_files(path), settings, str(path)))
        text = prompt_of((path / NEEDED[0]).read_bytes().decode("utf-8"))
        dockerfile = path / "environment" / "Dockerfile"
        recipe = dockerfile.read_text("utf-8", "replace") if dockerfile.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        return LeftOut(path.name, f"it cannot be read: {error}")
    if findings.faults:
        return LeftOut(path.name, findings.faults[0].message)
    if not text.strip():
        return LeftOut(path.name, "its instruction is empty")
    places = _WORKDIR.findall(recipe)
    return FoundTask(
        name=_unused(_id(path.name), names),
        path=path,
        settings=settings,
        requirement=_requirement(text),
        place=settings.workdir or (places[-1] if places else None),
        known_until=_newest(path),
        solved=solved,
    )


def _id(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")
    return text[:60] or "task"


def _unused(name: str, names: set[str]) -> str:
    number, chosen = 2, name
    while chosen.casefold() in names:
        chosen, number = f"{name}-{number}", number + 1
    return chosen


def _requirement(text: str) -> str:
    """Return the first line of the prompt that is no heading, or else its first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = next((line for line in lines if not line.startswith(("#", "<!--", "---"))), lines[0])
    short = "".join(character for character in line if character.isprintable())
    return short[:_REQUIREMENT_CHARACTERS].strip() or "what instruction.md asks for"


def _newest(path: Path) -> str:
    newest = max(item.stat().st_mtime for item in path.rglob("*") if item.is_file())
    return datetime.fromtimestamp(newest, UTC).date().isoformat()
