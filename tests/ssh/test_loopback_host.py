"""The loopback host behaves like a real SSH host, as far as a run can tell."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncssh
import pytest

from xgent_evolve.demo.host import LoopbackHost
from xgent_evolve.errors import HostError


@pytest.fixture
def host(tmp_path: Path) -> Iterator[LoopbackHost]:
    with LoopbackHost(tmp_path / "host") as running:
        yield running


def connect(host: LoopbackHost, **changes: object) -> asyncssh.connection._ACMWrapper:
    options: dict[str, object] = {
        "port": host.port,
        "username": host.user,
        "client_keys": [str(host.identity)],
        "known_hosts": str(host.known_hosts),
        "agent_path": None,
        "config": None,
    }
    return asyncssh.connect(host.address, **(options | changes))


def on_connection[Result](
    host: LoopbackHost, use: Callable[[asyncssh.SSHClientConnection], Awaitable[Result]]
) -> Result:
    async def session() -> Result:
        async with connect(host) as connection:
            return await use(connection)

    return asyncio.run(session())


def run(host: LoopbackHost, command: str, **options: object) -> asyncssh.SSHCompletedProcess:
    return on_connection(host, lambda link: link.run(command, encoding=None, **options))


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_output_error_and_exit_status_come_back_apart(host: LoopbackHost) -> None:
    done = run(host, "echo out; echo err >&2; exit 7")

    assert (done.stdout, done.stderr, done.exit_status) == (b"out\n", b"err\n", 7)


def test_every_byte_passes_unchanged_both_ways(host: LoopbackHost) -> None:
    content = bytes(range(256)) * 20_000

    done = run(host, "cat", input=content)

    assert done.stdout == content
    assert done.exit_status == 0


def test_many_commands_share_one_connection(host: LoopbackHost) -> None:
    async def all_at_once(link: asyncssh.SSHClientConnection) -> list[int | None]:
        commands = (link.run(f"sleep 0.3; exit {number}") for number in range(20))
        return [done.exit_status for done in await asyncio.gather(*commands)]

    started = time.monotonic()
    assert on_connection(host, all_at_once) == list(range(20))
    assert time.monotonic() - started < 20 * 0.3


def test_a_death_by_signal_is_told_as_such(host: LoopbackHost) -> None:
    done = run(host, "kill -KILL $$")

    assert done.exit_signal is not None
    assert done.exit_signal[0] == "KILL"


def test_a_signal_of_the_client_reaches_the_command(host: LoopbackHost) -> None:
    async def terminate(link: asyncssh.SSHClientConnection) -> str:
        command = "trap 'echo ended; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
        process = await link.create_process(command)
        assert await process.stdout.readline() == "ready\n"
        process.terminate()
        return (await process.wait()).stdout

    assert on_connection(host, terminate) == "ended\n"


def test_a_command_that_reads_only_part_of_its_input_still_ends(host: LoopbackHost) -> None:
    done = run(host, "head -c 3", input=b"abc" * 1_000_000)

    assert (done.stdout, done.exit_status) == (b"abc", 0)


def test_a_login_without_a_command_is_told_to_give_one(host: LoopbackHost) -> None:
    async def shell(link: asyncssh.SSHClientConnection) -> int | None:
        process = await link.create_process()
        return (await process.wait()).exit_status

    assert on_connection(host, shell) == 1


def test_the_callers_secrets_are_not_in_a_commands_environment(
    host: LoopbackHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XGENT_DEMO_KEY", "a secret")
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://registry.invalid")

    lines = run(host, "env").stdout.decode().splitlines()

    assert "a secret" not in "\n".join(lines)
    assert "NPM_CONFIG_REGISTRY=http://registry.invalid" in lines
    assert f"USER={host.user}" in lines


def test_a_unix_socket_of_the_host_can_be_reached(host: LoopbackHost, tmp_path: Path) -> None:
    socket = tmp_path / "engine.sock"

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        await writer.drain()
        writer.close()

    async def ask(link: asyncssh.SSHClientConnection) -> bytes:
        async with await asyncio.start_unix_server(greet, socket):
            reader, writer = await link.open_unix_connection(str(socket), encoding=None)
            answer = await reader.read()
            writer.close()
            return answer

    assert on_connection(host, ask) == b"hello"


@pytest.mark.parametrize("change", ["user", "key"])
def test_only_the_one_user_with_the_one_key_gets_in(host: LoopbackHost, change: str) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519")
    options = {"username": "somebody"} if change == "user" else {"client_keys": [other]}

    async def attempt() -> None:
        async with connect(host, **options):
            pass

    with pytest.raises(asyncssh.PermissionDenied):
        asyncio.run(attempt())


def test_another_host_key_is_refused_by_the_client(host: LoopbackHost, tmp_path: Path) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    wrong = tmp_path / "known_hosts"
    wrong.write_text(f"[{host.address}]:{host.port} {other}")

    async def attempt() -> None:
        async with connect(host, known_hosts=str(wrong)):
            pass

    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        asyncio.run(attempt())


def test_a_detached_process_outlives_connection_and_server(tmp_path: Path) -> None:
    written = tmp_path / "written"
    work = f"sleep 0.5; echo alive > {written}"
    with LoopbackHost(tmp_path / "host") as host:
        run(host, f"setsid sh -c '{work}' </dev/null >/dev/null 2>&1 &")

    assert not written.exists()
    wait_for(written.exists)


def test_a_lost_connection_does_not_kill_the_command(tmp_path: Path) -> None:
    written = tmp_path / "written"

    async def start_and_abort(link: asyncssh.SSHClientConnection) -> None:
        process = await link.create_process(f"echo on; sleep 0.5; echo alive > {written}")
        await process.stdout.readline()
        link.abort()

    with LoopbackHost(tmp_path / "host") as host:
        on_connection(host, start_and_abort)

    wait_for(written.exists)


def test_a_second_start_is_the_same_host(tmp_path: Path) -> None:
    seen = set()
    for _ in range(2):
        with LoopbackHost(tmp_path / "host") as host:
            assert run(host, "true").exit_status == 0
            known = host.known_hosts.read_text()
            seen.add((host.port, known, host.identity.read_text()))

    assert len(seen) == 1


def test_keys_and_directory_are_private(host: LoopbackHost) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in host.directory.iterdir()}

    assert stat.S_IMODE(host.directory.stat().st_mode) == 0o700
    assert modes["host_key"] == modes["client_key"] == 0o600
    assert set(modes) == {"host_key", "client_key", "known_hosts", "port"}


def test_a_taken_port_is_named_with_the_way_out(host: LoopbackHost) -> None:
    with pytest.raises(HostError) as raised, LoopbackHost(host.directory):
        pass

    assert str(host.port) in raised.value.message
    assert raised.value.fix


def test_nothing_of_a_stopped_host_is_left_in_this_process(tmp_path: Path) -> None:
    before = threading.active_count()
    with LoopbackHost(tmp_path / "host") as host:
        run(host, "true")

    wait_for(lambda: threading.active_count() == before)


def test_as_a_program_it_serves_until_it_is_terminated(tmp_path: Path) -> None:
    directory = tmp_path / "host"
    command = [sys.executable, "-m", "xgent_evolve.demo.host", "--directory", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        ready = json.loads(program.stdout.readline())
        ssh = ["ssh", "-F", os.devnull, "-p", str(ready["port"]), "-i", ready["identity"]]
        ssh += ["-o", f"UserKnownHostsFile={ready['known_hosts']}", "-o", "BatchMode=yes"]
        ssh += ["-o", "StrictHostKeyChecking=yes", f"{ready['user']}@{ready['host']}"]
        done = subprocess.run([*ssh, "echo by openssh; exit 3"], capture_output=True, check=False)
        program.send_signal(signal.SIGTERM)

    assert (done.stdout, done.returncode) == (b"by openssh\n", 3), done.stderr
    assert program.returncode == 0
