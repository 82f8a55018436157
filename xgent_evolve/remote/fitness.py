"""Whether a host can do what a JobSpec needs, going by its report. Pure (requirement E3)."""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.errors import HostError
from xgent_evolve.remote.report import HostReport, HostState, ImageReport
from xgent_evolve.spec.models_v1 import Case, Runtime

MIN_DISK_FREE_BYTES = 1 << 30
MIN_INODES_FREE = 20_000
"""A workspace of an ordinary repository, staged and captured, for a few executions at once."""
MAX_CLOCK_SKEW_MS = 60_000
"""Certificates and tokens are checked against the clock; more is told, and stops nothing."""
_BUILT_IN_NETWORKS = frozenset({"bridge", "host", "none", "default"})
_ENGINE_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}


def check_host(report: HostReport, runtime: Runtime) -> None:
    """Require engine, architecture, disk, network and confinement that the JobSpec names.

    Raises:
        HostError: E_REMOTE_ENGINE_VERSION, E_REMOTE_PLATFORM, E_REMOTE_DISK, E_REMOTE_NETWORK,
            E_REMOTE_APPARMOR.

    """
    _check_engine(report, runtime)
    _check_disk(report, runtime)
    _check_network(report, runtime)
    _check_apparmor(report, runtime)


def _check_engine(report: HostReport, runtime: Runtime) -> None:
    wanted = runtime.docker.version.split(".")
    if report.engine.version.split("+")[0].split(".")[: len(wanted)] != wanted:
        raise HostError(
            "the engine has another version",
            code="E_REMOTE_ENGINE_VERSION",
            where=f"host {runtime.ssh.host}: runtime.docker.version",
            expected=runtime.docker.version,
            found=report.engine.version,
            fix="set runtime.docker.version to the engine that you mean to use",
        )
    if report.architecture != runtime.codex.architecture:
        raise HostError(
            "the host has another CPU architecture",
            code="E_REMOTE_PLATFORM",
            where=f"host {runtime.ssh.host}: runtime.codex.architecture",
            expected=runtime.codex.architecture,
            found=report.architecture,
            fix="set runtime.codex.architecture to the engine's native architecture",
        )


def _check_disk(report: HostReport, runtime: Runtime) -> None:
    disk = report.disk
    if disk.disk_free_bytes < MIN_DISK_FREE_BYTES:
        expected, found = f"{MIN_DISK_FREE_BYTES} bytes", f"{disk.disk_free_bytes} bytes"
    elif disk.inodes_total > 0 and disk.inodes_free < MIN_INODES_FREE:
        expected, found = f"{MIN_INODES_FREE} inodes", f"{disk.inodes_free} inodes"
    else:
        return
    raise HostError(
        "the host's disk is nearly full",
        code="E_REMOTE_DISK",
        where=f"host {runtime.ssh.host}: {runtime.remote_root}",
        expected=f"at least {expected} free",
        found=found,
        fix="free some space; then resume",
    )


def _check_network(report: HostReport, runtime: Runtime) -> None:
    name = runtime.network
    if runtime.model is None or name in _BUILT_IN_NETWORKS or ":" in name:
        return
    if report.networks.get(name) is None:
        raise HostError(
            "the engine has no network of that name",
            code="E_REMOTE_NETWORK",
            where=f"host {runtime.ssh.host}: runtime.network",
            expected="a network that `docker network ls` lists on the host",
            found=name,
            fix=f"on the host: docker network create {name}, or correct runtime.network",
        )


def _check_apparmor(report: HostReport, runtime: Runtime) -> None:
    wanted, loaded = runtime.apparmor_profile, report.kernel.apparmor_profiles
    if wanted is None or wanted == "unconfined":
        return
    if not has_apparmor(report):
        found = "an engine without AppArmor, which would leave containers unconfined"
    elif loaded is not None and wanted not in loaded and wanted != "docker-default":
        # The engine loads its own profile when it is first used.
        found = "a profile that is not loaded"
    else:
        return
    raise HostError(
        "the host cannot put the AppArmor profile in force",
        code="E_REMOTE_APPARMOR",
        where=f"host {runtime.ssh.host}: runtime.apparmor_profile",
        expected=wanted,
        found=found,
        fix="load it on the host with apparmor_parser, or remove runtime.apparmor_profile",
    )


def has_apparmor(report: HostState) -> bool:
    """Say whether the engine confines containers with AppArmor."""
    return any(item.startswith("name=apparmor") for item in report.engine.security)


def check_image(report: HostReport, case: Case) -> None:
    """Require that the case's image is on the host, with that digest and platform, and can run.

    Raises:
        HostError: E_REMOTE_IMAGE, E_REMOTE_PLATFORM.

    """
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
    foreign = foreign_architecture(report, found)
    if foreign is not None and foreign not in report.kernel.emulated:
        raise HostError(
            "the host cannot run programs of the image's platform",
            code="E_REMOTE_PLATFORM",
            where=where,
            expected=f"a host of {foreign}, or QEMU for it in binfmt_misc",
            found=f"{report.architecture}, with QEMU for "
            + (", ".join(report.kernel.emulated) or "nothing"),
            fix=f"use a host of {foreign}, or have its owner install QEMU's binfmt support",
        )


def foreign_architecture(report: HostReport, image: ImageReport) -> str | None:
    """Return the architecture of an image when it is not the host's own, else None."""
    wanted = _ENGINE_NAMES.get(image.architecture, image.architecture)
    return None if wanted == report.architecture else wanted


def _same_image(reference: str, found: ImageReport) -> bool:
    if "@" in reference:
        digest = reference.partition("@")[2]
        return any(item.endswith("@" + digest) for item in found.digests)
    return found.id == reference


def advice(report: HostReport, runtime: Runtime, cases: Sequence[Case]) -> list[str]:
    """Return what is worth knowing about a host that can be used all the same."""
    told: list[str] = []
    kernel = report.kernel
    if abs(report.clock_skew_ms) > MAX_CLOCK_SKEW_MS:
        told.append(
            f"its clock is {report.clock_skew_ms // 1000:+d} s off this machine's: certificates"
            " and tokens may be refused"
        )
    if 0 in (kernel.max_user_namespaces, kernel.unprivileged_namespaces):
        told.append("its kernel lets users make no user namespaces, which the sandbox needs")
    if kernel.apparmor_restricts_namespaces == 1 and runtime.apparmor_profile is None:
        told.append(
            "AppArmor restricts user namespaces there: the sandbox may need a profile that allows"
            " them, named in runtime.apparmor_profile"
        )
    network = report.networks.get(runtime.network)
    if network is not None and network.internal and runtime.model_proxy is None:
        told.append(f"the network {runtime.network} has no way out, and there is no model_proxy")
    if report.model is not None and not report.model.reached:
        told.append(
            f"it does not reach {runtime.model_proxy or runtime.base_url} itself"
            f" ({report.model.detail}); the model driver may not either"
        )
    if runtime.network == "none" and runtime.model is not None:
        told.append('runtime.network is "none": the driver cannot reach a model')
    needed = runtime.memory_mb << 20
    if report.memory_bytes and needed > report.memory_bytes:
        told.append(f"one container may use {runtime.memory_mb} MiB, more than the host has")
    foreign = {
        architecture
        for case in cases
        if (image := report.images.get(case.image)) is not None
        and (architecture := foreign_architecture(report, image)) is not None
    }
    told += [f"images for {name} run there in emulation, slowly" for name in sorted(foreign)]
    return told
