"""What the check of the sandbox prints, and what follows from it."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from xgent_evolve.harbor.sandbox import failures, probe_command, read_report
from xgent_evolve.spec.models_v1 import Runtime
from xgent_evolve.spec.shape import fit

HELD = b"fact confinement codex (enforce)\ncheck input_read ok\ncheck npm_runs ok\nsandbox-ok\n"


def runtime(profile: str | None = None) -> Runtime:
    found, _ = fit(
        Runtime,
        {
            "ssh": {"host": "h"},
            "remote_root": "/srv/x",
            "docker": {"path": "/usr/bin/docker", "version": "20.10"},
            "codex": {"version": "0.162.1", "architecture": "x86_64"},
            "apparmor_profile": profile,
        },
    )
    assert found is not None
    return found


def test_other_lines_are_passed_over_and_the_first_fact_counts() -> None:
    report = read_report(b"hello\n\xff\nfact a 1 2\nfact a 3\ncheck b ok\ncheck c\ncheck d maybe\n")
    assert report.facts == {"a": "1 2"}
    assert report.checks == {"b": True}


@pytest.mark.parametrize(
    ("profile", "inside", "wrong"),
    [
        (None, "anything", []),
        ("codex", "codex (enforce)", []),
        ("unconfined", "unconfined", []),
        ("codex", "codex (complain)", ["AppArmor has codex (complain) in force, not codex"]),
        ("codex", "unconfined", ["AppArmor has unconfined in force, not codex"]),
        ("codex", "", ["AppArmor has nothing in force, not codex"]),
    ],
)
def test_the_profile_in_force_is_the_one_that_was_asked_for(
    profile: str | None, inside: str, wrong: list[str]
) -> None:
    printed = HELD.replace(b"codex (enforce)", inside.encode())
    assert failures(read_report(printed), runtime(profile)) == wrong


def test_what_does_not_hold_is_named() -> None:
    printed = HELD.replace(b"npm_runs ok", b"npm_runs failed")
    assert failures(read_report(printed), runtime()) == ["npm_runs failed"]


def test_a_command_that_printed_nothing_has_no_words_of_its_own() -> None:
    assert failures(read_report(b""), runtime("codex")) == []


def test_the_command_is_a_shell_script_whatever_the_path_is() -> None:
    path = "/usr/bin:/it's here"
    command = probe_command(runtime(), "/a dir", "p", path=path).decode()
    subprocess.run(["sh", "-n"], input=command, text=True, check=True)
    within = shlex.split(command[command.index("env -i") :])[-5]
    assert f"export PATH={shlex.quote(path)} " in within
    subprocess.run(["sh", "-n"], input=within, text=True, check=True)
