"""Where and with what trials run: the host, its engine, the agent program and its credential."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Annotated, Literal

from xgent_evolve.spec.kinds import (
    AbsolutePath,
    Address,
    Cpus,
    DottedVersion,
    EnvName,
    HostDirectory,
    HostName,
    LocalPath,
    LoginName,
    Name,
    ProxyAddress,
)
from xgent_evolve.spec.part import Limits, Part

type Effort = Literal["minimal", "low", "medium", "high", "xhigh"]


class Ssh(Part):
    """How to reach the host. Host keys are always checked."""

    host: HostName
    """Host name, address, or alias of ~/.ssh/config (ProxyJump and the like are followed)."""
    port: Annotated[int, Limits(ge=1, le=65535)] | None = None
    """TCP port; the one of ~/.ssh/config for this host, or 22, when absent."""
    user: LoginName | None = None
    """Login name; the local one when absent."""
    known_hosts: LocalPath | None = None
    """Known-hosts file, from / or ~/; ~/.ssh/known_hosts when absent."""
    identity: LocalPath | None = None
    """Private key file; the agent and default keys when absent."""


class Docker(Part):
    """The engine on the host."""

    path: AbsolutePath
    """The docker command on the host; names the engine the way its user does."""
    version: DottedVersion
    """Engine version, as a dotted prefix (20.10 accepts 20.10.24)."""
    socket: AbsolutePath | None = None
    """Engine socket; asked of the docker command when absent."""


class Codex(Part):
    """The Codex CLI that is installed on the host for the containers."""

    version: Literal["0.162.1"]
    """Codex CLI version."""
    architecture: Literal["x86_64", "aarch64"]
    """The engine's native CPU architecture."""
    registry: Address | None = None
    """npm registry; the host's npm configuration when absent."""


class HostFile(Part):
    """A credential file that is already on the host."""

    source: Literal["host_file"]
    """The credential lies on the host."""
    path: LocalPath
    """Its path there; `~/` is the login's home."""


class ControllerEnv(Part):
    """An API key taken from this process's environment and sent over the connection's stdin."""

    source: Literal["controller_env"]
    """The credential is in the controller's environment."""
    name: EnvName
    """Name of the variable; its value is never written anywhere."""


type Authentication = Annotated[HostFile | ControllerEnv, Limits(kind_key="source")]


class Sampling(Part):
    """Sampling settings; Codex 0.162.1 sends none, so only null is accepted."""

    seed: None = None
    """No seed can be sent."""


class Runtime(Part):
    """Where and with what the trials run."""

    ssh: Ssh
    """The host."""
    remote_root: HostDirectory
    """Directory on the host that belongs to xgent-evolve alone."""
    docker: Docker
    """The engine."""
    codex: Codex
    """The agent program."""
    model: Name | None = None
    """Model name. Required by compare; smoke without it calls no model."""
    effort: Effort | None = None
    """Reasoning effort, pinned for every trial."""
    tools: list[Literal["shell"]] = field(default_factory=list[Literal["shell"]])
    """Tools of the agent."""
    sampling: Sampling = field(default_factory=Sampling)
    """Sampling settings."""
    authentication: Authentication | None = None
    """Where the model credential comes from."""
    base_url: Address = "https://api.openai.com/v1"
    """Responses API endpoint that the model driver calls."""
    network: Name = "bridge"
    """Engine network of the model driver's container; the agent's tools never have network."""
    model_proxy: ProxyAddress | None = None
    """Proxy for the model driver alone: no credentials, path or query."""
    model_ca: LocalPath | None = None
    """PEM file with certificates of a private authority that the model driver trusts too."""
    apparmor_profile: Name | None = None
    """AppArmor profile that is loaded on the host; unconfined when absent."""
    seccomp: Literal["default", "unconfined"] = "default"
    """System calls of the agent's container: the list that is shipped, or all."""
    cpus: Cpus = Decimal(2)
    """CPUs of one container."""
    memory_mb: Annotated[int, Limits(ge=64)] = 2048
    """Memory of one container, in MiB; swap is not added."""
