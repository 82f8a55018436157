"""Find out whether a host can do what a JobSpec needs, and what earlier runs left there.

Nothing is paid for, and nothing is changed on the host beyond the verified Codex install and the
cache of what images hold: the check of the sandbox runs in a container that is removed again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.api.sandbox_probe import probe_sandbox
from xgent_evolve.canonical import Json
from xgent_evolve.engine.preflight import host_document, host_facts
from xgent_evolve.errors import XgentError
from xgent_evolve.execution.events import Observer, Silent, Story
from xgent_evolve.freeze.code import payload_files
from xgent_evolve.freeze.model_ca import freeze_model_ca
from xgent_evolve.harbor.sandbox import SandboxReport
from xgent_evolve.remote.fitness import advice, check_host, check_image
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.preflight import (
    CodexInstall,
    install_codex,
    model_endpoint,
    probe_host,
    require_own_login,
)
from xgent_evolve.remote.report import HostReport
from xgent_evolve.remote.ssh import address
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.memory import MemoryBlobs


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str = ""
    error: XgentError | None = None
    """What is wrong, with its cure; None when it is fine."""
    detail: str = ""
    advice: tuple[str, ...] = ()
    """What is worth knowing although it is fine."""

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "ok": self.error is None,
            "detail": self.detail,
            "advice": list(self.advice),
            "code": None if self.error is None else self.error.code,
            "message": None if self.error is None else self.error.message,
            "expected": None if self.error is None else self.error.expected,
            "found": None if self.error is None else self.error.found,
            "fix": None if self.error is None else self.error.fix,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, and what lies about on the host."""

    findings: tuple[Finding, ...]
    residue: tuple[dict[str, Json], ...] | None
    """Containers, volumes and directories that carry our label; None when nobody could look."""
    report: HostReport | None = None
    """What the host said of itself."""
    codex: CodexInstall | None = None
    """The verified install."""
    sandboxes: dict[str, SandboxReport] = field(default_factory=dict[str, SandboxReport])
    """What was found in a container, by image."""

    def failed(self) -> list[Finding]:
        """Return the findings that stand in the way."""
        return [finding for finding in self.findings if finding.error is not None]

    def document(self) -> dict[str, Json]:
        """Return the JSON form: one report for the host."""
        host = None if self.report is None else host_document(self.report, self.codex)
        return {
            "type": "diagnosis",
            "findings": [finding.document() for finding in self.findings],
            "host": host,
            "sandboxes": {name: found.document() for name, found in self.sandboxes.items()},
            "residue": None if self.residue is None else list(self.residue),
        }


def doctor(spec_path: Path, *, observer: Observer | None = None) -> Diagnosis:
    """Look at the host of a JobSpec.

    Raises:
        SpecError: the JobSpec itself has faults.
        InvalidError: E_SPEC_CA: its certificates cannot be used.

    """
    loaded = load_spec(spec_path)
    blobs = MemoryBlobs()
    digest = freeze_model_ca(loaded, blobs)
    certificates = "" if digest is None else blobs.get(digest).decode("ascii")
    work = _examine(loaded.spec, observer or Silent(), certificates)
    return run_interruptible(work, next_step="ask again")


def remove_residue(
    spec_path: Path, names: Sequence[str], *, observer: Observer | None = None
) -> list[str]:
    """Remove residue by exact name; what does not carry our label is refused.

    Raises:
        SpecError, RemoteError.

    """
    spec = load_spec(spec_path).spec
    watcher = observer or Silent()

    async def work() -> list[str]:
        host = host_of_spec(spec, watcher)
        try:
            report = await probe_host(host, spec.runtime, spec.cases)
            return await host.remove(names, report.socket)
        finally:
            await host.close()

    return run_interruptible(work(), next_step="ask again")


def host_of_spec(spec: JobSpec, observer: Observer) -> Host:
    """Return the JobSpec's host, with this version's host runner."""
    return Host(
        spec.runtime.ssh,
        spec.runtime.remote_root,
        payload_files(),
        recovery_window_s=0,
        on_story=lambda text: observer.tell(Story(text)),
    )


async def _examine(spec: JobSpec, observer: Observer, certificates: str) -> Diagnosis:
    host = host_of_spec(spec, observer)
    try:
        return await _Examination(spec, host, observer, certificates).carry_out()
    finally:
        await host.close()


@dataclass(slots=True)
class _Examination:
    """Looks at one thing after the other; what depends on something that failed is left out."""

    spec: JobSpec
    host: Host
    observer: Observer
    certificates: str
    """Of a private authority of the model's service; may be empty."""
    findings: list[Finding] = field(default_factory=list[Finding])
    sandboxes: dict[str, SandboxReport] = field(default_factory=dict[str, SandboxReport])
    _report: HostReport | None = None
    _codex: CodexInstall | None = None

    @property
    def report(self) -> HostReport:
        """What the host said; asked for only after it did."""
        assert self._report is not None  # noqa: S101
        return self._report

    async def carry_out(self) -> Diagnosis:
        """Look at everything."""
        residue: tuple[dict[str, Json], ...] | None = None
        if await self._look("connection", self._connection) and await self._look(
            "engine", self._engine
        ):
            await self._look("host", self._fitness)
            usable = {
                case.image: case
                for case in reversed(self.spec.cases)
                if await self._look(f"image of case {case.id}", lambda case=case: self._image(case))
            }
            if await self._look("codex", self._install):
                for case in reversed(usable.values()):
                    await self._look(
                        f"sandbox in {case.image[:19]}", lambda case=case: self._sandbox(case)
                    )
            residue = tuple(await self.host.residue(self.report.socket))
        return Diagnosis(
            tuple(self.findings), residue, self._report, self._codex, dict(self.sandboxes)
        )

    async def _look(self, name: str, work: Callable[[], Awaitable[Finding]]) -> bool:
        self.observer.tell(Story(f"looking at {name}"))
        try:
            found = await work()
        except XgentError as error:
            found = Finding(error=error)
        self.findings.append(replace(found, name=name))
        return found.error is None

    async def _connection(self) -> Finding:
        await self.host.connect()
        return Finding(detail=f"{address(self.spec.runtime.ssh)}, host key as recorded")

    async def _engine(self) -> Finding:
        runtime = self.spec.runtime
        endpoint = None
        if runtime.model is not None:
            endpoint = model_endpoint(runtime, self.certificates)
        self._report = found = await probe_host(
            self.host, runtime, self.spec.cases, endpoint=endpoint
        )
        security = ", ".join(found.engine.security) or "none"
        return Finding(
            detail=f"engine {found.engine.version} at {found.socket}, security: {security};"
            f" Python {found.python}"
        )

    async def _fitness(self) -> Finding:
        check_host(self.report, self.spec.runtime)
        require_own_login(self.report, self.spec.budget.max_concurrency)
        found = self.report
        return Finding(
            detail=f"{found.architecture}, kernel {found.kernel.release},"
            f" {found.cpus} CPUs, {found.memory_bytes >> 20} MiB memory,"
            f" {found.disk.disk_free_bytes >> 20} MiB and {found.disk.inodes_free} inodes free,"
            f" clock {found.clock_skew_ms / 1000:+.1f} s",
            advice=tuple(advice(found, self.spec.runtime, self.spec.cases)),
        )

    async def _image(self, case: Case) -> Finding:
        check_image(self.report, case)
        return Finding(detail=case.image)

    async def _install(self) -> Finding:
        self._codex = await install_codex(self.host, self.spec.runtime.codex)
        return Finding(
            detail=f"Codex {self._codex.version}, binary {self._codex.binary_sha256[:12]},"
            f" manifest {self._codex.manifest_sha256[:12]} as published"
        )

    async def _sandbox(self, case: Case) -> Finding:
        assert self._codex is not None  # noqa: S101 - it is looked at only after the install
        facts = host_facts(self.report, self._codex.directory)
        found = await probe_sandbox(self.host, self.spec, case, facts, self.observer)
        self.sandboxes[case.image] = found
        said = [f"{name} {value}" for name, value in sorted(found.facts.items())]
        return Finding(detail=f"{len(found.checks)} checks hold; " + ", ".join(said))
