"""What a task folder asks for by the files that lie in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xgent_evolve.errors import Fault
from xgent_evolve.tasks.settings import TaskSettings

COMPOSE_FILES = ("environment/docker-compose.yaml", "environment/docker-compose.yml")
DOCKERFILE = "environment/Dockerfile"
TRAJECTORY = "trajectory.json"
_NO_CONTENT = frozenset({".gitignore", ".gitkeep", ".DS_Store"})


def folder_faults(paths: Iterable[str], settings: TaskSettings, folder: str) -> list[Fault]:
    """Return every feature that is not run here and that a file of the folder stands for.

    `paths` are the files of the folder, relative to it; `folder` names it in messages.
    """
    return [
        Fault(
            code="E_SPEC_TASK_FEATURE",
            message=f"the task asks for {feature}, which is not run here",
            where=f"{folder}/{path}",
            expected="a task of one step in one container",
            found=path,
            fix=fix,
        )
        for feature, path, fix in _features(frozenset(paths), settings)
    ]


def _features(paths: frozenset[str], settings: TaskSettings) -> Iterator[tuple[str, str, str]]:
    other = "use another task; docs/tasks.md lists what is honoured"
    for name in COMPOSE_FILES:
        if name in paths:
            yield "a compose file", name, other
    if TRAJECTORY in paths:
        yield "an earlier trajectory", TRAJECTORY, other
    if first := _first_below("steps/", paths):
        yield "steps", first, other
    if settings.docker_image is not None and DOCKERFILE not in paths:
        # Harbor copies these into the working directory of a prebuilt image.
        loose = [path for path in paths if path.rsplit("/", 1)[-1] not in _NO_CONTENT]
        if first := _first_below("environment/", loose):
            yield (
                "files of environment/ in a prebuilt image",
                first,
                "put the files into an image and name that image",
            )


def _first_below(prefix: str, paths: Iterable[str]) -> str | None:
    return min((path for path in paths if path.startswith(prefix)), default=None)
