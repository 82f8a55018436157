"""`init`: find out, ask nothing, write one file that validates, overwrite none."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from xgent_evolve.api.init.document import (
    Found,
    place_of,
    planned_trials,
    spec_document,
)
from xgent_evolve.api.init.host import HostFound, ask_host, ssh_of
from xgent_evolve.api.init.material import Material, find_material, find_repository, require_head
from xgent_evolve.api.init.request import (
    DEFAULT_DOCKER,
    DEFAULT_ROOT,
    Assumed,
    InitRequest,
    Written,
    missing,
)
from xgent_evolve.api.init.tasks import FoundTask, find_folder, find_tasks
from xgent_evolve.errors import Fault, InvalidError, SpecError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.git import Repository
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.runtime import Ssh
from xgent_evolve.store.memory import MemoryBlobs

_PINNED = re.compile(r"(?:[^@\s]+@)?sha256:[0-9a-f]{64}")


def init(request: InitRequest) -> Written:
    """Write a JobSpec for a repository and its tasks, after it passed `validate`.

    Raises:
        InvalidError: E_INIT_EXISTS: the file is there already; E_INIT_MISSING (all at once):
            what only the caller can say; or whatever `validate` would refuse.
        RefusedError: the repository is in a state that cannot be frozen.
        RemoteError: with `ask_host`, the host does not answer.

    """
    _require_absent(request.spec)
    faults: list[Fault] = []
    repository = find_repository(request.repo)
    head = require_head(repository)
    folder = find_folder(request, repository, faults)
    tasks, left_out = (
        ([], []) if folder is None else find_tasks(folder, faults, unchecked=request.unchecked)
    )
    apart = [] if folder is None else _inside(folder, repository)
    material = find_material(request, repository, apart, faults)
    ssh = ssh_of(request, faults)
    host = None
    if request.ask_host and ssh is not None and not faults:
        host = ask_host(ssh, request.docker_path, _names(request, tasks))
    images = _images(request, tasks, host, faults)
    version = request.docker_version or (host.docker_version if host else None)
    if version is None:
        flag = "--docker-version (docker version on the host), or --ask-host"
        faults.append(missing("the engine's version", flag=flag))
    if faults or material is None or ssh is None or version is None:
        raise SpecError(tuple(faults))
    found = _found(request, repository, head, material, tasks, ssh, images, host, version)
    _write(request.spec, spec_document(found))
    document = load_spec(request.spec).spec
    return Written(
        spec=request.spec,
        studied=material.name,
        cases=tuple(case.id for case in document.cases),
        conditions=tuple(condition.id for condition in document.conditions),
        trials=planned_trials(found),
        left_out=tuple(left_out),
        assumed=tuple(_assumed(found, host)),
    )


def _require_absent(spec: Path) -> None:
    if spec.exists() or spec.is_symlink():
        raise InvalidError(
            "the JobSpec exists already, and nothing is overwritten",
            code="E_INIT_EXISTS",
            where=str(spec),
            expected="a file that does not exist",
            found="a file",
            fix="give another --spec, or remove the file",
        )
    if not spec.absolute().parent.is_dir():
        raise InvalidError(
            "the directory of the JobSpec does not exist",
            code="E_SPEC_PATH",
            where=str(spec),
            expected="a file name in an existing directory",
            found="no such directory",
            fix="make the directory, or give another --spec",
        )


def _inside(folder: Path, repository: Repository) -> list[str]:
    """Return the tasks' folder as a path of the repository; nothing when it lies elsewhere."""
    if folder == repository.root or not folder.is_relative_to(repository.root):
        return []
    return [folder.relative_to(repository.root).as_posix()]


def _named(request: InitRequest, task: FoundTask) -> str | None:
    """Return the image that the flags or the task name; flags for one task come first."""
    named: dict[str, str] = {}
    for item in request.images:
        key, equals, reference = item.partition("=")
        if equals:
            named[key] = reference
    common = next((item for item in request.images if "=" not in item), None)
    own = task.settings.docker_image
    pinned = own if own is not None and _PINNED.fullmatch(own) else None
    return named.get(task.name) or named.get(task.path.name) or pinned or common or own


def _names(request: InitRequest, tasks: list[FoundTask]) -> list[str]:
    """Return the images that the host is to be asked for."""
    named = (_named(request, task) for task in tasks)
    return sorted({name for name in named if name is not None})


def _images(
    request: InitRequest, tasks: list[FoundTask], host: HostFound | None, faults: list[Fault]
) -> dict[str, str]:
    images: dict[str, str] = {}
    for task in tasks:
        name = _named(request, task)
        known = None if host is None or name is None else host.images.get(name)
        if name is not None and _PINNED.fullmatch(name):
            images[task.name] = name
        elif known is not None:
            images[task.name] = known.reference
        else:
            flag = f"--image {task.path.name}=NAME@sha256:DIGEST, or --image for all tasks"
            if host is None:
                flag += ", or --ask-host with an image name"
            found = f"{name}, which is not on the host" if host and name else name or ""
            faults.append(
                missing("the image's digest", flag=flag, found=found, where=str(task.path))
            )
    return images


def _found(
    request: InitRequest,
    repository: Repository,
    head: str,
    material: Material,
    tasks: list[FoundTask],
    ssh: Ssh,
    images: dict[str, str],
    host: HostFound | None,
    version: str,
) -> Found:
    places: dict[str, str] = {}
    for task in tasks:
        name = _named(request, task)
        known = None if host is None or name is None else host.images.get(name)
        places[task.name] = place_of(request, material, task, known.place if known else "")
    home = f"{host.home}/xgent-evolve" if host is not None and host.home.startswith("/") else None
    machine = host.architecture if host is not None else ""
    return Found(
        request=request,
        top=repository.root,
        head=head,
        material=material,
        tasks=tasks,
        ssh=ssh,
        images=images,
        places=places,
        remote_root=request.remote_root or home or DEFAULT_ROOT,
        docker_path=request.docker_path or (host.docker_path if host else DEFAULT_DOCKER),
        docker_version=version,
        architecture="aarch64" if machine in {"aarch64", "arm64"} else "x86_64",
    )


def _assumed(found: Found, host: HostFound | None) -> list[Assumed]:
    request = found.request
    assumed: list[Assumed] = []
    if request.remote_root is None:
        reason = "a directory of the login's home" if host else "nobody said another"
        assumed.append(Assumed("runtime.remote_root", found.remote_root, reason))
    if host is None:
        assumed.append(
            Assumed("runtime.codex.architecture", found.architecture, "the host was not asked")
        )
        if request.docker_path is None:
            reason = "the host was not asked"
            assumed.append(Assumed("runtime.docker.path", found.docker_path, reason))
    if request.mode == "compare" and not request.auth_env:
        reason = "where the Codex login lies on a host"
        assumed.append(Assumed("runtime.authentication.path", request.auth_file, reason))
    assumed.append(Assumed("cases[].group", "one for each task", "tasks of one origin share one"))
    reason = "the beginning of each instruction.md"
    assumed.append(Assumed("cases[].observable_requirements", "one line each", reason))
    assumed.append(Assumed("measurement.min_gain", "0.1", "the smallest gain worth having"))
    return assumed


def _write(spec: Path, document: object) -> None:
    """Write the file if it passes everything that `validate` checks; else leave nothing."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    try:
        descriptor = os.open(spec, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InvalidError(
            "the JobSpec cannot be written",
            code="E_INIT_EXISTS" if isinstance(error, FileExistsError) else "E_SPEC_PATH",
            where=str(spec),
            found=error.strerror or str(error),
            fix="give another --spec",
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        build_protocol(load_spec(spec), MemoryBlobs())
    except BaseException:
        spec.unlink(missing_ok=True)
        raise
