"""Find out whether a host can do what a JobSpec needs, and what earlier runs left there.

Nothing is paid for and nothing is changed on the host beyond the verified Codex install.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.interrupt import run_interruptible
from xgent_evolve.canonical import Json
from xgent_evolve.errors import XgentError
from xgent_evolve.execution.events import Observer, Silent, Story
from xgent_evolve.freeze.code import payload_files
from xgent_evolve.remote.host import Host
from xgent_evolve.remote.preflight import (
    HostReport,
    check_engine,
    check_image,
    install_codex,
    probe_host,
    require_own_login,
)
from xgent_evolve.remote.ssh import address
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.load import load_spec


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    error: XgentError | None
    """What is wrong, with its cure; None when it is fine."""
    detail: str = ""

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "ok": self.error is None,
            "detail": self.detail,
            "code": None if self.error is None else self.error.code,
            "message": None if self.error is None else self.error.message,
            "fix": None if self.error is None else self.error.fix,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings, and what lies about on the host."""

    findings: tuple[Finding, ...]
    residue: tuple[dict[str, Json], ...] | None
    """Containers, volumes and directories that carry our label; None when nobody could look."""

    def failed(self) -> list[Finding]:
        """Return the findings that stand in the way."""
        return [finding for finding in self.findings if finding.error is not None]


def doctor(spec_path: Path, *, observer: Observer | None = None) -> Diagnosis:
    """Look at the host of a JobSpec.

    Raises:
        SpecError: the JobSpec itself has faults.

    """
    spec = load_spec(spec_path).spec
    return run_interruptible(_examine(spec, observer or Silent()), next_step="ask again")


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


async def _examine(spec: JobSpec, observer: Observer) -> Diagnosis:
    runtime = spec.runtime
    host = host_of_spec(spec, observer)
    findings: list[Finding] = []
    residue: tuple[dict[str, Json], ...] | None = None

    async def look(name: str, work: Callable[[], Awaitable[str]]) -> bool:
        observer.tell(Story(f"looking at {name}"))
        try:
            findings.append(Finding(name, None, await work()))
        except XgentError as error:
            findings.append(Finding(name, error))
        return findings[-1].error is None

    report: list[HostReport] = []

    async def connection() -> str:
        await host.connect()
        return f"{address(runtime.ssh)}, host key as recorded"

    async def facts() -> str:
        report.append(await probe_host(host, runtime, spec.cases))
        found = report[0]
        return f"engine {found.engine.version} at {found.socket}, Python {found.python}"

    async def fitness() -> str:
        check_engine(report[0], runtime)
        require_own_login(report[0], spec.budget.max_concurrency)
        return f"{report[0].architecture}, {report[0].disk_free_bytes >> 20} MiB free"

    async def codex() -> str:
        _, manifest = await install_codex(host, runtime.codex)
        return f"Codex {runtime.codex.version}, manifest {str(manifest['manifest_sha256'])[:12]}"

    try:
        if await look("connection", connection) and await look("engine", facts):
            await look("host", fitness)
            for case in spec.cases:

                async def image(case_id: str = case.id) -> str:
                    chosen = next(item for item in spec.cases if item.id == case_id)
                    check_image(report[0], chosen)
                    return chosen.image

                await look(f"image of case {case.id}", image)
            await look("codex", codex)
            residue = tuple(await host.residue(report[0].socket))
    finally:
        await host.close()
    return Diagnosis(tuple(findings), residue)
