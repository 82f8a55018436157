"""The shell functions that bring the parts: what they read, and what they never do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = [ROOT / "scripts/demo", ROOT / "scripts/test", ROOT / "scripts/lib.sh", ROOT / ".ci/run"]


def shell(cache: Path, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail; . scripts/lib.sh; {code}"],
        cwd=ROOT,
        env=os.environ | {"XGENT_EVOLVE_CACHE": str(cache)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_valid_bash_and_names_no_registry(script: Path) -> None:
    subprocess.run(["bash", "-n", str(script)], check=True)

    hosts = re.findall(r"https?://[a-z0-9][a-z0-9.-]*", script.read_text())
    assert hosts == []


def test_the_modern_format_of_apt_sources_is_understood(tmp_path: Path) -> None:
    sources = tmp_path / "debian.sources"
    sources.write_text(
        "# a comment\nTypes: deb deb-src\nURIs: http://mirror.invalid/debian http://second.invalid\n"
        "Suites: bookworm bookworm-updates\nComponents: main contrib\nSigned-By: /keys/debian.gpg\n"
        "\nTypes: deb\nURIs: http://mirror.invalid/off\nComponents: main\nEnabled: no\n"
        "\nTypes: deb\nURIs: http://vendor.invalid/debian\nComponents: stable\n"
        "\nTypes: deb-src\nURIs: http://mirror.invalid/src\nComponents: main\n"
        "\nTypes: deb\nURIs: http://mirror.invalid/inline\nComponents: main\n"
        "Signed-By:\n -----BEGIN\n"
    )

    done = shell(tmp_path, f"deb822_sources {sources}")

    assert [line.split() for line in done.stdout.splitlines()] == [
        ["http://mirror.invalid/debian", "/keys/debian.gpg"],
        ["http://mirror.invalid/inline"],
    ]


def test_the_old_format_of_apt_sources_is_understood(tmp_path: Path) -> None:
    sources = tmp_path / "sources.list"
    sources.write_text(
        "# deb http://mirror.invalid/comment bookworm main\n"
        "deb [arch=amd64 signed-by=/keys/a.gpg] http://mirror.invalid/a bookworm main\n"
        "deb [ signed-by=/keys/b.gpg arch=amd64 ] http://mirror.invalid/b bookworm main contrib\n"
        "deb http://mirror.invalid/c bookworm main\n"
        "deb http://vendor.invalid/debian bookworm stable\n"
        "deb-src http://mirror.invalid/d bookworm main\n"
    )

    done = shell(tmp_path, f"one_line_sources {sources}")

    assert [line.split() for line in done.stdout.splitlines()] == [
        ["http://mirror.invalid/a", "/keys/a.gpg"],
        ["http://mirror.invalid/b", "/keys/b.gpg"],
        ["http://mirror.invalid/c"],
    ]


def test_the_npm_registry_comes_from_the_users_configuration(tmp_path: Path) -> None:
    (tmp_path / ".npmrc").write_text("save=true\nregistry = http://registry.invalid/npm/\n")
    # Without npm on PATH the file decides.
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sed", "tail", "dirname", "mkdir"):
        found = next(p for folder in ("/bin", "/usr/bin") if (p := Path(folder, name)).exists())
        (tools / name).symlink_to(found)
    code = "PATH=$TOOLS; need_registry; echo $NPM_CONFIG_REGISTRY"

    done = shell(tmp_path, code, HOME=str(tmp_path), TOOLS=str(tools), NPM_CONFIG_REGISTRY="")

    assert done.stdout.strip() == "http://registry.invalid/npm/", done.stderr


def test_an_engine_that_somebody_else_started_is_never_stopped(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        # The number is right but the moment of its start is not: the number was reused.
        (tmp_path / "engine.pid").write_text(f"{stranger.pid} 1\n")

        done = shell(tmp_path, "stop_engine")

        assert done.returncode == 0, done.stderr
        assert stranger.poll() is None
        stranger.kill()


def test_an_engine_that_was_started_here_is_stopped_unless_it_shall_stay(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as engine:
        record = f'echo "{engine.pid} $(started_at {engine.pid})" >"$ENGINE_PID_FILE"'
        shell(tmp_path, f"{record}; KEEP_ENGINE=yes; stop_engine")
        assert engine.poll() is None

        # The child is this process's, so somebody must reap it while the script waits.
        with subprocess.Popen(
            ["bash", "-c", "set -euo pipefail; . scripts/lib.sh; stop_engine"],
            cwd=ROOT,
            env=os.environ | {"XGENT_EVOLVE_CACHE": str(tmp_path)},
            stderr=subprocess.DEVNULL,
        ) as script:
            assert engine.wait(timeout=10) != 0
            assert script.wait(timeout=10) == 0

    assert not (tmp_path / "engine.pid").exists()


def test_what_cannot_be_brought_ends_with_a_cure(tmp_path: Path) -> None:
    done = shell(tmp_path, "fail 'no engine' 'start one'; echo never")

    assert done.returncode == 4
    assert done.stdout == ""
    assert "fix  start one" in done.stderr
