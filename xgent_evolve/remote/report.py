"""What a host reports of itself; unknown fields are ignored, known ones are checked."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Fact(BaseModel):
    """Base of what the host reports."""

    model_config = ConfigDict(
        extra="ignore", frozen=True, strict=True, use_attribute_docstrings=True
    )


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


class KernelReport(Fact):
    """What the host's kernel allows; None where it does not say."""

    release: str
    apparmor: bool
    """Whether AppArmor is on."""
    apparmor_profiles: list[str] | None
    """Loaded profiles, where the login may read them."""
    apparmor_restricts_namespaces: int | None
    """1: an unconfined program may not use a user namespace of its own."""
    max_user_namespaces: int | None
    unprivileged_namespaces: int | None
    """0: users may not make user namespaces."""
    emulated: list[str]
    """Architectures whose programs the kernel hands to QEMU (binfmt_misc)."""


class NetworkReport(Fact):
    """One network of the engine."""

    driver: str
    internal: bool
    """Whether it has no way out."""


class DiskReport(Fact):
    """The disk below `remote_root`."""

    disk_free_bytes: int
    inodes_total: int
    """0 where the file system does not count them."""
    inodes_free: int


class ModelReport(Fact):
    """Whether the host itself reaches the model's service, or the proxy before it."""

    reached: bool
    detail: str
    """Why not."""


class HostState(Fact):
    """The part of a host's report that must not change during a run."""

    python: str
    architecture: str
    socket: str
    engine: EngineReport
    images: dict[str, ImageReport | None]


class HostReport(HostState):
    """All that `probe` found."""

    cpus: int
    """CPUs that the engine can use."""
    memory_bytes: int
    """Memory of the host."""
    clock_ms: int
    """The host's clock, in milliseconds since 1970."""
    clock_skew_ms: int = 0
    """How far the host's clock is ahead of this machine's."""
    kernel: KernelReport
    networks: dict[str, NetworkReport | None]
    model: ModelReport | None = None
    """None when it was not tried."""
    disk: DiskReport = Field(validation_alias="stats")
    refreshable_login: bool = False
    """Whether the credential file is a login with a refresh token, which works once."""

    def state(self) -> HostState:
        """Return what must not change."""
        return HostState.model_validate(self.model_dump(mode="json", include=_STATE))


_STATE = set(HostState.model_fields)
