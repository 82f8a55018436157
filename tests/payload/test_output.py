"""Output without end is read to its end, and its head and its tail are kept."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine

LIMIT = 65536
HALF = LIMIT // 2
TOOLS = ("cat", "sleep", "mv", "rm", "mkfifo", "mkdir", "sync", "sh", "echo")
"""What the supervisor cannot do without."""


def numbers(size: int) -> bytes:
    """The first bytes of `seq`: every part of them says where it belongs."""
    content, number = bytearray(), 1
    while len(content) < size:
        content += b"%d\n" % number
        number += 1
    return bytes(content[:size])


def kept(size: int) -> tuple[bytes, bytes, bytes]:
    content = numbers(size)
    dropped = b"%d\n" % (size - LIMIT) if size > LIMIT else b""
    return content[:HALF], content[HALF:][-HALF:], dropped


def streams(runner: Any, work: Any, result: Any, name: str) -> tuple[bytes, bytes, bytes]:
    files = result.receipt("exported")["files"]
    head, tail, dropped = (
        runner.content(work, result, name + end) if name + end in files else b""
        for end in ("", ".tail", ".dropped")
    )
    assert not any("part" in key or "turn" in key for key in files)
    return head, tail, dropped


@pytest.mark.parametrize(
    "sizes",
    [
        (0, HALF - 1),
        (HALF, HALF + 1),
        (LIMIT, LIMIT + 1),
        (3 * HALF, 3 * HALF + 5),
        (4 * HALF + 7, 3_000_000),
        (HALF + (4 << 20), HALF + (4 << 20) + 1),
        (HALF + (8 << 20) - 1, HALF + (8 << 20) + HALF),
    ],
)
def test_head_and_tail_are_exact_at_every_border(
    host: Any, kit: Any, sizes: tuple[int, int]
) -> None:
    out, err = sizes
    command = f"seq 1 9999999 | head -c {out}; seq 1 9999999 | head -c {err} >&2"
    work = kit.work(command, output_limit=LIMIT)
    result = host.execute(work)
    assert streams(host, work, result, "stdout") == kept(out)
    assert streams(host, work, result, "stderr") == kept(err)


def test_bytes_that_come_one_at_a_time_are_kept_like_others(host: Any, kit: Any) -> None:
    command = """perl -e '$| = 1; for (1 .. 9000) { print "\\xff"; print STDERR "\\xc3\\xa9" }'"""
    work = kit.work(command, output_limit=8192)
    result = host.execute(work)
    assert streams(host, work, result, "stdout") == (b"\xff" * 4096, b"\xff" * 4096, b"808\n")
    head, tail, dropped = streams(host, work, result, "stderr")
    assert (head + tail, dropped) == (b"\xc3\xa9" * 4096, b"9808\n")


def test_a_gigabyte_does_not_block_the_command_or_fill_the_host(host: Any, kit: Any) -> None:
    work = kit.work("head -c 1000000000 /dev/zero; echo; echo end", output_limit=LIMIT)
    result = host.execute(work, limit_s=120)
    head, tail, dropped = streams(host, work, result, "stdout")
    assert result.record["exit_code"] == 0
    assert (len(head), len(tail), tail[-5:]) == (HALF, HALF, b"\nend\n")
    assert int(dropped) == 1_000_000_005 - LIMIT
    assert sum(result.receipt("exported")["objects"].values()) < 2 * LIMIT


def test_without_the_tools_for_it_the_whole_output_is_kept(host: Any, kit: Any) -> None:
    work = kit.work("i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i + 1)); done")
    work.request["container"]["Env"] = ["PATH=/few"]
    work.request["inputs"] += [
        {
            "path": f"few/{tool}",
            "kind": "link",
            "mode": 0o777,
            "target": f"/bin/{tool}",
            "sha256": None,
            "size": 0,
        }
        for tool in TOOLS
    ]
    result = host.execute(work)
    assert streams(host, work, result, "stdout")[0] == b"".join(b"%d\n" % i for i in range(20000))


BUSYBOX = shutil.which("busybox")


@pytest.mark.parametrize("shell", ["dash", *(["busybox"] if BUSYBOX else [])])
def test_any_posix_shell_with_its_tools_supervises_alike(host: Any, kit: Any, shell: str) -> None:
    works = [
        kit.work("seq 1 9999999 | head -c 3000000; exit 5", output_limit=LIMIT),
        kit.work("echo half-done; sleep 60", limit_s=1),
    ]
    for work in works:
        if shell == "busybox":
            host_config = work.request["container"]["HostConfig"]
            host_config["Mounts"].append(
                {"Type": "bind", "Source": BUSYBOX, "Target": "/bb/busybox", "ReadOnly": True}
            )
            script = b"/bb/busybox mkdir /few; /bb/busybox --install -s /few; exec /few/sh $1\n"
            add_script(work, "xgent/enter.sh", script)
            work.request["container"]["Env"] = ["PATH=/few"]
            work.request["container"]["Entrypoint"] = [
                *("/bb/busybox", "sh", "/xgent/enter.sh", "/xgent/supervisor.sh"),
            ]
    with ThreadPoolExecutor(2) as pool:
        long, late = pool.map(host.execute, works)
    assert streams(host, works[0], long, "stdout") == kept(3_000_000)
    assert (long.record["status"], long.record["exit_code"]) == ("ended", 5)
    assert late.record["expired"] is True
    assert host.content(works[1], late, "stdout") == b"half-done\n"


def add_script(work: Any, path: str, content: bytes) -> None:
    template = next(item for item in work.request["inputs"] if item["path"] == "xgent/plan.sh")
    import hashlib

    sha256 = hashlib.sha256(content).hexdigest()
    work.blobs[sha256] = content
    work.request["inputs"].append(
        {**template, "path": path, "sha256": sha256, "size": len(content)}
    )


def test_a_driving_process_holds_no_whole_file_in_memory(kit: Any) -> None:
    runner = kit.runner()
    work = kit.work("head -c 200000000 /dev/urandom >big")
    work.request["capture"]["max_file_bytes"] = 1 << 30
    runner.send(work)
    runner.drive(work)
    peak = 0
    while runner.look(work)["state"] != "exported":
        for pid in runner.drivers():
            peak = max(peak, peak_kb(pid))
    runner.stop()
    assert 0 < peak < 60_000


def peak_kb(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)
