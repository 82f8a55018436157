"""What the quick commands load: none of the heavy packages (style, A1 line 11)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"asyncssh", "docker", "numpy", "rich", "scipy", "cryptography", "requests"}
MODELS = {"pydantic", "yaml"}

SCRIPT = """
import json, sys
from xgent_evolve.cli.main import main
code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.split(".")[0] for name in sys.modules})]))
"""


def loaded_by(*arguments: str) -> tuple[int, set[str]]:
    """Run a command in a fresh interpreter; return its exit code and the packages it loaded."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    code, packages = json.loads(done.stdout.splitlines()[-1])
    return code, set(packages)


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("validate", "--help")])
def test_help_and_version_load_no_heavy_package(arguments: tuple[str, ...]) -> None:
    code, packages = loaded_by(*arguments)
    assert code == 0
    assert packages & HEAVY == set()


def test_help_does_not_even_load_the_models() -> None:
    assert loaded_by("--help")[1] & MODELS == set()


def test_validate_loads_no_heavy_package(tmp_path: Path) -> None:
    job = write_smallest_study(tmp_path)
    code, packages = loaded_by("validate", "--spec", str(job))
    assert code == 0
    assert packages & HEAVY == set()


def write_smallest_study(directory: Path) -> Path:
    """Fill the smoke template in for a repository with one skill and one task."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=A", "-c", "user.email=a@example.invalid")
        return subprocess.run(
            ["git", "-C", str(directory), *identity, *arguments],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    for name, text in {
        "skill/SKILL.md": "---\nname: skill\ndescription: A skill.\n---\n",
        "task/instruction.md": "Do it.\n",
        "task/tests/test.sh": "#!/bin/sh\n",
        "task/solution/solve.sh": "#!/bin/sh\n",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "start")
    commit = git("rev-parse", "HEAD")
    fillings = {
        "TARGET_REPO": ".",
        "TARGET_GIT_SHA": commit,
        "SKILL_PATH": "skill",
        "SSH_HOST": "host",
        "REMOTE_ROOT": "/srv/x",
        "DOCKER_VERSION": "28",
        "CODEX_ARCHITECTURE": "x86_64",
        "TASK_CHECKOUT": ".",
        "TASK_GIT_SHA": commit,
        "TASK_PATH": "task",
        "TASK_REQUIREMENT": "it is done",
        "IMAGE_DIGEST": f"sha256:{'0' * 64}",
        "INFORMATION_CUTOFF": "2026-01-31",
    }
    template = Path(__file__).parents[2] / "examples" / "public-smoke.json"
    text = template.read_text(encoding="utf-8")
    for name, value in fillings.items():
        text = text.replace(f"<{name}>", value)
    job = directory / "job.json"
    job.write_text(text, encoding="utf-8")
    return job
