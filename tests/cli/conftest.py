"""A repository with a skill, three tasks, and the templates filled in for them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from xgent_evolve.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SKILL = "---\nname: review\ndescription: How to review.\n---\nLook once.\n"
EDITED = "---\nname: review\ndescription: How to review.\n---\nLook twice.\n"


@dataclass(frozen=True)
class Workshop:
    """A directory in which a template can be filled in and validated."""

    directory: Path
    fillings: dict[str, str]

    def fill(self, template: str) -> Path:
        """Write the filled template and return its path."""
        text = (EXAMPLES / template).read_text(encoding="utf-8")
        text = re.sub(r'"<(MIN_GAIN|MIN_GROUPS)>"', lambda match: self.fillings[match[1]], text)
        filled = re.sub(r"<([A-Z][A-Z0-9_]*)>", lambda match: self.fillings[match[1]], text)
        path = self.directory / template
        path.write_text(filled, encoding="utf-8")
        return path

    def edit(self, path: Path, **parts: object) -> Path:
        """Replace top-level parts of a written JobSpec."""
        path.write_text(json.dumps(json.loads(path.read_text()) | parts, indent=2))
        return path

    def commit(self, repository: Path) -> str:
        """Make everything in a directory of this workshop one more commit; return its id."""
        return commit(repository)


@dataclass(frozen=True)
class Answer:
    """What one command said and how it ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    skill = tmp_path / "repo" / "skills" / "review"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    (skill / "notes.md").write_text("Notes.\n")
    base = commit(tmp_path / "repo")
    for name in ("one", "two", "three"):
        write_task(tmp_path / "tasks" / name)
    checkout = commit(tmp_path / "tasks")
    for name in ("one.json", "two.json", "calibration.json", "artifacts/good.patch"):
        material = tmp_path / "evaluation" / name
        material.parent.mkdir(parents=True, exist_ok=True)
        material.write_text(f"material of {name}\n")
    tasks = {
        f"TASK_{name.upper()}_{key}": value
        for name in ("one", "two", "three")
        for key, value in (
            ("PATH", f"tasks/{name}"),
            ("ORIGIN", "written for this test"),
            ("REQUIREMENT", "greeting.txt says hello"),
            ("IMAGE_DIGEST", f"registry.example/{name}@sha256:{'0' * 64}"),
        )
    }
    fillings = tasks | {
        "EVALUATION_ROOT": "evaluation",
        "TASK_ONE_RUBRIC": "one.json",
        "TASK_TWO_RUBRIC": "two.json",
        "CALIBRATION_MANIFEST": "calibration.json",
        "CALIBRATION_ARTIFACTS": "artifacts",
        "MIN_GAIN": "0.05",
        "MIN_GROUPS": "6",
        "TARGET_REPO": "repo",
        "TARGET_GIT_SHA": base,
        "SKILL_PATH": "skills/review",
        "CANDIDATE_SKILL_TEXT": json.dumps(EDITED)[1:-1],
        "SSH_HOST": "build.example",
        "REMOTE_ROOT": "/srv/xgent-evolve",
        "DOCKER_VERSION": "28.2",
        "CODEX_ARCHITECTURE": "x86_64",
        "HOST_AUTH_PATH": "~/.codex/auth.json",
        "TASK_CHECKOUT": "tasks",
        "TASK_GIT_SHA": checkout,
        "TASK_PATH": "tasks/one",
        "TASK_REQUIREMENT": "greeting.txt says hello",
        "IMAGE_DIGEST": f"registry.example/one@sha256:{'0' * 64}",
        "INFORMATION_CUTOFF": "2026-01-31",
    }
    return Workshop(tmp_path, fillings)


def write_task(directory: Path) -> None:
    """Write a task directory as small as one can be."""
    for name, text in {
        "instruction.md": "Write hello into greeting.txt.\n",
        "tests/test.sh": "#!/bin/sh\ngrep -q hello /app/greeting.txt\n",
        "solution/solve.sh": "#!/bin/sh\necho hello > /app/greeting.txt\n",
    }.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def commit(repository: Path) -> str:
    """Make everything in a directory one commit and return its id."""
    quiet = {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.invalid",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.invalid",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    }

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(repository), *arguments],
            env=os.environ | quiet,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()

    git("init", "--quiet", "--initial-branch=main")
    git("add", "--all")
    git("commit", "--quiet", "--message", "start")
    return git("rev-parse", "HEAD")


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Run one command in this process."""

    def answer(*arguments: str | Path) -> Answer:
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return answer
