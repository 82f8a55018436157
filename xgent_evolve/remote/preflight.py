"""What must be true of the host before anything is paid for (requirements E2, E3)."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from xgent_evolve.canonical import Json
from xgent_evolve.errors import AuthorityError, HostError
from xgent_evolve.remote.host import Host
from xgent_evolve.spec.models_v1 import Case, Codex, HostFile, Runtime

MIN_DISK_FREE_BYTES = 1 << 30

CODEX_PACKAGE = "@openai/codex"


class Pinned(NamedTuple):
    """One published package of Codex, as this version of xgent-evolve knows it."""

    version: str
    """npm version."""
    directory: str
    """Directory below package/vendor."""
    integrity: str
    """SHA-512 of the archive, as npm writes it."""
    manifest_sha256: str | None
    """What the manifest of its unpacked files hashes to; None where nobody has unpacked it yet."""


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
        None,
    ),
}
"""By Codex version and the engine's architecture."""


class Fact(BaseModel):
    """Base of what the host reports; unknown fields are ignored, known ones are checked."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)


class ImageReport(Fact):
    """One image on the host."""

    id: str
    digests: list[str]
    architecture: str
    os: str
    env: list[str]


class EngineReport(Fact):
    """The engine."""

    version: str
    api: str
    architecture: str
    security: list[str]
    storage: str
    id: str


class HostState(Fact):
    """The part of a host's report that must not change during a run."""

    python: str
    architecture: str
    socket: str
    engine: EngineReport
    images: dict[str, ImageReport | None]


class HostReport(HostState):
    """All that `probe` found."""

    disk_free_bytes: int
    refreshable_login: bool = False
    """Whether the credential file is a login with a refresh token, which works once."""

    def state(self) -> HostState:
        """Return what must not change."""
        return HostState.model_validate(self.model_dump())


async def inspect_host(host: Host, runtime: Runtime, cases: Sequence[Case]) -> HostReport:
    """Ask the host what it is and compare it with what the JobSpec needs.

    Raises:
        HostError: E_REMOTE_ENGINE_VERSION, E_REMOTE_PLATFORM, E_REMOTE_IMAGE, E_REMOTE_DISK.

    """
    report = await probe_host(host, runtime, cases)
    check_engine(report, runtime)
    for case in cases:
        check_image(report, case)
    return report


async def probe_host(host: Host, runtime: Runtime, cases: Sequence[Case]) -> HostReport:
    """Ask the host what it is.

    Raises:
        HostError: the engine does not answer, or its facts are not understood.

    """
    images = sorted({case.image for case in cases})
    source = runtime.authentication
    answer = await host.probe(
        runtime.docker.path,
        runtime.docker.socket,
        images,
        credential_file=source.path if isinstance(source, HostFile) else None,
    )
    try:
        return HostReport.model_validate(answer)
    except ValidationError as error:
        raise HostError(
            f"the engine's facts are not understood: {error.error_count()} fields",
            where=f"host {runtime.ssh.host}",
            fix="report the engine and its version to the authors",
        ) from error


def check_engine(report: HostReport, runtime: Runtime) -> None:
    """Compare engine version, architecture and free disk with what is needed."""
    where = f"host {runtime.ssh.host}"
    wanted = runtime.docker.version.split(".")
    if report.engine.version.split("+")[0].split(".")[: len(wanted)] != wanted:
        raise HostError(
            "the engine has another version",
            code="E_REMOTE_ENGINE_VERSION",
            where=f"{where}: runtime.docker.version",
            expected=runtime.docker.version,
            found=report.engine.version,
            fix="set runtime.docker.version to the engine that you mean to use",
        )
    if report.architecture != runtime.codex.architecture:
        raise HostError(
            "the host has another CPU architecture",
            code="E_REMOTE_PLATFORM",
            where=f"{where}: runtime.codex.architecture",
            expected=runtime.codex.architecture,
            found=report.architecture,
            fix="set runtime.codex.architecture to the engine's native architecture",
        )
    if report.disk_free_bytes < MIN_DISK_FREE_BYTES:
        raise HostError(
            "the host's disk is nearly full",
            code="E_REMOTE_DISK",
            where=f"{where}: {runtime.remote_root}",
            expected=f"at least {MIN_DISK_FREE_BYTES} bytes free",
            found=f"{report.disk_free_bytes} bytes",
            fix="free some space; then resume",
        )


def check_image(report: HostReport, case: Case) -> None:
    """Require that the case's image is on the host, with that digest and platform."""
    found = report.images.get(case.image)
    where = f"case {case.id}: image"
    if found is None or not _same_image(case.image, found):
        raise HostError(
            "the image is not on the host",
            code="E_REMOTE_IMAGE",
            where=where,
            expected=case.image,
            found="nothing of that digest" if found is None else found.id,
            fix=f"on the host: docker pull {case.image}, or correct the digest in the JobSpec",
        )
    platform = f"{found.os}/{found.architecture}"
    if platform != case.platform:
        raise HostError(
            "the image is for another platform",
            code="E_REMOTE_PLATFORM",
            where=where,
            expected=case.platform,
            found=platform,
            fix="use the image of that platform",
        )


def _same_image(reference: str, found: ImageReport) -> bool:
    if "@" in reference:
        digest = reference.partition("@")[2]
        return any(item.endswith("@" + digest) for item in found.digests)
    return found.id == reference


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


async def install_codex(host: Host, codex: Codex) -> tuple[str, dict[str, Json]]:
    """Install or verify Codex on the host; return its directory below the root and its manifest.

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
    return posixpath.join("tools", name, "tree"), manifest


def image_path(report: ImageReport) -> str:
    """Return the PATH that an image sets, or the usual one."""
    for item in report.env:
        name, _, value = item.partition("=")
        if name == "PATH":
            return value
    return "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


type Security = Literal["apparmor", "seccomp"]


def has_security(report: HostReport, kind: Security) -> bool:
    """Say whether the engine confines containers with that mechanism."""
    return any(item.startswith(f"name={kind}") for item in report.engine.security)
