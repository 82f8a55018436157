"""Rules of the runtime: addresses that can be dialled, a model with all that it needs."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from xgent_evolve.spec.faults import Finding, shown
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath
from xgent_evolve.spec.runtime import HostFile

_SYSTEM_DIRECTORIES = re.compile(
    "/(bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)?"
)


def runtime_findings(spec: JobSpec) -> Iterator[Finding]:
    """Yield every broken rule of the runtime."""
    yield from _model(spec)
    yield from _credential(spec)
    yield from _host_paths(spec)
    yield from _key_files(spec)
    yield from _model_ca(spec)
    runtime = spec.runtime
    addresses: dict[JsonPath, str | None] = {
        ("runtime", "codex", "registry"): runtime.codex.registry,
        ("runtime", "base_url"): runtime.base_url,
        ("runtime", "model_proxy"): runtime.model_proxy,
    }
    for path, address in addresses.items():
        if address is not None and not _can_be_dialled(address):
            yield Finding(
                path=path,
                message="the address has no usable host or port",
                expected="http://host, https://host or either with :port",
                found=shown(address),
                fix="write a host name or address, and a port from 1 to 65535 if any",
            )


def _model_ca(spec: JobSpec) -> Iterator[Finding]:
    """Require something that the certificates could be checked for."""
    runtime = spec.runtime
    addresses = (runtime.base_url, runtime.model_proxy or "")
    if runtime.model_ca is not None and not any(item.startswith("https:") for item in addresses):
        yield Finding(
            path=("runtime", "model_ca"),
            message="certificates are given for a connection that has none",
            expected="a runtime.base_url or runtime.model_proxy that starts with https:",
            found=shown(runtime.base_url),
            fix="remove runtime.model_ca, or use the service's https address",
        )


def _key_files(spec: JobSpec) -> Iterator[Finding]:
    """Require paths that mean the same wherever a run is resumed from."""
    files = {"known_hosts": spec.runtime.ssh.known_hosts, "identity": spec.runtime.ssh.identity}
    for name, path in files.items():
        if path is not None and not path.startswith(("/", "~/")):
            yield Finding(
                path=("runtime", "ssh", name),
                message="the path depends on where the command is started",
                expected="a path that starts with / or ~/",
                found=shown(path),
                fix=f"write runtime.ssh.{name} in full",
            )


def _model(spec: JobSpec) -> Iterator[Finding]:
    runtime = spec.runtime
    if spec.mode == "smoke" and runtime.model is None:
        return
    given = {
        "model": runtime.model,
        "effort": runtime.effort,
        "tools": runtime.tools,
        "authentication": runtime.authentication,
    }
    reason = "a smoke that names a model" if spec.mode == "smoke" else f"mode {spec.mode}"
    for name, value in given.items():
        if not value:
            yield Finding(
                path=("runtime", name),
                message=f"{reason} needs runtime.{name}",
                expected='["shell"]' if name == "tools" else f"a value for {name}",
                found="none",
                fix=f"add runtime.{name}",
            )
    if len(set(runtime.tools)) != len(runtime.tools):
        yield Finding(
            path=("runtime", "tools"),
            message="a tool is listed twice",
            expected='["shell"]',
            found=shown([*runtime.tools]),
            fix="list every tool once",
        )


def _credential(spec: JobSpec) -> Iterator[Finding]:
    source, allowed = spec.runtime.authentication, spec.authority.auth_path
    used = source.path if isinstance(source, HostFile) else None
    if allowed == used:
        return
    if used is None:
        yield Finding(
            path=("authority", "auth_path"),
            message="a credential file is allowed that nothing uses",
            expected="null, unless runtime.authentication.source is host_file",
            found=shown(allowed),
            fix="remove it, or use it in runtime.authentication",
        )
        return
    yield Finding(
        path=("authority", "auth_path"),
        message="the caller did not allow the credential file that the runtime uses",
        expected=f"runtime.authentication.path: {shown(used)}",
        found=shown(allowed),
        fix="write the same path here, if the caller may use that credential",
    )


def _host_paths(spec: JobSpec) -> Iterator[Finding]:
    root = spec.runtime.remote_root
    if (
        posixpath.normpath(root) != root
        or root.startswith("//")
        or _SYSTEM_DIRECTORIES.fullmatch(root)
    ):
        yield Finding(
            path=("runtime", "remote_root"),
            message="this directory of the host cannot belong to xgent-evolve alone",
            expected='a path such as "/srv/xgent-evolve", without "..", "." or a slash at the end',
            found=shown(root),
            fix="name a directory that nothing else uses",
        )


def _can_be_dialled(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
