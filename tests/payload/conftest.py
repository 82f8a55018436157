"""The host runner on a real engine, reached over pipes as the controller reaches it over SSH.

Nothing is simulated: a `serve` process answers frames, driving processes drive, the engine runs
containers. Every command reports its start by a line in a directory of the host, which is the
account that no fault may make wrong.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import threading
import time
import uuid as uuids
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from xgent_evolve.demo.engine import find_base_image, local_engine
from xgent_evolve.freeze.code import payload_files
from xgent_evolve.remote.bootstrap import runner_archive

type Json = Any

MARKER = b"\n<<xgent-host-runner 1>>\n"
SIZES = struct.Struct(">II")
PLAN = """\
limit_s={limit_s}
output_limit={output_limit}
credential_to='{credential_to}'
stdin_from=/dev/null
prepare() {{ :; }}
collect() {{ :; }}
"""
CREDENTIAL = b'{"OPENAI_API_KEY": "sk-0123456789abcdef0123456789"}'
ENDED = {"exported", "failed", "gap", "cancelled", "cleaned"}


class RefusedError(Exception):
    """The runner answered with an error: code, message and facts are its arguments."""


class RunnerGoneError(Exception):
    """The serving process ended before it answered."""


@dataclass
class Work:
    """One execution: its request and the bytes that it names."""

    request: dict[str, Json]
    blobs: dict[str, bytes]
    counter: Path
    secret: bytes = b""

    @property
    def uuid(self) -> str:
        return self.request["uuid"]

    @property
    def name(self) -> str:
        return f"xg-{self.uuid}"

    def text(self) -> str:
        return json.dumps(self.request, sort_keys=True)

    def starts(self) -> int:
        """How often the command was started."""
        try:
            return len(self.counter.read_text().splitlines())
        except FileNotFoundError:
            return 0

    def again(self) -> Work:
        """The same work under another identity, as a retried attempt has it."""
        request = copy.deepcopy(self.request)
        request["uuid"] = str(uuids.uuid4())
        return Work(request, self.blobs, self.counter, self.secret)


@dataclass
class Result:
    """What the host says of an execution that has ended."""

    receipts: list[dict[str, Json]]

    @property
    def kinds(self) -> list[str]:
        return [item["kind"] for item in self.receipts]

    def receipt(self, kind: str) -> dict[str, Json]:
        return next(item for item in self.receipts if item["kind"] == kind)

    @property
    def state(self) -> str:
        return self.receipts[-1]["kind"]

    @property
    def record(self) -> dict[str, Json] | None:
        return self.receipt("exported")["record"]

    @property
    def delivery(self) -> dict[str, Json]:
        return self.receipt("exported")["delivery"]

    def outcome(self) -> Json:
        """What two drives of one request must have in common."""
        if "exported" not in self.kinds:
            last = next(item for item in self.receipts if item["kind"] in ENDED)
            reason = re.sub(r"xg-[0-9a-f-]{36}", "xg-UUID", last.get("reason", ""))
            return {"kind": last["kind"], "cause": last.get("cause"), "reason": reason}
        exported = self.receipt("exported")
        record = exported["record"] or {}
        return {
            "record": {key: record.get(key) for key in ("status", "exit_code", "expired")},
            "command_started": exported.get("command_started"),
            "files": exported["files"],
            "delivery": exported["delivery"],
            "redactions": exported["redactions"],
        }


class Runner:
    """A `serve` process for one root, started again whenever it is gone."""

    def __init__(self, archive: Path, root: Path, socket: str, python: str) -> None:
        self.archive = archive
        self.root = root
        self.socket = socket
        self.python = python
        self.process: subprocess.Popen[bytes] | None = None
        self.waiting: dict[int, tuple[Future[Json], list[tuple[str, bytes]]]] = {}
        self.lock = threading.Lock()
        self.numbers = iter(range(1, 1 << 30))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [self.python, "-I", self.archive, "serve", self.root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self.process.stdout is not None
        seen = self.process.stdout.read(len(MARKER))
        assert seen == MARKER, seen
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def stop(self) -> None:
        """End the connection, as a controller that leaves does."""
        process = self.process
        if process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        process.wait(timeout=10)
        self.process = None

    def _read(self, process: subprocess.Popen[bytes]) -> None:
        stream = process.stdout
        while len(header := stream.read(8)) == 8:
            json_size, body_size = SIZES.unpack(header)
            document = json.loads(stream.read(json_size))
            body = stream.read(body_size)
            done, objects = self.waiting[document["id"]]
            if "sha256" in document:
                objects.append((document["sha256"], body))
            elif "progress" not in document:
                done.set_result(document)
        stream.close()
        process.wait()
        for done, _ in self.waiting.values():
            if not done.done():
                done.set_exception(RunnerGoneError())

    def ask(self, verb: str, body: bytes = b"", **document: Json) -> Json:
        """Ask one verb; raises RefusedError or RunnerGoneError."""
        return self.ask_for_objects(verb, body, **document)[0]

    def ask_for_objects(self, verb: str, body: bytes = b"", **document: Json) -> Json:
        if self.process is None or self.process.poll() is not None:
            raise RunnerGoneError
        number = next(self.numbers)
        done, objects = self.waiting[number] = (Future(), [])
        content = json.dumps({**document, "verb": verb, "id": number}).encode()
        try:
            with self.lock:
                self.process.stdin.write(SIZES.pack(len(content), len(body)) + content + body)
                self.process.stdin.flush()
        except BrokenPipeError as error:
            raise RunnerGoneError from error
        answer = done.result(timeout=120)
        if not answer["ok"]:
            error = answer["error"]
            raise RefusedError(error["code"], error["message"], error["facts"])
        return answer["result"], objects

    def insist(self, verb: str, body: bytes = b"", **document: Json) -> Json:
        """Ask again when the answer is lost, as the controller does, or a fault is injected."""
        for _ in range(4):
            try:
                return self.ask(verb, body, **document)
            except RunnerGoneError:
                self.stop()
                self.start()
            except RefusedError as error:
                if "fault at" not in error.args[1]:
                    raise
        raise AssertionError(f"{verb} is never answered")

    # An execution's life.

    def send(self, work: Work) -> None:
        """Upload what is missing and accept."""
        wanted = [{"sha256": key, "size": len(value)} for key, value in work.blobs.items()]
        missing = set(self.insist("missing", blobs=wanted))
        items = [
            {**item, "length": item["size"], "last": True}
            for item in wanted
            if item["sha256"] in missing
        ]
        body = b"".join(work.blobs[item["sha256"]] for item in items)
        self.insist("put", body, blobs=items)
        item = {"uuid": work.uuid, "request": work.text()}
        assert self.insist("accept", executions=[item]) == {work.uuid: "accepted"}

    def drive(self, work: Work) -> None:
        self.insist("drive", work.secret, uuids=[work.uuid], with_secret=bool(work.secret))

    def look(self, work: Work) -> dict[str, Json]:
        return self.insist("observe", seen={work.uuid: 0}, wait_s=0)[work.uuid]

    def wait(self, work: Work, limit_s: float = 60) -> Result:
        """Drive until it has ended, as often as somebody must."""
        end = time.monotonic() + limit_s
        receipts: list[dict[str, Json]] = []
        while time.monotonic() < end:
            seen = {work.uuid: len(receipts)}
            found = self.insist("observe", seen=seen, wait_s=10)[work.uuid]
            receipts += found["receipts"]
            if found["state"] in ENDED:
                return Result(receipts)
            assert found["state"] not in {"absent", "damaged"}, found
            if not found["driven"] and not found["receipts"]:
                self.drive(work)
        raise AssertionError(f"not ended within {limit_s} s: {found}, {receipts[-1]}")

    def until(self, work: Work, kind: str, limit_s: float = 30) -> None:
        """Wait until a receipt of that kind is on record."""
        wait_for(
            lambda: kind in [item["kind"] for item in self.look(work)["receipts"]],
            f"{kind} is on record",
            limit_s,
        )

    def execute(self, work: Work, limit_s: float = 60) -> Result:
        """Carry out one execution from nothing to its end."""
        self.send(work)
        self.drive(work)
        return self.wait(work, limit_s)

    def content(self, work: Work, result: Result, name: str) -> bytes:
        """Return an exported file, verified."""
        fact = result.receipt("exported")["files"][name]
        return self.objects(work, [fact["sha256"]])[fact["sha256"]]

    def objects(self, work: Work, hashes: list[str]) -> dict[str, bytes]:
        pairs = [[work.uuid, key] for key in hashes]
        found: dict[str, bytes] = dict.fromkeys(hashes, b"")
        for key, part in self.ask_for_objects("fetch", objects=pairs)[1]:
            found[key] += part
        for key, content in found.items():
            assert hashlib.sha256(content).hexdigest() == key
        return found

    def clean(self, work: Work) -> dict[str, Json]:
        return self.insist("cleanup", uuids=[work.uuid], socket=self.socket)[work.uuid][-1]

    def drivers(self) -> list[int]:
        """Processes that serve or drive this root."""
        wanted = str(self.root).encode()
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if wanted in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
        return found


def wait_for(condition: Callable[[], bool], what: str, limit_s: float = 30) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"not within {limit_s} s: {what}"
        time.sleep(0.02)


@dataclass
class Kit:
    """Makes runners and requests; removes whatever it made."""

    directory: Path
    archive: Path
    docker: str
    socket: str
    image: str
    run_id: str = field(default_factory=lambda: str(uuids.uuid4()))
    runners: list[Runner] = field(default_factory=list)

    def runner(
        self, root: Path | None = None, *, faults: Json = None, python: str = sys.executable
    ) -> Runner:
        """Start a runner, with the faults that are due in it and in what it drives."""
        root = root or self.directory / f"root-{uuids.uuid4().hex[:8]}"
        root.mkdir(parents=True, exist_ok=True)
        if faults is not None:
            (root / "faults.json").write_text(json.dumps(faults))
        runner = Runner(self.archive, root, self.socket, python)
        runner.start()
        self.runners.append(runner)
        return runner

    def work(
        self,
        command: str,
        *,
        files: Mapping[str, bytes] | None = None,
        changes: list[Json] | None = None,
        blobs: Mapping[str, bytes] | None = None,
        from_image: str | None = None,
        limit_s: int = 30,
        output_limit: int = 65536,
        user: int = 0,
        secret: bytes = b"",
        paths: list[str] | None = None,
        directories: list[str] | None = None,
        image: str | None = None,
        memory_mb: int = 256,
        socket: str | None = None,
        before: str = "",
    ) -> Work:
        """Return an execution whose command first reports its start."""
        identity = str(uuids.uuid4())
        account = self.directory / "account" / identity
        account.mkdir(parents=True)
        account.chmod(0o777)
        kept: dict[str, bytes] = dict(blobs or {})

        def entry(path: str, content: bytes, mode: int = 0o644) -> Json:
            sha256 = hashlib.sha256(content).hexdigest()
            kept[sha256] = content
            size = len(content)
            fact = {"kind": "file", "mode": mode, "sha256": sha256, "size": size, "target": None}
            return {"path": path, **fact}

        workdir = from_image or "/work"
        credential_to = "/home/agent/auth.json" if secret else ""
        plan = PLAN.format(limit_s=limit_s, output_limit=output_limit, credential_to=credential_to)
        script = f"{before}echo start >>/account/starts\ncd {workdir} || exit 99\n{command}\n"
        inputs = [
            entry("xgent/supervisor.sh", payload_files()["supervisor.sh"], 0o755),
            entry("xgent/plan.sh", plan.encode()),
            entry("xgent/command.sh", script.encode()),
        ]
        mounts = [{"Type": "bind", "Source": str(account), "Target": "/account"}]
        memory = memory_mb << 20
        tmpfs = {"/home/agent": f"rw,mode=700,uid={user},gid={user}"} if secret else {}
        request = {
            "schema_version": 1,
            "uuid": identity,
            "run_id": self.run_id,
            "kind": "agent",
            "engine": {"socket": socket or self.socket},
            "container": {
                "Image": image or self.image,
                "Entrypoint": ["/bin/sh", "/xgent/supervisor.sh"],
                "Cmd": [],
                "User": f"{user}:{user}",
                "WorkingDir": "/",
                "Env": [],
                "HostConfig": {
                    "Init": True,
                    "LogConfig": {"Type": "none"},
                    "NetworkMode": "none",
                    "PidsLimit": 512,
                    "Memory": memory,
                    "MemorySwap": memory,
                    "Tmpfs": tmpfs,
                    "Mounts": mounts,
                },
            },
            "user_id": user,
            "inputs": inputs,
            "directories": directories or [],
            "workspace": {
                "path": workdir,
                "from_image": from_image is not None,
                "owner": user or None,
                "remove": [],
                "entries": [entry(path, content) for path, content in (files or {}).items()],
                "changes": changes or [],
                "ensure": [],
            },
            "capture": {
                "workspace": True,
                "exclude": [".git"],
                "max_file_bytes": 64 << 20,
                "paths": paths or [],
            },
            "secrets": bool(secret),
            "limit_s": limit_s,
            "grace_s": 30,
        }
        return Work(request, kept, account / "starts", secret)

    def engine(self, *words: str, check: bool = True) -> str:
        """Run the engine's command line."""
        done = subprocess.run(
            [self.docker, "-H", f"unix://{self.socket}", *words], capture_output=True, text=True
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout.strip()

    def close(self) -> None:
        for runner in self.runners:
            runner.stop()
        ours = f"label=xgent.run={self.run_id}"
        if containers := self.engine("ps", "-aq", "--filter", ours).split():
            self.engine("rm", "-f", "-v", *containers)
        if volumes := self.engine("volume", "ls", "-q", "--filter", ours).split():
            self.engine("volume", "rm", *volumes)


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runner as it is shipped."""
    path = tmp_path_factory.mktemp("archive") / "runner.pyz"
    path.write_bytes(runner_archive(payload_files()))
    return path


def make_kit(directory: Path, archive: Path) -> Kit:
    engine = local_engine()
    socket = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    return Kit(directory, archive, engine.path, socket, find_base_image())


@pytest.fixture(scope="session")
def kit(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Iterator[Kit]:
    directory = tmp_path_factory.mktemp("kit")
    kit = make_kit(directory, archive)
    yield kit
    kit.close()


@pytest.fixture(scope="session")
def host(kit: Kit) -> Runner:
    """One runner without faults, for every test that needs nothing of its own."""
    return kit.runner()


@pytest.fixture
def small_root(kit: Kit) -> Generator[Path]:
    """A root on a file system of a few megabytes."""
    root = kit.directory / f"small-{uuids.uuid4().hex[:8]}"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", root], check=True)
    yield root
    subprocess.run(["umount", "-l", root], check=True)
    shutil.rmtree(root, ignore_errors=True)
