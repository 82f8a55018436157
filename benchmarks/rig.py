"""Real parts for benchmarks: an SSH server, the local engine, a frozen study that does nothing.

Whatever is started here is ended here, and nothing else.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.demo.engine import LocalEngine, find_base_image, local_engine
from xgent_evolve.demo.study import write_study
from xgent_evolve.execution.credential import Credentials
from xgent_evolve.execution.events import Silent
from xgent_evolve.execution.executor import Executor
from xgent_evolve.execution.facts import Ledger
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.harbor.inputs import HostFacts, ImageFacts
from xgent_evolve.harbor.requests import Planner
from xgent_evolve.ids import ExecutionId, execution_id
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.preflight import inspect_host
from xgent_evolve.spec.load import load_spec
from xgent_evolve.spec.models_v1 import Ssh
from xgent_evolve.store.rundir import RunDir


@dataclass(frozen=True)
class Rig:
    """A host that can be reached, and a JobSpec for it whose only task does nothing."""

    directory: Path
    engine: LocalEngine
    image: str
    ssh: Ssh
    spec: Path

    def ssh_command(self, *options: str) -> list[str]:
        """Return an OpenSSH command line up to the host's name."""
        return [
            *("ssh", "-F", "none", "-p", str(self.ssh.port), "-i", str(self.ssh.identity)),
            *("-o", f"UserKnownHostsFile={self.ssh.known_hosts}", "-o", "BatchMode=yes"),
            *options,
            f"{self.ssh.user}@{self.ssh.host}",
        ]

    @contextmanager
    def kept_connection(self) -> Generator[list[str]]:
        """Yield an OpenSSH command line that uses one connection for all of its calls."""
        control = self.directory / "control"
        options = ("-o", f"ControlPath={control}")
        master = self.ssh_command("-M", "-N", *options)
        process = subprocess.Popen(master, stdin=subprocess.DEVNULL)
        try:
            wait_until(control.exists)
            yield self.ssh_command(*options)
        finally:
            process.terminate()
            process.wait(timeout=10)


@contextmanager
def rig() -> Generator[Rig]:
    """Start an SSH server and write the study; remove everything at the end."""
    engine, image = local_engine(), find_base_image()
    with tempfile.TemporaryDirectory(prefix="xgent-bench-") as name:
        directory = Path(name)
        with ssh_server(directory / "ssh") as ssh:
            yield Rig(directory, engine, image, ssh, write_spec(directory, engine, image, ssh))


@contextmanager
def ssh_server(home: Path) -> Generator[Ssh]:
    """Run an OpenSSH server on the loopback address with keys of its own."""
    binary = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if binary is None:
        raise SystemExit("openssh-server is not installed; scripts/test installs it")
    home.mkdir()
    for key in ("host_key", "client_key"):
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / key)]
        subprocess.run(words, check=True)
    shutil.copy(home / "client_key.pub", home / "authorized_keys")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (home / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host_key\n"
        f"AuthorizedKeysFile {home}/authorized_keys\nPasswordAuthentication no\n"
        f"PermitRootLogin prohibit-password\nPidFile {home}/pid\nUsePAM no\nStrictModes no\n"
        # A home of its own, so that nobody's login files are timed.
        f"MaxSessions 64\nSetEnv HOME={home}\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with (home / "log").open("wb") as log:
        words = [binary, "-D", "-e", "-f", str(home / "config")]
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        wait_until(lambda: listens(port))
        kind, key, *_ = (home / "host_key.pub").read_text().split()
        (home / "known_hosts").write_text(f"[127.0.0.1]:{port} {kind} {key}\n")
        yield Ssh(
            host="127.0.0.1",
            port=port,
            user=getpass.getuser(),
            known_hosts=str(home / "known_hosts"),
            identity=str(home / "client_key"),
        )
    finally:
        process.terminate()
        process.wait(timeout=10)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition: Callable[[], bool], limit_s: float = 30) -> None:
    """Wait until `condition()` holds."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("the benchmark's own parts did not come up")
        time.sleep(0.02)


def write_spec(directory: Path, engine: LocalEngine, image: str, ssh: Ssh) -> Path:
    """Write a study with one task whose verifier does nothing; no model is ever called."""
    spec = write_study(
        directory / "study",
        ssh=ssh,
        remote_root=str(directory / "remote"),
        image=image,
        docker_path=engine.path,
        docker_version=engine.version,
        base_url="http://127.0.0.1:9/v1",
        architecture=engine.architecture,
        key_env="XGENT_BENCH_KEY",
    )
    document = json.loads(spec.read_text())
    document["cases"] = document["cases"][:1]
    spec.write_text(json.dumps(document))
    task = spec.parent / document["cases"][0]["task_path"]
    (task / "tests" / "test.sh").write_text("#!/bin/sh\n:\n")
    return spec


@dataclass
class Controller:
    """Everything that a run has, without a workflow: executions are asked for by number."""

    protocol: Protocol
    executor: Executor
    planner: Planner

    async def noop(self, name: str) -> float:
        """Carry out one execution with every receipt; return the command's own seconds."""
        slot = f"bench/{name}"
        uuid = ExecutionId(execution_id(self.planner.run_id, slot, 1))
        case, condition = self.protocol.cases[0], self.protocol.conditions[0]
        planned = self.planner.grade(uuid, condition, case, [], {})
        artifacts = await self.executor.execute(planned, slot, 1)
        duration_ms = artifacts.duration_ms()
        if duration_ms is None:
            raise SystemExit(f"a no-op execution failed: {artifacts.failure or artifacts.engine}")
        return duration_ms / 1000


@asynccontextmanager
async def controller(rig: Rig, name: str) -> AsyncGenerator[Controller]:
    """Freeze the study into a new run directory and connect to the host."""
    path = rig.directory / name
    loaded = load_spec(rig.spec)
    with RunDir.draft(path) as draft:
        protocol = build_protocol(loaded, draft.blobs)
        draft.write_protocol(protocol.to_bytes())
    rundir = RunDir.open(path)
    payload = {key: rundir.blobs.get(digest) for key, digest in protocol.payload.items()}
    runtime = protocol.spec.runtime
    root = runtime.remote_root
    host = Host(runtime.ssh, root, payload, recovery_window_s=10, on_story=lambda _text: None)
    async with host:
        report = await inspect_host(host, runtime, protocol.spec.cases)
        with rundir.lock(), rundir.open_journal() as journal:
            executor = Executor(
                host=host,
                rundir=rundir,
                journal=journal,
                ledger=Ledger(),
                credentials=Credentials(runtime, {}),
                socket=report.socket,
                observer=Silent(),
            )
            images = {rig.image: ImageFacts(id=rig.image, path="/usr/bin:/bin")}
            facts = HostFacts(
                socket=report.socket,
                engine_id=report.engine.id,
                tool="none",
                apparmor=False,
                images=images,
            )
            planner = Planner(protocol, rundir.blobs, rundir.run_id, facts)
            yield Controller(protocol, executor, planner)
