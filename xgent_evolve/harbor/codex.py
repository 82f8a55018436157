"""Codex CLI in a container: its configuration, its sandbox and its command line.

What is set here was measured on Codex 0.162.1. The permission profile is a white list that is
forced by /etc/codex/requirements.toml, which no command line and no file of the workspace can
override; the driver has no PATH, so it runs no program of the workspace outside the sandbox; the
tools inherit no environment; the prompt travels by stdin. See docs/isolation.md.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

from xgent_evolve.spec.models_v1 import Runtime

HOME = "/home/agent"
CODEX_HOME = f"{HOME}/.codex"
INSTALL = "/opt/codex"
BINARY = f"{INSTALL}/bin/codex"
TASK_INPUT = "/evolution-input"
SKILL_ROOT = "/etc/codex/skills"
USER = 1000
MODEL_CA = "/etc/xgent/model-ca.pem"
"""Certificates that the driver trusts besides the public ones; /etc is readable for the tools."""
CREDENTIAL = f"{CODEX_HOME}/auth.json"

PROTECTED = (".git", ".agents", ".codex", ".aws")
"""Directories that the sandbox mounts over; made beforehand, never part of a delivery."""

type Toml = str | int | bool | list[str]


def toml_lines(table: str, values: dict[str, Toml]) -> list[str]:
    """Return one TOML table; JSON's scalars and string arrays are TOML's too."""
    header = [f"[{table}]"] if table else []
    return [*header, *(f"{_key(key)} = {json.dumps(value)}" for key, value in values.items()), ""]


def _key(key: str) -> str:
    return key if key.replace("_", "").isalnum() else json.dumps(key)


def config_toml(
    runtime: Runtime,
    *,
    workdir: str,
    path: str,
    trusted: bool,
    variables: Mapping[str, str],
    project_doc_max_bytes: int,
) -> bytes:
    """Return the driver's config.toml.

    `path` is the PATH of the agent's tools, `variables` are those that the task sets; `trusted`
    lets Codex read AGENTS.md below `workdir` (its own .codex directory is removed beforehand), up
    to `project_doc_max_bytes` bytes.
    """
    lines = [
        *toml_lines(
            "",
            {
                "model": runtime.model or "none",
                "model_reasoning_effort": runtime.effort or "medium",
                "model_provider": "xgent",
                "approval_policy": "never",
                "web_search": "disabled",
                "cli_auth_credentials_store": "file",
                "check_for_update_on_startup": False,
                "include_environment_context": True,
                "project_root_markers": [".git"],
                "project_doc_max_bytes": project_doc_max_bytes,
            },
        ),
        *toml_lines(
            "features",
            {
                "plugins": False,
                "apps": False,
                "goals": False,
                "sleep_tool": False,
                "memories": False,
                "unbounded_connection_retries": False,
            },
        ),
        *toml_lines("agents", {"enabled": False}),
        *toml_lines("analytics", {"enabled": False}),
        *toml_lines("skills.bundled", {"enabled": False}),
        *toml_lines("history", {"persistence": "none"}),
        *toml_lines("shell_environment_policy", {"inherit": "none"}),
        *toml_lines(
            "shell_environment_policy.set",
            {"LANG": "C.UTF-8", **variables, "PATH": path, "HOME": "/tmp"},  # noqa: S108 - in the container
        ),
        *toml_lines(
            "model_providers.xgent",
            {
                "name": "xgent",
                "base_url": runtime.base_url,
                "wire_api": "responses",
                "requires_openai_auth": True,
                "request_max_retries": 2,
                "stream_max_retries": 3,
                "stream_idle_timeout_ms": 120_000,
            },
        ),
        *toml_lines(
            f"projects.{json.dumps(workdir)}",
            {"trust_level": "trusted" if trusted else "untrusted"},
        ),
    ]
    return "\n".join(lines).encode("utf-8")


def requirements_toml(profile: str) -> bytes:
    """Return the enforced layer: one permission profile of that name, and nothing beside it."""
    lines = [
        *toml_lines(
            "",
            {
                "allowed_approval_policies": ["never"],
                "allowed_web_search_modes": ["disabled"],
                "allow_managed_hooks_only": True,
                "default_permissions": profile,
            },
        ),
        *toml_lines("allowed_permission_profiles", {profile: True}),
        "[mcp_servers]",
        "",
        *toml_lines("features", {"plugins": False, "apps": False}),
        *profile_lines(profile),
    ]
    return "\n".join(lines).encode("utf-8")


def probe_toml(profile: str) -> bytes:
    """Return a config.toml with the same profile, for `codex sandbox`, which reads no other."""
    lines = [*toml_lines("", {"default_permissions": profile}), *profile_lines(profile)]
    return "\n".join(lines).encode("utf-8")


def profile_lines(profile: str) -> list[str]:
    """Return the permission profile: what is not named does not exist for the tools."""
    permissions = f"permissions.{profile}"
    return [
        *toml_lines(
            f"{permissions}.filesystem",
            {
                ":minimal": "read",
                ":slash_tmp": "write",
                INSTALL: "read",
                TASK_INPUT: "read",
            },
        ),
        *toml_lines(
            f'{permissions}.filesystem.":workspace_roots"', {".": "write", ".git": "write"}
        ),
        *toml_lines(f"{permissions}.network", {"enabled": False}),
    ]


def profile_name(uuid: str) -> str:
    """Return a profile name that no file of a workspace can know beforehand."""
    return f"xgent-{uuid.replace('-', '')[:12]}"


def exec_command(runtime: Runtime, workdir: str, *, schema: str | None = None) -> bytes:
    """Return the command that runs one Codex turn on the prompt from stdin.

    `schema` is the file with the JSON Schema that the last message is to have.
    """
    model = runtime.model or "none"
    form = [] if schema is None else ["--output-schema", schema]
    words = ["exec", "--strict-config", "--json", "--skip-git-repo-check", *form, "-m", model, "-"]
    return f"cd {shlex.quote(workdir)} && exec {driver(runtime, words)}\n".encode()


def driver(runtime: Runtime, arguments: list[str]) -> str:
    """Return shell text that runs Codex with an environment of exactly these variables."""
    environment = {"HOME": HOME, "CODEX_HOME": CODEX_HOME, "PATH": "/nonexistent"}
    if runtime.model_proxy:
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            environment[name] = runtime.model_proxy
    if runtime.model_ca is not None:
        environment["CODEX_CA_CERTIFICATE"] = MODEL_CA
    words = ["env", "-i", *(f"{key}={value}" for key, value in environment.items())]
    return shlex.join([*words, BINARY, *arguments])


PREPARE = f"""\
mkdir -p {CODEX_HOME} && chmod 700 {CODEX_HOME} &&
    cp /xgent/codex-home/config.toml {CODEX_HOME}/config.toml &&
    chmod 600 {CODEX_HOME}/config.toml"""
"""Shell text that fills CODEX_HOME, which lies in the container's memory."""

COLLECT = f"""\
if [ -d {CODEX_HOME}/sessions ]; then cp -R {CODEX_HOME}/sessions "$ctl/sessions"; fi"""
"""Shell text that saves the session records before the memory file system ends."""
