"""The container engine of this machine and the demo's base image in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from socket import AF_UNIX
from socket import socket as Socket  # noqa: N812 - `socket` is a path here
from typing import TYPE_CHECKING, Final, cast

from xgent_evolve.errors import HostError

if TYPE_CHECKING:
    from docker import DockerClient

BASE_IMAGE: Final = "xgent-evolve/base:bookworm"
"""The image that scripts/demo makes: a minimal Debian."""

_DEFAULT_SOCKET: Final = "/var/run/docker.sock"
_ARCHITECTURES: Final = {
    "amd64": "x86_64",
    "x86_64": "x86_64",
    "arm64": "aarch64",
    "aarch64": "aarch64",
}
_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """What a JobSpec says about the engine."""

    path: str
    """The docker command."""
    version: str
    """Version without the packager's suffix, as `runtime.docker.version` wants it."""
    socket: str
    """Path of the engine's socket."""
    architecture: str
    """Native architecture, as `runtime.codex.architecture` wants it."""


def local_engine() -> LocalEngine:
    """Return the engine of this machine.

    Raises:
        HostError: there is no docker command, no running engine, or no permission to use it.

    """
    path = shutil.which("docker")
    if path is None:
        raise HostError(
            "the docker command is not installed",
            expected="a command `docker` on PATH",
            fix="run scripts/demo, or install docker.io (Debian) and start its daemon",
        )
    socket = _socket()
    with _client(socket) as client:
        facts = cast("Mapping[str, object]", client.version())  # pyright: ignore[reportUnknownMemberType]
    version = re.match(r"\d+(\.\d+)*", str(facts.get("Version", "")))
    architecture = _ARCHITECTURES.get(str(facts.get("Arch", "")))
    if version is None or architecture is None:
        raise HostError(
            "the engine is of a kind that the demo does not know",
            where=socket,
            expected="a Docker engine on x86_64 or aarch64",
            found=f"version {facts.get('Version')!r}, architecture {facts.get('Arch')!r}",
            fix="use a Docker engine, 20.10 or newer",
        )
    return LocalEngine(path, version[0], socket, architecture)


def find_base_image() -> str:
    """Return the id (`sha256:…`) of the demo's base image.

    Raises:
        HostError: the engine does not answer or does not have the image.

    """
    from docker.errors import ImageNotFound

    socket = _socket()
    with _client(socket) as client:
        try:
            return str(client.images.get(BASE_IMAGE).id)
        except ImageNotFound as error:
            raise HostError(
                f"the image {BASE_IMAGE} is missing",
                where=socket,
                fix="run scripts/demo, which makes it",
            ) from error


def _socket() -> str:
    address = os.environ.get("DOCKER_HOST", f"unix://{_DEFAULT_SOCKET}")
    if not address.startswith("unix://"):
        raise HostError(
            "the demo needs an engine on this machine",
            where="environment variable DOCKER_HOST",
            expected="unset, or unix:///path/of/the/socket",
            found=address,
            fix="unset DOCKER_HOST for the demo",
        )
    return address.removeprefix("unix://")


@contextmanager
def _client(socket: str) -> Generator[DockerClient]:
    """Yield a client of the engine; whatever the engine refuses becomes a HostError."""
    import docker
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        # The SDK leaves its socket open when nobody answers, and says less about the reason.
        with Socket(AF_UNIX) as knock:
            knock.settimeout(_TIMEOUT_S)
            knock.connect(socket)
        client = docker.DockerClient(
            base_url=f"unix://{socket}", version="auto", timeout=_TIMEOUT_S
        )
    except (DockerException, RequestException, OSError) as error:
        raise _unreachable(socket, error) from error
    try:
        yield client
    except (DockerException, RequestException) as error:
        raise _unreachable(socket, error) from error
    finally:
        client.close()


def _unreachable(socket: str, error: Exception) -> HostError:
    fix = "start the engine: run scripts/demo as root, or `systemctl start docker`"
    if isinstance(error, PermissionError):
        fix = "join the group of the socket (`sudo usermod -aG docker $USER`, then log in again)"
    return HostError(
        "the container engine does not answer",
        where=socket,
        expected="a running Docker engine that this user may use",
        found=str(error),
        fix=fix,
    )
