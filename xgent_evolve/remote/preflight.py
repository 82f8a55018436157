"""What must be true of the host before anything is paid for (requirements E2, E3)."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Sequence
from typing import NamedTuple, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from xgent_evolve.canonical import Json
from xgent_evolve.errors import AuthorityError, HostError
from xgent_evolve.remote.fitness import check_host, check_image
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.report import HostReport, ImageReport
from xgent_evolve.spec.models_v1 import Case, Codex, HostFile, Runtime

CODEX_PACKAGE = "@openai/codex"


class Pinned(NamedTuple):
    """One published package of Codex, as this version of xgent-evolve knows it."""

    version: str
    """npm version."""
    directory: str
    """Directory below package/vendor."""
    integrity: str
    """SHA-512 of the archive, as npm writes it."""
    manifest_sha256: str
    """What the manifest of its unpacked files hashes to."""


_PACKAGES = {
    ("0.162.1", "x86_64"): Pinned(
        "0.162.1-linux-x64",
        "x86_64-unknown-linux-musl",
        "sha512-cjK2mdHIfEepZ1lQ1MX3aTQC+8ncIsvnacl/6vI2dIIcfP8/MrhTQ2+qRlkXFNDzJSj1d36quIszP+3/"
        "4CUJWQ==",
        "08cf4559019c925d1775cdaabf685b3bfc31f6bab25db02157bff908eeac1059",
    ),
    ("0.162.1", "aarch64"): Pinned(
        "0.162.1-linux-arm64",
        "aarch64-unknown-linux-musl",
        "sha512-Ss7W/SrKtQFNaMtSojNoiykJgX+iDC8daM+YrcvgmJADtQPk0cd3w6Dna4CYH2CYvf9nQranj69fpcTz"
        "Z3sQIQ==",
        "6229a91d5a9110cf728cf4f9601b0d79252d827bae3bd3d919b3457600a382ff",
    ),
}
"""By Codex version and the engine's architecture."""


async def inspect_host(host: Host, runtime: Runtime, cases: Sequence[Case]) -> HostReport:
    """Ask the host what it is and compare it with what the JobSpec needs.

    Raises:
        HostError: as `check_host` and `check_image` say.

    """
    report = await probe_host(host, runtime, cases)
    check_host(report, runtime)
    for case in cases:
        check_image(report, case)
    return report


async def probe_host(
    host: Host,
    runtime: Runtime,
    cases: Sequence[Case],
    *,
    endpoint: dict[str, Json] | None = None,
) -> HostReport:
    """Ask the host what it is, and whether it reaches `endpoint`.

    Raises:
        HostError: the engine does not answer, or its facts are not understood.

    """
    images = sorted({case.image for case in cases})
    source = runtime.authentication
    asked = time.time()
    answer = await host.probe(
        runtime.docker.path,
        runtime.docker.socket,
        images,
        networks=[runtime.network],
        endpoint=endpoint,
        credential_file=source.path if isinstance(source, HostFile) else None,
    )
    # The host reads its clock at some moment between question and answer.
    meanwhile_ms = int((asked + time.time()) * 500)
    try:
        report = HostReport.model_validate(answer)
    except ValidationError as error:
        raise HostError(
            f"the engine's facts are not understood: {error.error_count()} fields",
            where=f"host {runtime.ssh.host}",
            fix="report the engine and its version to the authors",
        ) from error
    return report.model_copy(update={"clock_skew_ms": report.clock_ms - meanwhile_ms})


def model_endpoint(runtime: Runtime, certificates: str) -> dict[str, Json]:
    """Return where the model driver connects to first, as `probe_host` takes it.

    `certificates` are those of a private authority, in PEM form; they may be empty.
    """
    parts = urlsplit(runtime.model_proxy or runtime.base_url)
    tls = parts.scheme == "https"
    return {
        "host": parts.hostname,
        "port": parts.port or (443 if tls else 80),
        "tls": tls,
        "certificates": certificates,
    }


def require_own_login(report: HostReport, max_concurrency: int) -> None:
    """Refuse to give one refreshable login to several containers at once.

    Raises:
        AuthorityError: E_SPEC_AUTH_SHARED.

    """
    if report.refreshable_login and max_concurrency > 1:
        raise AuthorityError(
            "several containers would share a login that can be renewed only once",
            code="E_SPEC_AUTH_SHARED",
            where="budget.max_concurrency",
            expected="1, or a credential without a refresh token",
            found=str(max_concurrency),
            fix="use an API key or a short-lived token in runtime.authentication, or set"
            " budget.max_concurrency to 1",
        )


class CodexInstall(NamedTuple):
    """The verified install of Codex on a host."""

    version: str
    """Codex CLI version."""
    directory: str
    """Its directory below the remote root."""
    manifest_sha256: str
    """Hash of the manifest of all its files."""
    binary_sha256: str
    """Hash of the program itself."""


async def install_codex(host: Host, codex: Codex) -> CodexInstall:
    """Install or verify Codex on the host.

    Raises:
        HostError: E_REMOTE_PLATFORM: no pinned package for that architecture.
        ToolError: E_REMOTE_TOOL_*: the package cannot be had or cannot be trusted.

    """
    pinned = _PACKAGES.get((codex.version, codex.architecture))
    if pinned is None:
        raise HostError(
            "no Codex package is pinned for this architecture",
            code="E_REMOTE_PLATFORM",
            where="runtime.codex",
            expected=", ".join(f"{version} on {arch}" for version, arch in _PACKAGES),
            found=f"{codex.version} on {codex.architecture}",
            fix="use a host of a supported architecture",
        )
    name = f"codex-{codex.version}-{codex.architecture}"
    document: dict[str, Json] = {
        "name": name,
        "package": CODEX_PACKAGE,
        "version": pinned.version,
        "integrity": pinned.integrity,
        "manifest_sha256": pinned.manifest_sha256,
        "member_prefix": f"package/vendor/{pinned.directory}",
        "registry": codex.registry,
    }
    manifest = await host.install(document)
    return CodexInstall(
        version=codex.version,
        directory=tool_tree(codex),
        manifest_sha256=str(manifest["manifest_sha256"]),
        binary_sha256=cast("dict[str, str]", manifest["files"])["bin/codex"],
    )


def tool_tree(codex: Codex) -> str:
    """Return where the verified install lies, below the root."""
    return posixpath.join("tools", f"codex-{codex.version}-{codex.architecture}", "tree")


def image_path(report: ImageReport) -> str:
    """Return the PATH that an image sets, or the usual one."""
    for item in report.env:
        name, _, value = item.partition("=")
        if name == "PATH":
            return value
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
