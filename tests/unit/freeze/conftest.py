"""A small real study: a Git repository, a task, a JobSpec; and the collected real inputs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.spec.load import LoadedSpec, load_spec

SKILL = """---
name: demo
description: Says how to do the demo.
---
# Demo

Never push.
"""

AGENTS = """# Rules

Run the tests first.
Never touch secrets.
"""


TASK = {
    "instruction.md": "Make it print hello.\n",
    "tests/test.sh": "echo 1 > /logs/verifier/reward.txt\n",
    "tests/data/answer.txt": "hello\n",
    "solution/solve.sh": "echo done\n",
    "task.toml": "version = '1.0'\n",
}


@dataclass
class Study:
    """A study on disk; `spec` may be changed before `load` writes and reads it."""

    root: Path
    spec: dict[str, Any]

    @property
    def repo(self) -> Path:
        return self.root / "repo"

    @property
    def task(self) -> Path:
        """Return the task directory of the first case."""
        return self.root / "tasks" / "one"

    def add_case(self, name: str, **changes: Any) -> None:
        """Add a case with a complete task directory of its own."""
        for path, text in TASK.items():
            file = self.root / "tasks" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        base = self.spec["target"]["base_commit"]
        self.spec["cases"].append(
            {
                "id": name,
                "source": {"kind": "repo", "repo": "repo", "base": base},
                "group": name,
                "split": "search",
                "information_cutoff": "2026-01-31",
                "observable_requirements": ["The program prints hello."],
                "task_path": f"tasks/{name}",
                "repo_path": "/work/repo",
                "image": f"sha256:{'a' * 64}",
                **changes,
            }
        )

    def git(self, *arguments: str, repo: Path | None = None) -> str:
        return run_git(repo or self.repo, *arguments)

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file below the repository."""
        file = self.repo / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def commit(self) -> str:
        """Commit everything and stand the spec on it."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "work")
        commit = self.git("rev-parse", "HEAD").strip()
        self.spec["target"]["base_commit"] = commit
        for case in self.spec["cases"]:
            if case["source"]["kind"] == "repo":
                case["source"]["base"] = commit
        return commit

    def load(self) -> LoadedSpec:
        path = self.root / "job.json"
        path.write_text(json.dumps(self.spec, indent=2))
        return load_spec(path)

    def study_agents(self) -> None:
        """Turn the study of a skill into one of AGENTS.md files."""
        self.spec["target"] |= {"surface": "agents", "paths": ["AGENTS.md", "src"]}
        self.spec["conditions"] = [
            {"id": "base", "skill": "absent", "agents": "baseline"},
            {
                "id": "cand",
                "skill": "absent",
                "agents": "candidate",
                "overrides": {"AGENTS.md": AGENTS + "Be brief.\n"},
            },
            {"id": "small", "skill": "absent", "agents": "minimal"},
        ]

    def cross(self) -> None:
        """Cross the skill with AGENTS.md: four conditions beside the control."""
        self.spec["target"]["paths"] = ["skills/demo", "AGENTS.md"]
        texts = {
            "skill": {"skills/demo/SKILL.md": SKILL + "Check twice.\n"},
            "agents": {"AGENTS.md": AGENTS + "Be brief.\n"},
        }
        self.spec["conditions"] = [{"id": "none", "skill": "absent", "agents": "baseline"}] + [
            {
                "id": f"{skill[0]}{agents[0]}",
                "skill": skill,
                "agents": agents,
                "overrides": (texts["skill"] if skill == "candidate" else {})
                | (texts["agents"] if agents == "candidate" else {}),
            }
            for skill in ("baseline", "candidate")
            for agents in ("baseline", "candidate")
        ]
        self.spec |= {"baseline_condition": "bb", "candidate_condition": "cc"}

    def judge(self) -> None:
        """Turn the study into a calibration of rubrics, with its material."""
        for name in ("rubric.json", "manifest.json", "artifacts/one.patch"):
            material = self.root / "evaluation" / name
            material.parent.mkdir(parents=True, exist_ok=True)
            material.write_text(f"{name}\n")
        self.spec |= {"schema_version": 2, "mode": "calibrate"}
        del self.spec["candidate_condition"]
        self.spec["measurement"]["objective"] = "task_quality"
        self.spec["authority"]["evaluation_root"] = "evaluation"
        self.spec["evaluation"] = {
            "root": "evaluation",
            "paths": ["rubric.json", "manifest.json", "artifacts"],
            "rubrics": {case["id"]: "rubric.json" for case in self.spec["cases"]},
            "calibration": "manifest.json",
        }


def run_git(repo: Path, *arguments: str) -> str:
    """Run git with a fixed author and without the machine's configuration."""
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    answer = subprocess.run(
        ["git", *arguments], cwd=repo, env=environment, capture_output=True, check=True
    )
    return answer.stdout.decode(errors="surrogateescape")


def job_spec() -> dict[str, Any]:
    """Return a valid JobSpec of mode compare for the files of the `study` fixture."""
    return {
        "schema_version": 1,
        "protocol_id": "demo-study",
        "question": "Does the longer skill help?",
        "mode": "compare",
        "target": {
            "repo": "repo",
            "base_commit": "0" * 40,
            "surface": "skill",
            "paths": ["skills/demo"],
        },
        "source": {"paths": ["AGENTS.md", "src", "skills"]},
        "runtime": {
            "ssh": {"host": "host.example.org"},
            "remote_root": "/srv/xgent",
            "docker": {"path": "/usr/bin/docker", "version": "20.10"},
            "codex": {"version": "0.162.1", "architecture": "x86_64"},
            "model": "gpt-6.1-sol",
            "effort": "high",
            "tools": ["shell"],
            "authentication": {"source": "host_file", "path": "~/.codex/auth.json"},
        },
        "authority": {
            "repo": "repo",
            "export_paths": ["AGENTS.md", "src", "skills"],
            "auth_path": "~/.codex/auth.json",
        },
        "budget": {
            "max_trials": 40,
            "max_concurrency": 2,
            "trial_timeout_s": 600,
            "deadline_s": 7200,
            "recovery_window_s": 300,
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
        "guardrails": [{"name": "task_contract", "floor": 0}],
        "cases": [],
        "conditions": [
            {"id": "none", "skill": "absent", "agents": "fixed"},
            {"id": "base", "skill": "baseline", "agents": "fixed"},
            {
                "id": "cand",
                "skill": "candidate",
                "agents": "fixed",
                "overrides": {"skills/demo/SKILL.md": SKILL + "Check twice.\n"},
            },
        ],
        "baseline_condition": "base",
        "candidate_condition": "cand",
    }


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Return a study whose repository is committed and whose task is complete."""
    study = Study(tmp_path, job_spec())
    study.repo.mkdir()
    study.git("init", "-q", "-b", "main")
    study.write("AGENTS.md", AGENTS)
    study.write("src/AGENTS.md", "Write small functions.\n")
    study.write("src/main.py", "print('hello')\n")
    study.write("src/run.sh", "#!/bin/sh\nexec python3 main.py\n").chmod(0o755)
    study.write("skills/demo/SKILL.md", SKILL)
    study.write("skills/demo/scripts/go.sh", "echo go\n").chmod(0o755)
    study.write("skills/other/SKILL.md", SKILL.replace("demo", "other"))
    study.write("private.txt", "not exported\n")
    study.add_case("one")
    study.add_case("two")
    study.commit()
    return study


@pytest.fixture
def git_in() -> Callable[..., str]:
    """Return a function that runs git in a directory."""
    return run_git
