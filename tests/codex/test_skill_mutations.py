"""5,000 broken SKILL.md files: never a traceback, never a hang, always an exit class.

And of what we read, Codex itself drops nothing.
"""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.skill_header import MAX_NAME
from xgent_evolve.freeze.skills import read_skill, skill_warnings
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.memory import MemoryBlobs

if TYPE_CHECKING:
    from tests.codex.conftest import Desk

SEEDS = (
    b"---\nname: review\ndescription: How to review.\n---\nLook once.\n",
    b"---\nname: demo\ndescription: |-\n  two\n  lines\nmetadata:\n  short-description: x\n---\n",
    b'---\nname: "quoted"\ndescription: >-\n  folded\nallowed-tools: [a, b]\n---\n---\nname: [\n',
    b"---\r\nname: windows\r\ndescription: caf\xc3\xa9\r\n---\r\n",
    b"---\n{name: flow, description: 'a: b # c', other: &a [1, 2], again: *a}\n---\n",
)
PIECES = (
    *(b"---", b"\n---\n", b"\n", b"\r", b"\t", b" ", b": ", b":", b"#", b" #", b"\0", b"\xff"),
    *(b"\xef\xbb\xbf", b"\xc3", b"\xe2\x80\xa8", b"\x85", b"\x7f", b"'", b'"', b"\\", b"|", b">"),
    *(b"[", b"]", b"{", b"}", b"&a ", b"*a", b"!!int ", b"!x ", b"? ", b"- ", b"%YAML 9.9\n", b"~"),
    *(
        b"name: x\n",
        b"description:",
        b"metadata: 1\n",
        b"<<: *a\n",
        b"...",
        b"@",
        b"`",
        b"e" * 2000,
    ),
    *(b"[" * 300, b"{" * 300, b"- " * 300, b"&a [*a, *a]\n", b"9" * 5000, b"0x1_0:59", b"\xf0\x9f"),
)


def mutated(chance: random.Random) -> bytes:
    """Return a seed after a few edits of the kinds that people and programs make."""
    text = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 3)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.randint(0, 12))
        match chance.randrange(5):
            case 0:
                text[start:start] = chance.choice(PIECES)
            case 1:
                del text[start:end]
            case 2:
                text[start:end] = chance.choice(PIECES)
            case 3:
                text[start:start] = text[start:end] * chance.randint(1, 9)
            case _:
                text[start:end] = chance.randbytes(end - start)
    return bytes(text)


def samples(seed: int, count: int) -> Iterator[bytes]:
    chance = random.Random(seed)
    return (mutated(chance) for _ in range(count))


@pytest.mark.timeout(60)
def test_five_thousand_mutations_are_read_or_refused_with_a_place() -> None:
    outcomes = {"read": 0, "refused": 0}
    for content in samples(20261201, 5000):
        reading = read_skill(content, "SKILL.md")
        if not reading.faults:
            outcomes["read"] += 1
            assert reading.description
            assert 0 < len(reading.name) <= MAX_NAME
            codes = {item.code for item in skill_warnings(content, "SKILL.md", "review")}
            assert codes <= {"W_SKILL_NAME", "W_SKILL_DESCRIPTION_LENGTH"}
            continue
        outcomes["refused"] += 1
        lines = content.count(b"\n") + content.count(b"\r") + 4 * content.count(b"\x85") + 1
        for fault in reading.faults:
            assert fault.code in {"E_SKILL_YAML", "E_SKILL_MISSING_FIELD", "E_SKILL_NAME"}
            name, line, column = fault.where.split(":")
            assert name == "SKILL.md"
            assert 1 <= int(line) <= lines + 2
            assert int(column) >= 1
            assert fault.fix
    # The mutations reach both sides, or they prove nothing.
    assert min(outcomes.values()) > 500, outcomes


@pytest.mark.codex
def test_codex_lists_every_mutation_that_we_read(desk: Desk) -> None:
    skills = {f"s{number}": content for number, content in enumerate(samples(5, 1500))}
    desk.write({f".agents/skills/{name}/SKILL.md": text for name, text in skills.items()})
    accepted = {name for name, text in skills.items() if not read_skill(text, name).faults}
    assert len(accepted) > 100
    assert accepted - desk.skills().keys() == set()


@pytest.mark.timeout(120)
def test_a_hundred_mutations_on_disk_are_all_told_by_one_refusal(
    tmp_path: Path, small_spec: Callable[[Path, list[str]], Path]
) -> None:
    contents = list(samples(7, 100))
    names = [f"s{number}" for number in range(len(contents))]
    for name, content in zip(names, contents, strict=True):
        path = tmp_path / "repo/skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
    spec = small_spec(tmp_path, names)
    bad = {
        name
        for name, content in zip(names, contents, strict=True)
        if read_skill(content, name).faults
    }
    with pytest.raises(InvalidError) as caught:
        build_protocol(load_spec(spec), MemoryBlobs())
    assert caught.value.exit_code == 2
    told = {fault.where.split("/SKILL.md")[0].rpartition("/")[2] for fault in caught.value.faults}
    assert told == bad


@pytest.fixture
def small_spec() -> Callable[[Path, list[str]], Path]:
    def write(root: Path, fixed: list[str]) -> Path:
        studied = root / "repo/skills/studied/SKILL.md"
        studied.parent.mkdir(parents=True)
        studied.write_text("---\nname: studied\ndescription: x\n---\n")
        task = root / "task"
        for name in ("instruction.md", "tests/test.sh", "solution/solve.sh"):
            (task / name).parent.mkdir(parents=True, exist_ok=True)
            (task / name).write_text("true\n")
        git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], cwd=root / "repo", check=True)
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=root / "repo", check=True, capture_output=True
        ).stdout.decode()
        spec = root / "job.json"
        spec.write_text(json.dumps(document(head.strip(), [f"skills/{name}" for name in fixed])))
        return spec

    return write


def document(head: str, fixed: list[str]) -> dict[str, object]:
    return {
        "schema_version": 1,
        "protocol_id": "fuzz",
        "question": "Which skills can be read?",
        "mode": "smoke",
        "target": {
            "repo": "repo",
            "base_commit": head,
            "surface": "skill",
            "paths": ["skills/studied"],
        },
        "source": {"paths": ["skills"], "fixed_skill_roots": fixed},
        "runtime": {
            "ssh": {"host": "h"},
            "remote_root": "/srv/xgent-evolve",
            "docker": {"path": "/usr/bin/docker", "version": "20.10"},
            "codex": {"version": "0.162.1", "architecture": "x86_64"},
        },
        "authority": {"repo": "repo", "export_paths": ["skills"]},
        "budget": {
            "max_trials": 1,
            "max_concurrency": 1,
            "trial_timeout_s": 60,
            "deadline_s": 60,
            "recovery_window_s": 0,
            "max_retries": 0,
        },
        "measurement": {
            "objective": "task_success",
            "min_gain": 0.1,
            "non_inferiority_margin": 0.05,
            "confidence": 0.95,
            "min_groups": 2,
            "repeats": 1,
        },
        "guardrails": [],
        "cases": [
            {
                "id": "one",
                "source": {"kind": "local", "origin": "here"},
                "group": "one",
                "split": "search",
                "information_cutoff": "2026-01-31",
                "observable_requirements": ["It is done."],
                "task_path": "task",
                "repo_path": "/app",
                "image": f"sha256:{'a' * 64}",
            }
        ],
        "conditions": [
            {"id": "absent", "skill": "absent", "agents": "fixed"},
            {"id": "present", "skill": "baseline", "agents": "fixed"},
        ],
        "baseline_condition": "present",
    }
