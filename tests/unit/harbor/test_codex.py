"""Codex's configuration avoids the traps that were measured (facts of Codex 0.162.1).

What needs the real Codex is in tests/e2e/test_red_team.py: that the shell's environment, a
workspace's configuration and a `git` of the image give nothing away, in both tool modes. Usage is
in test_outcome.py. That the event stream leaves commands out cannot be cured here; nothing is
concluded from the commands that it shows.
"""

from __future__ import annotations

import shlex
import tomllib
from typing import Any

import pytest

from xgent_evolve.harbor import codex
from xgent_evolve.spec.models_v1 import Runtime
from xgent_evolve.spec.shape import fit

RUNTIME, _ = fit(
    Runtime,
    {
        "ssh": {"host": "h"},
        "remote_root": "/srv/x",
        "docker": {"path": "/usr/bin/docker", "version": "20.10"},
        "codex": {"version": "0.162.1", "architecture": "x86_64"},
        "model": "m",
        "effort": "high",
        "tools": ["shell"],
        "model_proxy": "http://proxy:1",
    },
)
assert RUNTIME is not None


def config(**changes: Any) -> dict[str, Any]:
    given = {
        "workdir": "/app",
        "path": "/usr/bin",
        "trusted": False,
        "variables": {},
        "project_doc_max_bytes": 32768,
        **changes,
    }
    return tomllib.loads(codex.config_toml(RUNTIME, **given).decode())


REQUIREMENTS = tomllib.loads(codex.requirements_toml("p").decode())
COMMAND = codex.exec_command(RUNTIME, "/app").decode()


def test_the_shell_inherits_no_environment() -> None:
    policy = config(variables={"TASK": "1"})["shell_environment_policy"]
    assert policy["inherit"] == "none"
    assert set(policy["set"]) == {"PATH", "HOME", "LANG", "TASK"}


def test_no_option_opens_the_sandbox() -> None:
    words = shlex.split(COMMAND)
    assert not {"-s", "--sandbox", "--full-auto", "-c", "-P"} & set(words)
    assert not any("dangerous" in word for word in words)
    assert "sandbox_mode" not in config()


def test_the_driver_has_no_programs_to_run_and_the_proxy_alone() -> None:
    words = shlex.split(COMMAND)
    start = words.index("env")
    assert words[start + 1] == "-i"
    variables = dict(word.split("=", 1) for word in words[start + 2 :] if "=" in word)
    assert variables.pop("PATH") == "/nonexistent"
    assert {name.lower() for name in variables} == {
        "home",
        "codex_home",
        "http_proxy",
        "https_proxy",
    }
    assert "proxy" not in str(config()["shell_environment_policy"])


def test_the_prompt_and_control_text_are_in_no_argument() -> None:
    assert shlex.split(COMMAND)[-1] == "-", "the prompt comes by stdin, which ends"
    assert "--skip-git-repo-check" in COMMAND


@pytest.mark.parametrize("trusted", [True, False])
def test_trust_is_stated_so_that_codex_does_not_decide_it(trusted: bool) -> None:
    level = config(trusted=trusted)["projects"]["/app"]["trust_level"]
    assert level == ("trusted" if trusted else "untrusted")


def test_retries_are_bounded_and_nothing_talks_aside() -> None:
    found = config()
    provider = found["model_providers"]["xgent"]
    assert provider["request_max_retries"] <= 4
    assert provider["stream_max_retries"] <= 5
    assert found["features"]["unbounded_connection_retries"] is False
    assert found["features"]["plugins"] is False
    assert found["analytics"]["enabled"] is False
    assert found["agents"]["enabled"] is False
    assert found["web_search"] == "disabled"


def test_the_size_cut_of_instructions_is_set() -> None:
    assert config(project_doc_max_bytes=7)["project_doc_max_bytes"] == 7


def test_the_enforced_layer_names_one_profile_and_no_server() -> None:
    assert REQUIREMENTS["allowed_permission_profiles"] == {"p": True}
    assert REQUIREMENTS["default_permissions"] == "p"
    assert REQUIREMENTS["mcp_servers"] == {}
    assert REQUIREMENTS["allowed_approval_policies"] == ["never"]
    assert REQUIREMENTS["allow_managed_hooks_only"] is True
    assert "permissions" not in config(), "a profile of the same name would be a conflict"


def test_the_profile_is_a_white_list_without_denials_and_without_network() -> None:
    profile = REQUIREMENTS["permissions"]["p"]
    places = dict(profile["filesystem"])
    roots = places.pop(":workspace_roots")
    assert set(places.values()) | set(roots.values()) == {"read", "write"}, "denials do not nest"
    assert set(places) == {":minimal", ":slash_tmp", "/opt/codex", "/evolution-input"}
    assert profile["network"] == {"enabled": False}


def test_a_profile_name_is_of_one_execution() -> None:
    first, second = (codex.profile_name(f"{n}{'0' * 7}-1111-1111-1111-{'0' * 12}") for n in "12")
    assert first != second
