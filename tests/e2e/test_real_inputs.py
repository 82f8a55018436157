"""Skills and tasks that others published go the whole way, byte for byte."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml

TARGET, FIXED = "secret-code", "system-info"
TASKS = ("hello-world-task", "demo_task")
ADDED = "Read it also for hello and world, and for whatever benchflow says hello to."
"""What the candidate adds to the description: enough to be read for either task."""


@pytest.fixture(scope="session")
def inputs() -> Path:
    """The directory of published inputs; it is never part of this repository."""
    given = os.environ.get("XGENT_EVOLVE_TEST_INPUTS")
    if not given:
        missing("XGENT_EVOLVE_TEST_INPUTS does not name a directory of published inputs")
    directory = Path(given)
    for name in (f"skills/{TARGET}", f"skills/{FIXED}", *(f"tasks/{task}" for task in TASKS)):
        if not (directory / name).is_dir():
            missing(f"XGENT_EVOLVE_TEST_INPUTS has no {name}")
    return directory


def missing(reason: str) -> NoReturn:
    """Skip at a developer's desk; fail where everything is promised to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@dataclass(frozen=True)
class RealRun:
    """A finished run over real inputs."""

    inputs: Path
    path: Path
    candidate: str
    """The candidate's SKILL.md."""
    report: dict[str, Any]
    stdout: str
    requests_by_thread: Mapping[str, int]

    def sessions(self) -> dict[tuple[str, str], str]:
        """Return what Codex recorded of each conversation, by condition and case."""
        found: dict[tuple[str, str], str] = defaultdict(str)
        for path in self.path.glob("executions/*/artifacts.json"):
            artifacts = json.loads(path.read_text())
            _, condition, case, _, kind = artifacts["slot"].split("/")
            for name, item in artifacts["files"].items():
                if kind == "agent" and name.startswith("sessions/"):
                    digest = artifacts["blobs"][item["sha256"]].removeprefix("blake3:")
                    blob = self.path / "blobs" / digest[:2] / digest[2:]
                    found[condition, case] += texts(blob.read_text())
        return dict(found)


def texts(rollout: str) -> str:
    """Return every string of a session record, without JSON's escapes, one below the other."""
    found: list[str] = []
    waiting: list[object] = [json.loads(line) for line in rollout.splitlines()]
    while waiting:
        match waiting.pop():
            case str() as text:
                found.append(text)
            case dict() as item:
                waiting.extend(item.values())
            case list() as items:
                waiting.extend(items)
    return "\n".join(found)


@pytest.fixture
def real_run(make_study: Callable[..., Any], inputs: Path) -> RealRun:
    study = make_study()
    repository = study.spec.parent / "published"
    commit = write_repository(repository, inputs)
    for task in TASKS:
        shutil.copytree(inputs / "tasks" / task, study.spec.parent / "tasks" / task)
    text = (inputs / "skills" / TARGET / "SKILL.md").read_text()
    head = yaml.safe_load(text.split("---\n")[1])
    candidate = text.replace(head["description"], f"{head['description']} {ADDED}", 1)

    def put_real_inputs(document: dict[str, Any]) -> None:
        image = document["cases"][0]["image"]
        roots = [f"skills/{TARGET}", f"skills/{FIXED}"]
        document["target"] = {
            "repo": "published",
            "base_commit": commit,
            "surface": "skill",
            "paths": roots[:1],
        }
        document["source"] = {"paths": roots, "fixed_skill_roots": roots[1:]}
        document["authority"].update(repo="published", export_paths=roots)
        document["cases"] = [case(task, image) for task in TASKS]
        arms = {"absent": {}, "baseline": {}, "candidate": {f"{roots[0]}/SKILL.md": candidate}}
        document["conditions"] = [
            {"id": level, "skill": level, "agents": "baseline", "overrides": overrides}
            for level, overrides in arms.items()
        ]
        document["baseline_condition"] = "baseline"

    run = study.directory / "run"
    done = study.call("run", "--spec", study.edit(put_real_inputs), "--output", run)
    report = json.loads((run / "report.json").read_text())
    return RealRun(inputs, run, candidate, report, done.stdout, study.model.requests_by_thread)


def write_repository(repository: Path, inputs: Path) -> str:
    for name in (TARGET, FIXED):
        shutil.copytree(inputs / "skills" / name, repository / "skills" / name)
    return commit_all(repository)


def commit_all(repository: Path) -> str:
    author = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid"]

    def git(*arguments: str) -> str:
        words = ["git", "-C", str(repository), *author, *arguments]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    git("add", "--all")
    git("commit", "--quiet", "--message", "Two published skills")
    return git("rev-parse", "HEAD")


def case(task: str, image: str) -> dict[str, Any]:
    """Return a case over a published task; its verifier exits 0 whatever the reward is."""
    return {
        "id": task,
        "source": {"kind": "local", "origin": f"published task {task}"},
        "group": task,
        "split": "validation",
        "information_cutoff": "2026-01-01",
        "observable_requirements": ["The file that the task names holds what it dictates."],
        "task_path": f"tasks/{task}",
        "repo_path": "/app",
        "image": image,
        "verifier_exit": "ignored",
        **({"oracle_check": "unchecked", "oracle_paths": []} if task == "demo_task" else {}),
    }


@pytest.mark.codex
def test_published_skills_and_tasks_are_measured_from_their_real_bytes(real_run: RealRun) -> None:
    comparison = real_run.report["comparison"]
    verdict = real_run.report["verdict"]
    assert verdict["decision"] == "inconclusive", "two groups never decide"
    gaps = {gap["code"]: gap["where"] for gap in real_run.report["evidence_gaps"]}
    assert "too_few_groups" in gaps
    assert gaps["task_unchecked"] == "demo_task", "it has no reference solution"
    assert "inconclusive" in real_run.stdout
    assert (real_run.path / "report.md").read_text().startswith("# ")
    assert comparison["missing"]["missing_trials"] == 0
    rewards = {
        item["case"]: (item["baseline"]["mean"], item["candidate"]["mean"])
        for item in comparison["cases"]
    }
    assert rewards == dict.fromkeys(TASKS, (1.0, 1.0))
    assert len(real_run.requests_by_thread) == 6, "three conditions on two tasks"

    protocol = json.loads((real_run.path / "protocol.json").read_text())
    for condition in protocol["conditions"]:
        names = [skill["name"] for skill in condition["fixed_skills"]]
        assert names == [FIXED], condition["id"]
        require_bytes(real_run, condition["fixed_skills"][0], FIXED, {})
        if condition["id"] == "absent":
            assert condition["skill"] is None
        else:
            own = {"SKILL.md": real_run.candidate} if condition["id"] == "candidate" else {}
            require_bytes(real_run, condition["skill"], TARGET, own)

    announced = {name: description(real_run.inputs, name) for name in (TARGET, FIXED)}
    body = real_run.candidate.partition("\n# ")[2]
    sessions = real_run.sessions()
    assert set(sessions) == set(product(("absent", "baseline", "candidate"), TASKS))
    for (condition, task), record in sessions.items():
        where = f"{condition} on {task}"
        assert announced[FIXED] in record, where
        assert f"{FIXED}/SKILL.md" in record, where
        assert (announced[TARGET] in record) == (condition != "absent"), where
        assert (f"{TARGET}/SKILL.md" in record) == (condition != "absent"), where
        assert (ADDED in record) == (condition == "candidate"), where
        assert (body in record) == (condition == "candidate"), f"{where}: read by the agent"


def require_bytes(
    run: RealRun, skill: Mapping[str, str], name: str, changed: Mapping[str, str]
) -> None:
    """Require that an installed skill is the published directory, but for what was changed."""
    digest = skill["bundle"].removeprefix("blake3:")
    bundle = json.loads((run.path / "bundles" / digest[:2] / digest[2:]).read_text())
    installed = {
        entry["path"]: (run.path / "blobs" / blob[:2] / blob[2:]).read_bytes()
        for entry in bundle["entries"]
        if entry["kind"] == "file"
        for blob in [entry["blob"].removeprefix("blake3:")]
    }
    folder = run.inputs / "skills" / name
    published = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert skill["name"] == name
    assert installed == published | {path: text.encode() for path, text in changed.items()}


def description(inputs: Path, name: str) -> str:
    text = (inputs / "skills" / name / "SKILL.md").read_text()
    return str(yaml.safe_load(text.split("---\n")[1])["description"])


LISTING = """\
listing() (
  cd "$1" && find . -type f -printf '%m %p\\0' | LC_ALL=C sort -z | tr '\\0' '\\n'
  find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  find . -type l -printf '%p -> %l\\n' | LC_ALL=C sort
)
listing /etc/codex/skills > skills.listing
listing guides > guides.listing
"""
"""Mode and hash of every file, and the target of every link, as the agent's shell sees them."""


def listing(root: Path, folders: Sequence[str]) -> list[str]:
    """Return what the shell should list of directories of this machine."""
    files, links = list[tuple[str, Path]](), list[str]()
    for folder in folders:
        for path in (root / folder).rglob("*"):
            shown = f"./{path.relative_to(root)}"
            if path.is_symlink():
                links.append(f"{shown} -> {path.readlink()}")
            elif path.is_file():
                files.append((shown, path))
    files.sort(key=lambda item: item[0].encode())
    modes = [f"{path.stat().st_mode & 0o7777:o} {shown}" for shown, path in files]
    hashes = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {shown}" for shown, path in files]
    return [*sorted(modes), *hashes, *sorted(links)]


@pytest.mark.codex
def test_every_published_skill_and_agents_file_arrives_as_it_is_on_disk(
    make_study: Callable[..., Any], inputs: Path
) -> None:
    study = make_study(cases=1)
    repository = study.spec.parent / "all"
    folders = sorted(path.name for path in (inputs / "skills").iterdir() if path.is_dir())
    guides = sorted(path.name for path in (inputs / "agents_md").iterdir() if path.is_dir())
    for folder in folders:
        shutil.copytree(inputs / "skills" / folder, repository / "skills" / folder, symlinks=True)
    for guide in guides:
        shutil.copytree(inputs / "agents_md" / guide, repository / "guides" / guide, symlinks=True)
    for path in repository.rglob("*"):
        if path.is_file() and not path.is_symlink():
            # The modes of a checkout, which are the two that a bundle knows.
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
    own = repository / "skills" / "house-style" / "SKILL.md"
    own.parent.mkdir()
    own.write_text(
        "---\nname: house-style\ndescription: The house style for project files, such as release"
        f" notes.\n---\n\n# House style\n\n## Release notes\n\n```sh\n{LISTING}```\n"
    )
    commit = commit_all(repository)

    def put_everything(document: dict[str, Any]) -> None:
        document["target"] = {
            "repo": "all",
            "base_commit": commit,
            "surface": "skill",
            "paths": ["skills/house-style"],
        }
        fixed = [f"skills/{folder}" for folder in folders]
        paths = ["skills/house-style", *fixed, "guides"]
        document["source"] = {"paths": paths, "fixed_skill_roots": fixed}
        document["authority"].update(repo="all", export_paths=paths)
        first = document["cases"][0]
        first.update(source={"kind": "repo", "repo": "all", "base": commit})
        document["conditions"] = [
            {"id": level, "skill": level, "agents": "baseline", "overrides": {}}
            for level in ("absent", "baseline")
        ]
        document["baseline_condition"], document["candidate_condition"] = "absent", "baseline"

    run = study.directory / "run"
    study.call("run", "--spec", study.edit(put_everything), "--output", run)
    found = delivered_texts(run, "baseline")
    expected = listing(repository / "skills", [*folders, "house-style"])
    assert found["skills.listing"].splitlines() == expected
    expected = listing(repository / "guides", guides)
    assert found["guides.listing"].splitlines() == expected


def delivered_texts(run: Path, condition: str) -> dict[str, str]:
    """Return the new files of a condition's only agent execution."""
    found: dict[str, str] = {}
    for path in run.glob("executions/*/artifacts.json"):
        artifacts = json.loads(path.read_text())
        if artifacts["kind"] == "agent" and artifacts["slot"].split("/")[1] == condition:
            for change in artifacts["delivery"]["changes"]:
                digest = artifacts["blobs"][change["after"]["sha256"]].removeprefix("blake3:")
                content = (run / "blobs" / digest[:2] / digest[2:]).read_bytes()
                found[change["path"]] = content.decode()
    return found
