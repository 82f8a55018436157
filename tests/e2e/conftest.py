"""Real parts for whole runs: an SSH server, the local engine, Codex, and a scripted model.

Nothing here is skipped: a missing part is an error that says what is missing.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from xgent_evolve.demo.engine import LocalEngine, find_base_image, local_engine
from xgent_evolve.demo.model import ScriptedModel
from xgent_evolve.demo.search_study import write_search_study
from xgent_evolve.demo.study import write_study
from xgent_evolve.spec.models_v1 import Ssh

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XGENT_EVOLVE_CACHE", ROOT / ".cache"))
KEY_VARIABLE = "XGENT_TEST_MODEL_KEY"


@pytest.fixture(scope="session")
def engine() -> LocalEngine:
    """The engine of this machine; HostError says how to get one."""
    return local_engine()


@pytest.fixture(scope="session")
def base_image(engine: LocalEngine) -> str:
    return find_base_image()


@pytest.fixture(scope="session")
def remote_root(engine: LocalEngine) -> Path:
    """One root for the whole session, so that Codex is installed once."""
    return CACHE.resolve() / "test-remote"


@dataclass(frozen=True)
class Sshd:
    """A running OpenSSH server on the loopback address."""

    address: Ssh
    log: Path


@contextmanager
def serve_ssh(home: Path, *lines: str) -> Generator[Sshd]:
    """Run an OpenSSH server on the loopback address, with further lines of configuration."""
    binary = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    assert binary is not None, "openssh-server is not installed; scripts/test installs it"
    for name in ("host_key", "client_key"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", home / name], check=True
        )
    shutil.copy(home / "client_key.pub", home / "authorized_keys")
    (home / "authorized_keys").chmod(0o644)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    configuration = (
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host_key\n"
        f"AuthorizedKeysFile {home}/authorized_keys\nPasswordAuthentication no\n"
        f"PermitRootLogin prohibit-password\nPidFile {home}/pid\nUsePAM no\nStrictModes no\n"
    )
    (home / "config").write_text(configuration + "".join(f"{line}\n" for line in lines))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    log = home / "log"
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [binary, "-D", "-e", "-f", home / "config"], stdout=stream, stderr=stream
        )
    try:
        _wait_for(lambda: _listens(port), "sshd listens")
        kind, key, *_ = (home / "host_key.pub").read_text().split()
        (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
        address = Ssh(
            host="127.0.0.1",
            port=port,
            user=getpass.getuser(),
            known_hosts=str(home / "known_hosts"),
            identity=str(home / "client_key"),
        )
        yield Sshd(address, log)
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.fixture(scope="session")
def sshd() -> Generator[Sshd]:
    with open_directory() as home, serve_ssh(home) as server:
        yield server


@contextmanager
def open_directory() -> Generator[Path]:
    """Make a temporary directory that every login may enter."""
    with TemporaryDirectory(prefix="xgent-sshd-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def start_sshd() -> Generator[Callable[..., Sshd]]:
    """Start further servers, with lines of configuration of their own."""
    with ExitStack() as stack:

        def start(*lines: str) -> Sshd:
            home = stack.enter_context(open_directory())
            return stack.enter_context(serve_ssh(home, *lines))

        yield start


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(condition: Callable[[], bool], what: str, limit_s: float = 60) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def wait_for() -> Callable[..., None]:
    return _wait_for


@dataclass
class Study:
    """The demo study on this machine, and the command line to drive it."""

    directory: Path
    spec: Path
    model: ScriptedModel
    key: str
    cache: Path
    """Where the command keeps what it may use again."""
    environment: Mapping[str, str] = field(default_factory=dict)

    def command(self, *arguments: str | Path) -> list[str]:
        return [sys.executable, "-m", "xgent_evolve", *map(str, arguments)]

    def all_variables(self) -> dict[str, str]:
        """Return the environment of the command line."""
        return {
            **os.environ,
            KEY_VARIABLE: self.key,
            "XDG_CACHE_HOME": str(self.cache),
            "XDG_STATE_HOME": str(self.directory / "state"),
            **self.environment,
        }

    def call(self, *arguments: str | Path, check: int | None = 0) -> subprocess.CompletedProcess:
        """Run the command line to its end."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.all_variables(),
            capture_output=True,
            text=True,
            timeout=280,
        )
        if check is not None:
            assert done.returncode == check, done.stderr + done.stdout
        return done

    def start(
        self, *arguments: str | Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen:
        """Start the command line and return at once; what it says goes to `story`."""
        with self.story.open("wb") as stream:
            return subprocess.Popen(
                self.command(*arguments),
                env={
                    **self.all_variables(),
                    "XGENT_EVOLVE_DEBUG": "1",
                    **(environment or {}),
                },
                stdout=stream,
                stderr=stream,
            )

    @property
    def story(self) -> Path:
        return self.directory / "story"

    def edit(self, change: Callable[[dict[str, Any]], None], name: str = "job.json") -> Path:
        """Change the JobSpec by a function and return its path."""
        document = json.loads(self.spec.read_text())
        change(document)
        path = self.spec.with_name(name)
        path.write_text(json.dumps(document))
        return path


@pytest.fixture(scope="session")
def checked_tasks(
    tmp_path_factory: pytest.TempPathFactory,
    sshd: Sshd,
    engine: LocalEngine,
    base_image: str,
    remote_root: Path,
) -> Path:
    """A cache that holds the checks of the demo's tasks, so that no test has to repeat them."""
    home = tmp_path_factory.mktemp("checked")
    with ScriptedModel(key="unused") as model:
        spec = write_demo(home, sshd, engine, base_image, remote_root, model)
        study = Study(home, spec, model, "unused", home / "cache")
        study.call("run", "--spec", study.edit(as_smoke), "--output", home / "run")
    return study.cache


def write_demo(
    directory: Path,
    sshd: Sshd,
    engine: LocalEngine,
    base_image: str,
    remote_root: Path,
    model: ScriptedModel,
) -> Path:
    return write_study(
        directory / "study",
        ssh=sshd.address,
        remote_root=str(remote_root),
        image=base_image,
        docker_path=engine.path,
        docker_version=engine.version,
        base_url=model.base_url,
        architecture=engine.architecture,
        key_env=KEY_VARIABLE,
    )


@pytest.fixture
def make_study(
    tmp_path: Path,
    sshd: Sshd,
    engine: LocalEngine,
    base_image: str,
    remote_root: Path,
    checked_tasks: Path,
) -> Generator[Callable[..., Study]]:
    """Make demo studies; `cases` keeps the first few, `delay_s` slows the model's answers."""
    models: list[ScriptedModel] = []

    def make(
        *, cases: int | None = None, delay_s: float = 0.0, key: str = "key-0123456789abcdef"
    ) -> Study:
        model = ScriptedModel(key=key, delay_s=delay_s)
        model.__enter__()
        models.append(model)
        spec = write_demo(tmp_path, sshd, engine, base_image, remote_root, model)
        study = Study(tmp_path, spec, model, key, checked_tasks)
        if cases is not None:
            study.edit(lambda document: document.update(cases=document["cases"][:cases]))
        return study

    yield make
    for model in models:
        model.__exit__(None, None, None)


@pytest.fixture(scope="session")
def search_checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache of task checks for every search study of the session."""
    return tmp_path_factory.mktemp("search") / "cache"


@pytest.fixture
def make_search_study(
    tmp_path: Path,
    sshd: Sshd,
    engine: LocalEngine,
    base_image: str,
    remote_root: Path,
    search_checks: Path,
) -> Generator[Callable[..., Study]]:
    """Make the demo study of mode search."""
    with ExitStack() as stack:

        def make(*, delay_s: float = 0.0, key: str = "key-0123456789abcdef") -> Study:
            model = stack.enter_context(ScriptedModel(key=key, delay_s=delay_s))
            spec = write_search_study(
                tmp_path / "study",
                ssh=sshd.address,
                remote_root=str(remote_root),
                image=base_image,
                docker_path=engine.path,
                docker_version=engine.version,
                base_url=model.base_url,
                architecture=engine.architecture,
                key_env=KEY_VARIABLE,
            )
            return Study(tmp_path, spec, model, key, search_checks)

        yield make


@pytest.fixture
def kill_when(wait_for: Callable[..., None]) -> Callable[..., None]:
    """Kill a controller with SIGKILL as soon as something holds."""

    def kill(process: subprocess.Popen, condition: Callable[[], bool], what: str) -> None:
        wait_for(lambda: condition() or process.poll() is not None, what)
        assert process.poll() is None, "the controller ended before it was killed"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)

    return kill


@pytest.fixture
def containers(engine: LocalEngine) -> Callable[[Path], list[str]]:
    """List the containers and volumes that exist for a run."""

    def find(run: Path) -> list[str]:
        run_id = json.loads((run / "run.json").read_text())["run_id"]
        return listed(engine, f"label=xgent.run={run_id}")

    return find


def listed(engine: LocalEngine, condition: str) -> list[str]:
    """Return the names of containers and volumes that meet a filter of the engine."""
    found: list[str] = []
    for words in (
        ["ps", "-a", "--format", "{{.Names}}"],
        ["volume", "ls", "--format", "{{.Name}}"],
    ):
        done = subprocess.run(
            [engine.path, *words, "--filter", condition], capture_output=True, text=True, check=True
        )
        found += done.stdout.split()
    return found


@dataclass(frozen=True)
class StartOracle:
    """Every start of a container of our runs, as the engine itself announced it."""

    log: Path
    runs: Path

    def starts(self) -> list[str]:
        """Return the executions that were started, once per start."""
        ours = {
            json.loads(line)["fact"]["uuid"]
            for journal in self.runs.glob("**/journal.jsonl")
            for line in journal.read_bytes().split(b"\n")[:-1]
            if b'"type":"intent"' in line
        }
        names = [line.removeprefix("xg-") for line in self.log.read_text().split()]
        return [name for name in names if name in ours]

    def twice(self) -> set[str]:
        seen = self.starts()
        return {name for name in seen if seen.count(name) > 1}


@pytest.fixture(scope="session", autouse=True)
def oracle(engine: LocalEngine, tmp_path_factory: pytest.TempPathFactory) -> Generator[StartOracle]:
    """Listens to the engine for the whole session: the payment oracle of these tests."""
    log = tmp_path_factory.mktemp("oracle") / "starts"
    words = ["events", "--filter", "type=container", "--filter", "event=start"]
    with log.open("wb") as stream:
        process = subprocess.Popen(
            [engine.path, *words, "--format", "{{.Actor.Attributes.name}}"], stdout=stream
        )
    found = StartOracle(log, tmp_path_factory.getbasetemp())
    yield found
    time.sleep(0.5)
    process.terminate()
    process.wait(timeout=10)
    assert found.twice() == set(), "some execution was started twice"


def as_smoke(document: dict[str, Any]) -> None:
    """Change a comparison to a smoke run, which needs no model."""
    document["mode"] = "smoke"
    document.pop("candidate_condition")
    for name in ("model", "effort", "authentication"):
        document["runtime"].pop(name)
    document["runtime"]["tools"] = []


@pytest.fixture
def smoke(make_study: Callable[..., Study]) -> Study:
    """A study of one case without a model: four executions, a few seconds."""
    study = make_study(cases=1)
    study.spec = study.edit(as_smoke, "smoke.json")
    return study


@pytest.fixture(scope="session")
def without_times() -> Callable[[Any], Any]:
    """Take out recorded times: the only thing in which two runs of one protocol may differ."""

    def strip(document: Any) -> Any:
        match document:
            case dict():
                return {key: strip(item) for key, item in document.items() if key[-2:] != "_s"}
            case list():
                return [strip(item) for item in document]
            case _:
                return document

    return strip


@dataclass(frozen=True)
class Harbor:
    """Harbor's own programs, in an environment of their own."""

    programs: Path
    environment: dict[str, str]

    def read(self, jobs: Path) -> dict[str, int]:
        """Return how much of an export Harbor's models and its validator accept; all of it."""
        script = Path(__file__).with_name("harbor_models.py")
        done = subprocess.run(
            [self.programs / "python", script, jobs],
            env=self.environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def harbor(tmp_path: Path) -> Harbor:
    programs = CACHE / "harbor-0.24.0" / "bin"
    if not (programs / "harbor").exists():
        reason = f"Harbor is not installed in {programs.parent}; scripts/test does it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    own = {
        "HOME": str(tmp_path),
        "HARBOR_TELEMETRY": "0",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    return Harbor(programs, {**os.environ, **own})
