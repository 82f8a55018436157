"""The check of the agent's sandbox without a study: an execution of its own, with all receipts."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import HostError
from xgent_evolve.execution.credential import Credentials
from xgent_evolve.execution.events import Observer
from xgent_evolve.execution.executor import Executor
from xgent_evolve.execution.facts import Ledger
from xgent_evolve.freeze.code import payload_files
from xgent_evolve.freeze.protocol import (
    CaseLimits,
    CaseVariables,
    FrozenCase,
    FrozenCondition,
    FrozenSource,
    Protocol,
)
from xgent_evolve.harbor.inputs import HostFacts
from xgent_evolve.harbor.outcome import Broken, command_end, file_content, log_tail
from xgent_evolve.harbor.requests import Planner
from xgent_evolve.harbor.sandbox import SandboxReport, failures, read_report
from xgent_evolve.ids import execution_id
from xgent_evolve.remote.host import Host
from xgent_evolve.spec.cases import Case, RepoSource
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.store.bundles import Blobs, file_entry, put_bundle
from xgent_evolve.store.rundir import RunDir


async def probe_sandbox(
    host: Host, spec: JobSpec, case: Case, facts: HostFacts, observer: Observer
) -> SandboxReport:
    """Try the sandbox in a case's image, and remove what that needed.

    Raises:
        HostError: E_REMOTE_SANDBOX: it does not hold, with the checks that failed.

    """
    with TemporaryDirectory(prefix="xgent-evolve-") as name:
        rundir = RunDir.create(Path(name) / "run")
        protocol = _empty_protocol(spec, case, rundir.blobs)
        planner = Planner(protocol, rundir.blobs, rundir.run_id, facts)
        slot = f"doctor/{case.id}/probe"
        uuid = execution_id(rundir.run_id, slot, 1)
        with rundir.lock(), rundir.open_journal() as journal:
            executor = Executor(
                host,
                rundir,
                journal,
                Ledger(),
                Credentials(spec.runtime, {}),
                facts.socket,
                observer,
            )
            planned = planner.probe(uuid, protocol.conditions[0], protocol.cases[0])
            artifacts = await executor.execute(planned, slot, 1)
        read = rundir.blobs.get
        report = read_report(file_content(artifacts, "stdout", read) or b"")
        end = command_end(artifacts)
        if isinstance(end, Broken):
            raise sandbox_error(spec, case.image, f"{end.cause}: {end.detail}")
        wrong = failures(report, spec.runtime)
        if end.exit_code != 0 or wrong:
            found = ", ".join(wrong) or log_tail(artifacts, read)[-300:]
            raise sandbox_error(spec, case.image, found or f"exit code {end.exit_code}")
        return report


def sandbox_error(spec: JobSpec, image: str, found: str) -> HostError:
    """Return the refusal of a host whose sandbox does not hold."""
    return HostError(
        "the agent's sandbox does not hold on this host",
        code="E_REMOTE_SANDBOX",
        where=f"host {spec.runtime.ssh.host}: image {image}",
        expected="user namespaces, and a shell that sees its workspace and nothing else",
        found=found,
        fix="see docs/isolation.md for what the host must allow; then ask again",
    )


def _empty_protocol(spec: JobSpec, case: Case, blobs: Blobs) -> Protocol:
    """Return a protocol of one case without any material: a probe needs none of it."""
    empty = put_bundle(blobs, ())
    prompt = b"This is the check of the sandbox.\n"
    entry = file_entry("instruction.md", prompt, executable=False)
    digest = blobs.put(prompt)
    in_repository = isinstance(case.source, RepoSource)
    return Protocol(
        schema_version=1,
        spec=spec,
        spec_bytes=digest_bytes(b""),
        source=FrozenSource(),
        conditions=[
            FrozenCondition(
                id=spec.baseline_condition, skill=None, fixed_skills=[], agents=empty, content=empty
            )
        ],
        cases=[
            FrozenCase(
                id=case.id,
                task_file=None,
                limits=CaseLimits(
                    agent_timeout_s=60,
                    grade_timeout_s=60,
                    cpus=spec.runtime.cpus,
                    memory_mb=spec.runtime.memory_mb,
                ),
                variables=CaseVariables(everywhere={}, verifier={}, solution={}),
                instruction=digest,
                public=put_bundle(blobs, (entry,)),
                grader=empty,
                oracle=empty,
                workspace=empty if in_repository else None,
            )
        ],
        payload={name: blobs.put(content) for name, content in payload_files().items()},
        code={},
    )
