"""The host of a study: what its flags say, and what it answers when it may be asked."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xgent_evolve.api.init.request import InitRequest, missing
from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.errors import Fault, HostError
from xgent_evolve.remote.ssh import connect, ssh_errors
from xgent_evolve.spec.locate import Value
from xgent_evolve.spec.runtime import Ssh
from xgent_evolve.spec.shape import fit

_HOST = re.compile(r"(?:(?P<user>[^@\s]+)@)?(?P<host>\[[^\]]+\]|[^:\s]+)(?::(?P<port>\d{1,5}))?")
_MARK = "xgent-evolve-init "
_ANSWER_S = 60


@dataclass(frozen=True, slots=True)
class ImageFound:
    """An image on the host."""

    reference: str
    """By digest, or by id where it has none."""
    place: str
    """Its working directory; may be empty."""


@dataclass(frozen=True, slots=True)
class HostFound:
    """What a host said of itself."""

    architecture: str
    home: str
    docker_path: str
    docker_version: str
    images: dict[str, ImageFound] = field(default_factory=dict[str, ImageFound])
    """By the name that was asked for."""


def ssh_of(request: InitRequest, faults: list[Fault]) -> Ssh | None:
    """Return the way to the host that the flags name; None with the fault added."""
    if request.host is None:
        faults.append(missing("the host", flag="--host [user@]host[:port]"))
        return None
    match = _HOST.fullmatch(request.host)
    values: dict[str, Value] = {"known_hosts": request.known_hosts, "identity": request.identity}
    if match is not None:
        host = match["host"].strip("[]")
        port = None if match["port"] is None else int(match["port"])
        values |= {"host": host, "user": match["user"], "port": port}
        ssh, _ = fit(Ssh, values)
        if ssh is not None:
            return ssh
    faults.append(missing("the host", flag="--host [user@]host[:port]", found=request.host))
    return None


def ask_host(ssh: Ssh, docker_path: str | None, images: Sequence[str]) -> HostFound:
    """Ask the host what it is; nothing is changed there.

    Raises:
        SshError: there is no trustworthy connection.
        HostError: it does not answer as a host with an engine does.

    """
    return run_interruptible(_ask(ssh, docker_path, images), next_step="ask again")


async def _ask(ssh: Ssh, docker_path: str | None, images: Sequence[str]) -> HostFound:
    connection = await connect(ssh)
    try:
        with ssh_errors(ssh):
            done = await connection.run(
                "/bin/sh -s", input=_script(docker_path, images), timeout=_ANSWER_S
            )
    finally:
        connection.close()
        await connection.wait_closed()
    return _found(ssh, images, str(done.stdout or ""), str(done.stderr or ""))


def _script(docker_path: str | None, images: Sequence[str]) -> str:
    """Return a script whose answers are marked: a login may print whatever it likes."""
    docker = shlex.quote(docker_path) if docker_path else '"$(command -v docker)"'
    form = "{{json .Id}} {{json .RepoDigests}} {{json .Config.WorkingDir}}"
    lines = [
        f'say() {{ printf \'{_MARK}%s %s\\n\' "$1" "$2"; }}',
        f"docker={docker}",
        'say architecture "$(uname -m)"',
        'say home "$HOME"',
        'say docker "$docker"',
        'say version "$("$docker" version --format \'{{.Server.Version}}\')"',
        *(
            f"say {shlex.quote(f'image {index}')}"
            f' "$("$docker" image inspect --format {shlex.quote(form)} {shlex.quote(image)})"'
            for index, image in enumerate(images)
        ),
    ]
    inspected = "\n".join(lines)
    return f"{inspected}\nexit 0\n"


def _found(ssh: Ssh, images: Sequence[str], stdout: str, stderr: str) -> HostFound:
    said: dict[str, str] = {}
    for line in stdout.splitlines():
        if line.startswith(_MARK):
            key, _, value = line.removeprefix(_MARK).partition(" ")
            said.setdefault(key, value)
    # Packagers append their own: 20.10.24+dfsg1.
    version = re.match(r"\d+(?:\.\d+)*", said.get("version", ""))
    if not said.get("docker") or version is None:
        raise HostError(
            "the host has no engine that this login can use",
            code="E_REMOTE_ENGINE",
            where=f"runtime.ssh: {ssh.host}",
            expected="a docker command that reaches its engine",
            found=(stderr.strip().splitlines() or ["no docker command"])[-1],
            fix="give --docker-path, start the engine, or let the login use it",
        )
    return HostFound(
        architecture=said.get("architecture", ""),
        home=said.get("home", ""),
        docker_path=said["docker"],
        docker_version=version[0],
        images=_images(stdout, images),
    )


def _images(answer: str, names: Sequence[str]) -> dict[str, ImageFound]:
    found: dict[str, ImageFound] = {}
    for line in answer.splitlines():
        match = re.fullmatch(rf"{_MARK}image (\d+) (\"\S+\") (\[.*\]|null) (\".*\")", line)
        if match is None:
            continue
        digests = cast("list[str]", json.loads(match[3]) or [])
        reference = digests[0] if digests else str(json.loads(match[2]))
        found[names[int(match[1])]] = ImageFound(reference, str(json.loads(match[4])))
    return found
