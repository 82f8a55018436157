"""A missing or unusable engine is explained with the cure."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from xgent_evolve.demo.engine import find_base_image, local_engine
from xgent_evolve.errors import HostError


@pytest.fixture
def docker_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    command = tmp_path / "bin/docker"
    command.parent.mkdir()
    command.write_text("#!/bin/sh\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(command.parent))
    return command


def failure() -> HostError:
    with pytest.raises(HostError) as raised:
        local_engine()
    assert raised.value.fix
    return raised.value


def test_a_machine_without_docker_is_told_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "not installed" in failure().message


def test_a_silent_socket_is_named(
    docker_command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nobody.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

    error = failure()

    assert error.where == str(path)
    assert "scripts/demo" in error.fix


def test_an_engine_elsewhere_is_not_taken_for_this_machines(
    docker_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://engine.invalid:2375")

    assert "DOCKER_HOST" in failure().where


def serve(path: Path, answers: list[bytes]) -> threading.Thread:
    """Answer one client, which knocks first and then opens a connection per request."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def live() -> None:
        with server:
            server.accept()[0].close()
            for body in answers:
                connection, _ = server.accept()
                with connection:
                    connection.recv(65536)
                    status = b"404 Not Found" if b"No such image" in body else b"200 OK"
                    head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n" % status
                    close = b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
                    connection.sendall(head + close + body)

    thread = threading.Thread(target=live, daemon=True)
    thread.start()
    return thread


def test_the_packagers_suffix_is_not_part_of_the_version(
    docker_command: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "engine.sock"
    facts = b'{"ApiVersion": "1.41", "Version": "20.10.24+dfsg1", "Arch": "arm64"}'
    served = serve(path, [facts, facts])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

    engine = local_engine()
    served.join()

    assert (engine.path, engine.socket) == (str(docker_command), str(path))
    assert (engine.version, engine.architecture) == ("20.10.24", "aarch64")


def test_a_missing_base_image_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine.sock"
    facts = b'{"ApiVersion": "1.41"}'
    served = serve(path, [facts, b'{"message": "No such image: x"}'])
    monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")

    with pytest.raises(HostError) as raised:
        find_base_image()
    served.join()

    assert "scripts/demo" in raised.value.fix
