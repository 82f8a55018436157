"""The real Codex CLI in real containers, and where it comes from."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

from xgent_evolve.demo.engine import find_base_image
from xgent_evolve.errors import HostError

VERSION = "0.162.1"
PACKAGE = f"{VERSION}-linux-x64"
INTEGRITY = (
    "sha512-cjK2mdHIfEepZ1lQ1MX3aTQC+8ncIsvnacl/6vI2dIIc"
    "fP8/MrhTQ2+qRlkXFNDzJSj1d36quIszP+3/4CUJWQ=="
)
TARGET = "package/vendor/x86_64-unknown-linux-musl"
ROOT = Path(__file__).resolve().parents[2]

CONFIG = """
model_reasoning_effort = "medium"
model_provider = "scripted"
approval_policy = "never"
web_search = "disabled"
cli_auth_credentials_store = "file"
check_for_update_on_startup = false
project_root_markers = [".git"]

[features]
plugins = false
apps = false
goals = false
sleep_tool = false
memories = false
unbounded_connection_retries = false

[agents]
enabled = false

[analytics]
enabled = false

[skills]
bundled = { enabled = false }

[history]
persistence = "none"

[shell_environment_policy]
inherit = "none"

[shell_environment_policy.set]
PATH = "/usr/local/bin:/usr/bin:/bin"
HOME = "/tmp"
LANG = "C.UTF-8"

[model_providers.scripted]
name = "scripted"
base_url = "@BASE_URL@"
wire_api = "responses"
requires_openai_auth = true
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 60000

[projects."/app"]
trust_level = "untrusted"
"""

REQUIREMENTS = """
allowed_approval_policies = ["never"]
allowed_web_search_modes = ["disabled"]
allow_managed_hooks_only = true
default_permissions = "trial-profile"

[allowed_permission_profiles]
"trial-profile" = true

[mcp_servers]

[permissions.trial-profile.filesystem]
":minimal" = "read"
":slash_tmp" = "write"
"/opt/codex" = "read"

[permissions.trial-profile.filesystem.":workspace_roots"]
"." = "write"

[permissions.trial-profile.network]
enabled = false
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """What Codex did with one prompt."""

    exit_code: int
    events: list[Mapping[str, object]]
    workspace: Path
    stderr: str

    def kinds(self) -> list[str]:
        return [str(event["type"]) for event in self.events]

    def usage(self) -> object:
        return next(event["usage"] for event in self.events if event["type"] == "turn.completed")

    def commands(self) -> list[Mapping[str, object]]:
        items = [event["item"] for event in self.events if event["type"] == "item.completed"]
        return [item for item in items if item["type"] == "command_execution"]


@dataclass(frozen=True, slots=True)
class CodexLab:
    """Runs Codex, and afterwards the task's verifier, each in a container of its own."""

    install: Path
    image: str

    def run(self, directory: Path, prompt: str, *, model: str, base_url: str, key: str) -> Turn:
        """Run one turn in `directory`/app, which the caller may have filled."""
        workspace = directory / "app"
        home = directory / "home"
        home.mkdir(parents=True, exist_ok=True)
        for name in (".agents", ".codex", ".aws"):
            (workspace / name).mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "--quiet", str(workspace)], check=True)
        (home / "config.toml").write_text(CONFIG.replace("@BASE_URL@", base_url))
        auth = {"auth_mode": "apikey", "OPENAI_API_KEY": key}
        (home / "auth.json").write_text(json.dumps(auth))
        requirements = directory / "requirements.toml"
        requirements.write_text(REQUIREMENTS)
        _own((workspace, home), 1000)
        done = subprocess.run(
            self._docker_run(workspace, home, requirements, model),
            input=prompt.encode(),
            capture_output=True,
            check=False,
            timeout=120,
        )
        events = [json.loads(line) for line in done.stdout.splitlines()]
        return Turn(done.returncode, events, workspace, done.stderr.decode())

    def grade(self, workspace: Path, task: Path, *, solve: bool = False) -> int:
        """Return the reward; the verifier's exit code must agree with it.

        With `solve` the task's reference solution is carried out before.
        """
        script = "/task/tests/test.sh; code=$?; cat /logs/verifier/reward.txt; exit $code"
        if solve:
            script = f"/task/solution/solve.sh && {{ {script}; }}"
        volumes = ["--volume", f"{workspace}:/app", "--volume", f"{task}:/task:ro"]
        done = subprocess.run(
            [
                "docker",
                "run",
                "--rm",
                "--network",
                "none",
                *volumes,
                self.image,
                "sh",
                "-c",
                script,
            ],
            capture_output=True,
            check=False,
            timeout=60,
        )
        reward = int(done.stdout)
        assert (done.returncode == 0) == (reward == 1), done.stderr
        return reward

    def _docker_run(self, workspace: Path, home: Path, requirements: Path, model: str) -> list[str]:
        return [
            *("docker", "run", "--rm", "--init", "--interactive", "--network", "host"),
            *("--user", "1000:1000", "--workdir", "/app", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "--security-opt", "seccomp=unconfined"),
            *("--security-opt", "systempaths=unconfined"),
            *("--read-only", "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=256m"),
            *("--volume", f"{self.install}:/opt/codex:ro"),
            *("--volume", f"{requirements}:/etc/codex/requirements.toml:ro"),
            *("--volume", f"{home}:/home/agent/.codex", "--volume", f"{workspace}:/app"),
            *("--env", "HOME=/home/agent", "--env", "CODEX_HOME=/home/agent/.codex"),
            *("--env", "PATH=/nonexistent", self.image),
            *("/opt/codex/bin/codex", "exec", "--strict-config", "--json", "-m", model, "-"),
        ]


@pytest.fixture(scope="session")
def codex_directory() -> Path:
    """Return the unpacked Codex, downloaded once per cache directory."""
    if platform.machine() != "x86_64":
        _missing("the Codex tests know the checksum of the x86_64 package only")
    cache = Path(os.environ.get("XGENT_EVOLVE_CACHE") or ROOT / ".cache")
    install = cache / f"codex-{PACKAGE}"
    if not install.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        partial = cache / f".codex-{PACKAGE}.{os.getpid()}"
        archive = cache / f"codex-{PACKAGE}.tgz"
        if not archive.exists():
            _download(archive)
        _check(archive)
        with tarfile.open(archive) as tar:
            tar.extractall(partial, filter="data")
        archive.unlink()
        partial.rename(install)
    return install / TARGET


@pytest.fixture(scope="session")
def lab(codex_directory: Path) -> CodexLab:
    """Return a lab on this machine's engine."""
    try:
        image = find_base_image()
    except HostError as error:
        _missing(f"{error.message}: {error.fix}")
    return CodexLab(codex_directory, image)


def _missing(reason: str) -> NoReturn:
    """Skip at a developer's desk; fail where everything is promised to be there."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _registry() -> str | None:
    if address := os.environ.get("NPM_CONFIG_REGISTRY"):
        return address.rstrip("/")
    if npm := shutil.which("npm"):
        done = subprocess.run(
            [npm, "config", "get", "registry"], capture_output=True, text=True, check=False
        )
        if done.stdout.startswith("http"):
            return done.stdout.strip().rstrip("/")
    return None


def _download(archive: Path) -> None:
    registry = _registry()
    if registry is None:
        _missing("no npm registry is configured: set NPM_CONFIG_REGISTRY")
    address = f"{registry}/@openai/codex/-/codex-{PACKAGE}.tgz"
    partial = archive.with_suffix(".partial")
    with urllib.request.urlopen(address, timeout=300) as source, partial.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)
    partial.rename(archive)


def _check(archive: Path) -> None:
    with archive.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha512").digest()
    found = "sha512-" + base64.b64encode(digest).decode()
    if found != INTEGRITY:
        archive.unlink()
        pytest.fail(f"{archive.name}: expected {INTEGRITY}, found {found}")


def _own(roots: tuple[Path, ...], user: int) -> None:
    if os.getuid() != 0:
        return
    for root in roots:
        for path in (root, *root.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


READING = """
check_for_update_on_startup = false
project_root_markers = [".git"]
[features]
plugins = false
apps = false
[analytics]
enabled = false
[skills.bundled]
enabled = false
"""


@dataclass
class Desk:
    """A repository, and Codex looking at it."""

    codex: Path
    root: Path

    @property
    def repository(self) -> Path:
        return self.root / "repository"

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def read(self, directory: str = "", **config: int) -> list[str]:
        """Return the texts that a model would see of a session in that directory."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        trust = f'[projects.{json.dumps(str(self.repository))}]\ntrust_level = "trusted"\n'
        (home / "config.toml").write_text(READING + trust)
        settings = [word for key, value in config.items() for word in ("-c", f"{key}={value}")]
        answer = subprocess.run(
            [str(self.codex), "debug", "prompt-input", *settings, "hello"],
            cwd=self.repository / directory,
            env={"HOME": str(home), "CODEX_HOME": str(home), "PATH": "/nonexistent"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=True,
            timeout=120,
        )
        items = json.loads(answer.stdout)
        return [part.get("text", "") for item in items for part in item.get("content", [])]

    def skills(self) -> dict[str, str]:
        """Return the catalogue's line of every skill, by directory."""
        lines = [line for text in self.read() for line in text.splitlines()]
        found = (re.fullmatch(r"- (.*) \(file: r0/([^/]+)/SKILL\.md\)", line) for line in lines)
        return {match[2]: match[1] for match in found if match}

    def instructions(self, directory: str, limit: int) -> str:
        """Return the text of the AGENTS.md files; nothing when there is none."""
        for text in self.read(directory, project_doc_max_bytes=limit):
            if match := re.search(
                r"AGENTS\.md instructions.*?<INSTRUCTIONS>\n(.*)\n</INSTRUCTIONS>", text, re.DOTALL
            ):
                return match[1]
        return ""


@pytest.fixture
def desk(codex_directory: Path, tmp_path: Path) -> Desk:
    desk = Desk(codex_directory / "bin" / "codex", tmp_path)
    (desk.repository / ".git").mkdir(parents=True)
    return desk
