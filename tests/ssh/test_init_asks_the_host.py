"""init --ask-host: a real connection, a real engine, and no change on the host."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from xgent_evolve.api.init.request import InitRequest
from xgent_evolve.api.init.write import init
from xgent_evolve.demo.engine import BASE_IMAGE, find_base_image
from xgent_evolve.demo.host import LoopbackHost
from xgent_evolve.errors import HostError, SpecError, SshError

pytestmark = pytest.mark.engine

GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LoopbackHost]:
    with LoopbackHost(tmp_path / "host") as running:
        yield running


@pytest.fixture
def request_(tmp_path: Path, host: LoopbackHost) -> InitRequest:
    files = {
        "repo/skills/review/SKILL.md": "---\nname: review\ndescription: x\n---\n",
        "tasks/one/instruction.md": "Do it.\n",
        "tasks/one/tests/test.sh": "true\n",
        "tasks/one/solution/solve.sh": "true\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*GIT, *words], cwd=tmp_path / "repo", check=True)
    return InitRequest(
        repo=tmp_path / "repo",
        spec=tmp_path / "job.json",
        tasks=tmp_path / "tasks",
        host=f"{host.user}@{host.address}:{host.port}",
        known_hosts=str(host.known_hosts),
        identity=str(host.identity),
        ask_host=True,
        images=(BASE_IMAGE,),
    )


def changed(request: InitRequest, **values: object) -> InitRequest:
    fields = {name: getattr(request, name) for name in InitRequest.__slots__}
    return InitRequest(**(fields | values))  # pyright: ignore[reportArgumentType]


def test_engine_architecture_and_image_are_what_the_host_says(request_: InitRequest) -> None:
    written = init(request_)
    spec = json.loads(request_.spec.read_text())
    version = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, check=True
    ).stdout.decode()
    assert version.startswith(spec["runtime"]["docker"]["version"])
    assert spec["runtime"]["docker"]["version"].count(".") >= 1
    assert Path(spec["runtime"]["docker"]["path"]).name == "docker"
    assert spec["runtime"]["codex"]["architecture"] == os.uname().machine
    assert spec["cases"][0]["image"] == find_base_image()
    assert spec["runtime"]["remote_root"].endswith("/xgent-evolve")
    assert not Path(spec["runtime"]["remote_root"]).exists()
    assert {item.path for item in written.assumed}.isdisjoint({"runtime.docker.path"})


def test_an_image_that_is_not_there_is_told_with_its_name(request_: InitRequest) -> None:
    with pytest.raises(SpecError) as caught:
        init(changed(request_, images=("xgent-evolve/nowhere:1",)))
    (fault,) = caught.value.faults
    assert (fault.code, fault.found) == (
        "E_INIT_MISSING",
        "xgent-evolve/nowhere:1, which is not on the host",
    )
    assert not request_.spec.exists()


def test_a_host_without_docker_is_a_failure_of_the_host(request_: InitRequest) -> None:
    with pytest.raises(HostError) as caught:
        init(changed(request_, docker_path="/nowhere/docker"))
    assert (caught.value.code, caught.value.exit_code) == ("E_REMOTE_ENGINE", 4)
    assert "/nowhere/docker" in caught.value.found


def test_a_host_that_is_not_known_is_not_asked(request_: InitRequest, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("")
    with pytest.raises(SshError) as caught:
        init(changed(request_, known_hosts=str(tmp_path / "empty")))
    assert caught.value.code == "E_SSH_HOSTKEY_UNKNOWN"
