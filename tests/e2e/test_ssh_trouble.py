"""Connections that break, freeze, or lead to an unusual account."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest


class Proxy:
    """A TCP proxy that can cut its connections or let them freeze."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.frozen = False
        self.accepted = 0
        self.port = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.open()

    def open(self) -> None:
        """Listen, on the same port as before if there was one."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            server = socket.create_connection(("127.0.0.1", self.target))
            self._pairs.append((client, server))
            generation = len(self._pairs)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(
                    target=self._copy, args=(source, sink, generation), daemon=True
                ).start()

    def _copy(self, source: socket.socket, sink: socket.socket, generation: int) -> None:
        while True:
            try:
                content = source.recv(65536)
            except OSError:
                return
            if not content:
                return
            if self.frozen and generation <= self.freeze_up_to:
                continue
            try:
                sink.sendall(content)
            except OSError:
                return

    def cut(self) -> None:
        """Reset every connection."""
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
        self._pairs.clear()

    def freeze(self) -> None:
        """Swallow everything on the present connections, silently; new ones work."""
        self.freeze_up_to = len(self._pairs)
        self.frozen = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@pytest.fixture
def proxy(sshd: Any) -> Generator[Proxy]:
    proxy = Proxy(sshd.address.port)
    yield proxy
    proxy.close()


def through(proxy: Proxy, sshd: Any, directory: Path) -> Callable[[dict[str, Any]], None]:
    """Return a change of the JobSpec that goes through the proxy, with the same host key."""
    line = Path(sshd.address.known_hosts).read_text()
    known = directory / "known_hosts"
    known.write_text(line.replace(f":{sshd.address.port}", f":{proxy.port}"))

    def change(document: dict[str, Any]) -> None:
        document["runtime"]["ssh"].update(port=proxy.port, known_hosts=str(known))

    return change


@pytest.mark.codex
@pytest.mark.parametrize("trouble", ["cut", "freeze"])
def test_four_trials_survive_a_connection_that_breaks(
    make_study: Callable[..., Any],
    sshd: Any,
    proxy: Proxy,
    tmp_path: Path,
    wait_for: Callable[..., None],
    containers: Callable[[Path], list[str]],
    trouble: str,
) -> None:
    study = make_study(cases=2, delay_s=1.5)
    study.edit(through(proxy, sshd, tmp_path))
    run = tmp_path / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    wait_for(lambda: len(study.model.requests_by_thread) >= 4, "four trials run")
    before = proxy.accepted
    getattr(proxy, trouble)()
    assert process.wait(timeout=150) == 0, study.story.read_text()
    assert proxy.accepted > before, "it connected again"
    assert len(study.model.requests_by_thread) == 4, "and started nothing again"
    assert containers(run) == []
    report = json.loads((run / "report.json").read_text())
    assert report["comparison"]["missing"]["missing_trials"] == 0


@pytest.mark.codex
def test_a_host_that_stays_away_ends_the_command_and_resume_goes_on(
    make_study: Callable[..., Any],
    sshd: Any,
    proxy: Proxy,
    tmp_path: Path,
    wait_for: Callable[..., None],
) -> None:
    study = make_study(cases=1, delay_s=1.0)
    study.edit(through(proxy, sshd, tmp_path))
    study.edit(lambda document: document["budget"].update(recovery_window_s=2))
    run = tmp_path / "run"
    process = study.start("run", "--spec", study.spec, "--output", run)
    wait_for(lambda: len(study.model.requests_by_thread) >= 2, "two trials run")
    proxy.close()
    assert process.wait(timeout=60) == 4
    proxy.open()
    study.call("resume", "--run", run)
    assert len(study.model.requests_by_thread) == 2


@pytest.fixture
def make_login(engine: Any) -> Generator[Callable[..., str]]:
    """Make accounts that may use the engine, with the shell and start-up file of one's choice."""
    assert os.geteuid() == 0, "these tests make accounts, so they run as root"
    made: list[str] = []

    def make(shell: str, start_up: str = "") -> str:
        assert Path(shell).exists(), f"{shell} is not installed; scripts/test installs it"
        name = f"xgt{secrets.token_hex(3)}"
        subprocess.run(["useradd", "--create-home", "--shell", shell, name], check=True)
        made.append(name)
        group = Path(engine.socket).group()
        # A password of `*` matches nothing and, unlike `!`, does not lock the account.
        words = ["usermod", "--append", "--groups", group, "--password", "*", name]
        subprocess.run(words, check=True)
        if start_up:
            home = Path(pwd.getpwnam(name).pw_dir)
            (home / ".bashrc").write_text(start_up)
        return name

    yield make
    for name in made:
        subprocess.run(["pkill", "-KILL", "-u", name], check=False)
        subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)


NOISE = "echo 'Welcome!'; printf 'a\\0b\\377c\\n'; echo 'to stderr' >&2\n"


@pytest.mark.codex
@pytest.mark.parametrize(
    ("shell", "start_up"),
    [("/bin/bash", NOISE), ("/usr/bin/tcsh", ""), ("/usr/bin/fish", "")],
    ids=["noisy bash", "tcsh", "fish"],
)
def test_any_login_shell_and_an_odd_root_will_do(
    smoke: Any,
    start_sshd: Callable[..., Any],
    make_login: Callable[..., str],
    remote_root: Path,
    tmp_path: Path,
    shell: str,
    start_up: str,
) -> None:
    name = make_login(shell, start_up)
    server = start_sshd("MaxSessions 2")
    home = Path(pwd.getpwnam(name).pw_dir)
    root = home / 'an odd root\'s "name"'
    # The verified install is the one of the session, so that it is not downloaded again.
    tools = remote_root / "tools"
    if tools.exists():
        shutil.copytree(tools, root / "tools", copy_function=os.link)
        subprocess.run(["chown", "-R", f"{name}:", root], check=True)

    def change(document: dict[str, Any]) -> None:
        document["runtime"]["remote_root"] = str(root)
        document["runtime"]["ssh"] = server.address.document() | {"user": name}

    spec = smoke.edit(change, "odd.json")
    smoke.call("run", "--spec", spec, "--output", tmp_path / "run")
    case = json.loads((tmp_path / "run" / "report.json").read_text())["smoke"][0]
    assert {case[step]["status"] for step in ("probe", "untouched", "oracle")} == {"passed"}
    owners = {path.owner() for path in root.rglob("*") if not path.is_relative_to(root / "tools")}
    assert owners == {name}, "nothing of another owner is left that the login could not remove"


@pytest.mark.codex
def test_an_alias_with_a_jump_is_followed_as_ssh_does(
    smoke: Any, sshd: Any, start_sshd: Callable[..., Any], tmp_path: Path
) -> None:
    jump, home = start_sshd(), tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    known = home / ".ssh" / "known_hosts"
    servers = {"target": sshd.address, "jump": jump.address}
    known.write_text("".join(Path(item.known_hosts).read_text() for item in servers.values()))
    (home / ".ssh" / "config").write_text(
        "".join(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {item.port}\n  User {item.user}\n"
            f"  IdentityFile {item.identity}\n"
            for name, item in servers.items()
        )
        + "Host target\n  ProxyJump jump\n"
    )

    def change(document: dict[str, Any]) -> None:
        document["runtime"]["ssh"] = {"host": "target"}

    smoke.environment = {"HOME": str(home)}
    spec = smoke.edit(change, "alias.json")
    smoke.call("run", "--spec", spec, "--output", tmp_path / "run")
    assert "Accepted publickey" in jump.log.read_text(), "the way led over the jump host"
