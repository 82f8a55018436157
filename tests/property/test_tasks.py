"""Whatever a task.toml holds, reading it ends soon, with settings or with faults."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from xgent_evolve.tasks.fields import FIELDS
from xgent_evolve.tasks.findings import Findings
from xgent_evolve.tasks.settings import read_settings

SEED = 20261201
FILES = 5000
CODES = {"E_SPEC_TASK_TOML", "E_SPEC_TASK_FEATURE", "E_SPEC_RESOURCE"}

WHOLE = b"""\
schema_version = "1.4"
artifacts = ["/app/out.txt"]

[task]
name = "team/task"
authors = [{ name = "A", email = "a@example.invalid" }]

[metadata]
difficulty = "easy"
when = 1979-05-27T07:32:00Z

[agent]
timeout_sec = 120.0

[verifier]
timeout_sec = 60
env = { LEVEL = "3" }

[environment]
docker_image = "base:1"
workdir = "/app"
cpus = 1
memory = "2G"
storage_mb = 10240
mcp_servers = []

[environment.env]
GREETING = "hello"
"""

VALUES = (
    b"0", b"-1", b"1e999", b"nan", b"-inf", b"true", b'""', b'"8G"', b'"\\ud800"', b'"${X}"', b"[]",
    b"[[[]]]", b"{}", b"{a = {b = [{}]}}", b"1979-05-27", b"07:32:00", b"9" * 5000,
    b"0x" + b"f" * 5000, b'"""\n\n"""', b"'\x00'", b"[" * 2000, b'"\xff"', b"'" + b"x" * 70_000,
    b"1_000", b"+5", b"0.0000001", b'["a", 1]', b'{source = "/x", service = "y"}',
)  # fmt: skip

type Mutate = Callable[[random.Random, bytes], bytes]


def flip(rng: random.Random, text: bytes) -> bytes:
    at = rng.randrange(len(text) or 1)
    return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]


def cut(rng: random.Random, text: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:start] + text[end:]


def repeat(rng: random.Random, text: bytes) -> bytes:
    start, end = sorted(rng.randrange(len(text) + 1) for _ in range(2))
    return text[:end] + text[start:end] * rng.choice((1, 2, 40)) + text[end:]


def swap_lines(rng: random.Random, text: bytes) -> bytes:
    lines = text.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def set_value(rng: random.Random, text: bytes) -> bytes:
    """Give a key of the file another value, or any known key any value."""
    if rng.random() < 0.5:
        path = rng.choice(FIELDS).path.encode()
        return text + b"\n[]"[: rng.randrange(2)] + b"\n" + path + b" = " + rng.choice(VALUES)
    lines = text.split(b"\n")
    places = [number for number, line in enumerate(lines) if b"=" in line]
    if places:
        at = rng.choice(places)
        lines[at] = lines[at].partition(b"=")[0] + b"= " + rng.choice(VALUES)
    return b"\n".join(lines)


def add_table(rng: random.Random, text: bytes) -> bytes:
    path = rng.choice(FIELDS).path.encode()
    return text + rng.choice((b"\n[%s]\n", b"\n[[%s]]\nx = 1\n", b"\n[%s.deep.er]\n")) % path


def long_key(rng: random.Random, text: bytes) -> bytes:
    part = rng.choice((b"a.", b'"".', b" a . ", b"'x'."))
    return text + b"\n" + part * rng.choice((5, 50, 5000)) + b"a = 1"


MUTATIONS: tuple[Mutate, ...] = (
    flip, cut, repeat, swap_lines, set_value, set_value, add_table, long_key,
)  # fmt: skip


def test_no_mutated_file_ends_in_anything_but_settings_or_faults() -> None:
    rng = random.Random(SEED)
    begun, slowest, outcomes = time.monotonic(), 0.0, dict[str, int]()
    for _ in range(FILES):
        text = WHOLE
        for _ in range(rng.randrange(1, 5)):
            text = rng.choice(MUTATIONS)(rng, text)
        findings, started = Findings(), time.thread_time()
        read_settings(text, "task.toml", findings)
        slowest = max(slowest, time.thread_time() - started)
        for code in {fault.code for fault in findings.faults} or {"fine"}:
            outcomes[code] = outcomes.get(code, 0) + 1
        for fault in findings.faults:
            assert fault.where.startswith("task.toml")
            assert fault.expected
            assert len(fault.message) < 300
    assert outcomes.keys() == CODES | {"fine"}, outcomes
    assert min(outcomes.values()) > 50, outcomes
    assert slowest < 2
    assert time.monotonic() - begun < 60
