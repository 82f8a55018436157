"""The profile of system calls, on the engine and with Codex's own sandbox (requirement E4)."""

from __future__ import annotations

import copy
import json
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.demo.engine import find_base_image
from xgent_evolve.harbor.codex import probe_toml

pytestmark = [pytest.mark.engine, pytest.mark.codex]

type Json = Any

PROFILE = Path(__file__).parents[2] / "xgent_evolve" / "payload" / "seccomp.json"
COMMON = {
    "pidfd_getfd": (438, 438),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
NUMBERS = {
    **COMMON,
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "setns": (308, 268),
    "chroot": (161, 51),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "syslog": (103, 116),
    "vhangup": (153, 58),
}
"""Number of each refused call on x86_64 and aarch64."""
NEED_NO_RIGHT = ("ptrace", "keyctl", "add_key", "io_uring_setup", "kcmp", "name_to_handle_at")
"""Calls of which the kernel itself says something else than "not permitted"."""
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
NOT_PERMITTED, NO_SUCH_CALL = 1, 38


def calls(numbers: dict[str, int]) -> str:
    """Return a command that prints the error of each call with worthless arguments."""
    body = " ".join(f"{name} {number}" for name, number in numbers.items())
    return (
        "perl -e 'my %call = @ARGV; for my $name (sort keys %call) { $! = 0; "
        "my $r = syscall($call{$name} + 0, -1, 0, 0, 0, 0, 0); "
        f'printf "%s %d\\n", $name, $r == -1 ? $! : 0 }}\' {body}'
    )


REFUSED = calls({name: pair[COLUMN] for name, pair in NUMBERS.items()})


@pytest.fixture(scope="module")
def run(codex_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Json]:
    """Run a command in a container as the agent's, in Codex's sandbox or beside it."""
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_bytes(probe_toml("trial"))
    image = find_base_image()

    def run(
        command: str, *, seccomp: Path | str = PROFILE, sandbox: bool = True, mounts: str = ""
    ) -> subprocess.CompletedProcess[str]:
        prepare = (
            "mkdir -p /home/agent/.codex /app/.git && cp /config.toml /home/agent/.codex/ && exec "
        )
        inner = ["/opt/codex/bin/codex", "sandbox", "-P", "trial", "--"] if sandbox else []
        words = [
            *("docker", "run", "--rm", "--user", "1000:1000", "--cap-drop", "ALL"),
            *("--network", "none", "--security-opt", "no-new-privileges"),
            *("--security-opt", "systempaths=unconfined", "--security-opt", f"seccomp={seccomp}"),
            *("--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777"),
            *("--tmpfs", "/home/agent:rw,mode=700,uid=1000,gid=1000"),
            *("--tmpfs", "/app:rw,mode=755,uid=1000,gid=1000", "--workdir", "/app"),
            *("--volume", f"{codex_directory}:/opt/codex:ro"),
            *("--volume", f"{config}:/config.toml:ro", *mounts.split()),
            *("--env", "HOME=/home/agent", "--env", "CODEX_HOME=/home/agent/.codex"),
            *("--env", "PATH=/usr/bin:/bin", "--entrypoint", "/bin/sh", image),
            *("-c", prepare + '"$@"', "sh", *inner, "/bin/sh", "-c", command),
        ]
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    return run


def errors_of(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    assert done.returncode == 0, done.stderr
    pairs = [line.split() for line in done.stdout.splitlines()]
    return {name: int(number) for name, number in pairs}


@pytest.mark.parametrize("sandbox", [True, False], ids=["shell", "driver"])
def test_dangerous_calls_are_refused(run: Callable[..., Json], sandbox: bool) -> None:
    errors = errors_of(run(REFUSED, sandbox=sandbox))
    assert set(errors) == set(NUMBERS)
    assert {name for name, error in errors.items() if error != NOT_PERMITTED} == set()


def test_without_the_profile_the_kernel_answers_instead(run: Callable[..., Json]) -> None:
    errors = errors_of(run(REFUSED, sandbox=False, seccomp="unconfined"))
    assert NOT_PERMITTED not in {errors[name] for name in NEED_NO_RIGHT}


def without(name: str) -> Json:
    profile = copy.deepcopy(json.loads(PROFILE.read_text()))
    for rule in profile["syscalls"]:
        rule["names"] = [item for item in rule["names"] if item != name]
    profile["syscalls"] = [rule for rule in profile["syscalls"] if rule["names"]]
    return profile


def without_namespaces() -> Json:
    profile = copy.deepcopy(json.loads(PROFILE.read_text()))
    rules = profile["syscalls"]
    profile["syscalls"] = [
        rule for rule in rules if rule["names"] != ["clone"] or rule["args"][0]["valueTwo"] == 0
    ]
    return profile


@pytest.mark.parametrize("name", ["mount", "pivot_root", "umount2", "unshare", "clone"])
def test_each_call_beyond_the_everyday_ones_is_needed(
    run: Callable[..., Json], tmp_path: Path, name: str
) -> None:
    profile = tmp_path / "seccomp.json"
    profile.write_text(json.dumps(without_namespaces() if name == "clone" else without(name)))
    done = run("echo sandboxed", seccomp=profile)
    assert done.returncode != 0
    assert "sandboxed" not in done.stdout
    assert "not permitted" in done.stderr.lower() or "namespace" in done.stderr, done.stderr


def test_namespaces_that_the_sandbox_does_not_use_are_refused(run: Callable[..., Json]) -> None:
    unshares = [f"unshare -{flag} true 2>/dev/null && echo {flag}" for flag in "umpinCT"]
    done = run(f"{'; '.join(unshares)}; unshare -U true && echo users", sandbox=False)
    assert done.stdout.split() == ["users"]


TOOLS = r"""
set -e
git init -q r; cd r; echo one >a; git add a; git -c user.name=n -c user.email=e@e commit -qm m
git checkout -qb b; echo two >>a; git stash -q; git stash pop -q; git diff --stat; git gc -q
git status --short; git worktree add -q ../w; git log --oneline | wc -l
python3 - <<'END'
import concurrent.futures, mmap, multiprocessing, os, sqlite3, subprocess, tempfile
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(abs, range(9))) == list(range(9))
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(abs, [1, -2]) == [1, 2]
assert subprocess.run(["true"]).returncode == 0
with tempfile.TemporaryFile() as f, sqlite3.connect("t.db") as db:
    f.write(b"x" * 5000); f.flush(); mmap.mmap(f.fileno(), 5000)[0]
    db.execute("create table t (a)"); db.commit()
os.sched_getaffinity(0); os.getloadavg(); os.nice(1); os.memfd_create("m")
print("python-ok")
END
perl -MPOSIX -e 'pipe(R, W); if (fork) { close W; print <R>; wait } else { print W "perl-ok\n" }'
dash -c 'trap "" HUP; (sleep 0.1 &) ; ulimit -n >/dev/null; echo dash-ok' | cat
tar -cf t.tar a && mkdir x && tar -C x -xpf t.tar && gzip -k t.tar
find . -newer a -o -name '*.db' -size +1k | xargs ls -la >/dev/null; mkfifo p; touch -d @0 a
sort -S 1M --parallel=2 a | awk '{print}' | sed s/o/0/ | grep -c 0
timeout 5 nice -n 1 nohup sh -c 'echo nohup-ok' 2>/dev/null; flock t.db echo flock-ok
echo all-tools
"""


def test_ordinary_programs_run_in_the_agents_shell(run: Callable[..., Json]) -> None:
    """This machine's programs, which are more than the image's: git and python3 are among them."""
    done = run(TOOLS, mounts="--volume /usr:/usr:ro")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {"python-ok", "perl-ok", "dash-ok", "nohup-ok", "flock-ok", "all-tools"} <= set(
        done.stdout.split()
    )
