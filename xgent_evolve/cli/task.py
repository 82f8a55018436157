"""`xgent-evolve task check`: whether a task folder can be run here, and loaded by Harbor."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from xgent_evolve.api.task_folder import Examination


class Action(StrEnum):
    """What is done with the folder."""

    CHECK = "check"


def task(
    action: Annotated[Action, typer.Argument(help="check: look at the folder.")],
    folder: Annotated[Path, typer.Argument(help="The task folder.", metavar="DIR")],
    *,
    fix: Annotated[
        bool, typer.Option("--fix", help="Add an empty task.toml and environment/ for Harbor.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Say whether a task folder can be run here, and whether Harbor would load it.

    Every feature that is not run here is named, with its place; nothing of the task is carried
    out. Ends with exit 2 when it cannot be run.
    """
    from xgent_evolve.api.task_folder import examine
    from xgent_evolve.errors import SpecError

    match action:
        case Action.CHECK:
            found = examine(folder, fix=fix)
    if found.faults and not as_json:
        say("\n".join(examination_lines(found, folder)))
    if found.faults:
        raise SpecError(found.faults)
    if as_json:
        say_json(examination_document(found))
    else:
        say("\n".join(examination_lines(found, folder)))


def examination_document(found: Examination) -> dict[str, object]:
    """Return the JSON form of a folder that can be run."""
    settings = found.settings
    return {
        "type": "task",
        "runs_here": True,
        "harbor": {"loads": not found.missing, "missing": list(found.missing)},
        "has_solution": found.solution,
        "added": list(found.added),
        "settings": {
            "docker_image": settings.docker_image,
            "workdir": settings.workdir,
            "cpus": None if settings.cpus is None else str(settings.cpus),
            "memory_mb": settings.memory_mb,
            "storage_mb": settings.storage_mb,
            "agent_timeout_s": settings.agent_timeout_s,
            "verifier_timeout_s": settings.verifier_timeout_s,
            "variables": sorted(settings.environment),
        },
        "warnings": [
            {"code": item.code, "message": item.message, "where": item.where}
            for item in found.warnings
        ],
    }


def examination_lines(found: Examination, folder: Path) -> list[str]:
    """Return what was found, in words."""
    runs = "no, see below" if found.faults else "yes"
    solution = (
        "there is one; it must be graded 1 before anything is paid for"
        if found.solution
        else 'none, so its case needs "oracle_check": "unchecked"'
    )
    harbor = "yes" if not found.missing else f"no, it lacks {', '.join(found.missing)}"
    lines = [
        f"task      {folder}",
        f"runs here {runs}",
        f"solution  {solution}",
        f"Harbor    {harbor}",
        *(f"added     {name}" for name in found.added),
        *(f"warning   {item.text()}" for item in found.warnings),
    ]
    if any(name in ("task.toml", "environment/") for name in found.missing):
        lines.append(f"next      xgent-evolve task check --fix {folder}")
    return lines
