"""What each kind of execution asks of the host (requirements E4, F1 to F3)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from xgent_evolve.canonical import Json
from xgent_evolve.freeze.protocol import CaseLimits, FrozenCase, FrozenCondition, Protocol
from xgent_evolve.harbor import codex, sandbox, visibility
from xgent_evolve.harbor.inputs import HostFacts, Inputs
from xgent_evolve.harbor.request import (
    Capture,
    Change,
    EngineAddress,
    Kind,
    Request,
    RequestEntry,
    Workspace,
)
from xgent_evolve.ids import Digest, ExecutionId, RunId
from xgent_evolve.spec.models_v1 import Case
from xgent_evolve.store.bundles import Blobs, Tree, load_bundle

MAX_FILE_BYTES = 64 * 1024 * 1024
FIRST_OUTPUT_S = 120
"""Codex announces its thread at once; one that has said nothing by then waits for something that
does not come, and the rest of its time would be lost."""
OUTPUT_LIMIT_BYTES = 16 * 1024 * 1024
OPTIMIZER_WORK = "/evolution-work"
"""Working directory of an optimizer."""
VERIFIER = "/logs/verifier"
PREPARE_VERIFIER = (
    f"{{ [ ! -e {VERIFIER} ] && [ ! -h {VERIFIER} ] || rm -rf {VERIFIER}; }}"
    f" && mkdir -p {VERIFIER} /logs/agent /logs/artifacts"
)
"""Shell text that empties the verifier's directory: an image may ship files there."""
COLLECTED = "verifier"
COLLECT_VERIFIER = f'cp -R {VERIFIER} "$ctl/{COLLECTED}"'
"""Shell text that puts the verifier's files beside the record: each read of a stopped container
costs the engine as much as starting one, so there is only one."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A request and where the bytes that it names are stored."""

    request: Request
    sources: dict[str, Digest]
    """Blob of each SHA-256 of the request."""


@dataclass(frozen=True, slots=True)
class Brief:
    """What an optimizer is given."""

    prompt: bytes
    schema: bytes
    """JSON Schema of its answer."""
    files: Mapping[str, bytes]
    """Evidence, by path below the public input directory."""
    bundles: Mapping[str, Digest]
    """Frozen evidence, by the directory that it is placed in."""
    text: Tree
    """The text to change, by path in the working directory."""


@dataclass(frozen=True, slots=True)
class Planner:
    """Builds requests from the frozen protocol and the host's facts."""

    protocol: Protocol
    blobs: Blobs
    run_id: RunId
    host: HostFacts

    def agent(self, uuid: ExecutionId, condition: FrozenCondition, case: FrozenCase) -> Planned:
        """Return the measured work: Codex on the case's prompt, under the condition's text."""
        runtime = self.protocol.spec.runtime
        inputs = self._codex_inputs(uuid, condition, case)
        inputs.add_file("/xgent/prompt.txt", self.blobs.get(case.instruction))
        command = codex.exec_command(runtime, self._case(case).repo_path)
        workspace = self._workspace(inputs, case, condition, owner=codex.USER)
        self._expect(inputs, workspace)
        self._control(inputs, command, case.limits.agent_timeout_s, credential=True)
        return self._codex_request(uuid, "agent", case, inputs, workspace, secrets=True)

    def probe(self, uuid: ExecutionId, condition: FrozenCondition, case: FrozenCase) -> Planned:
        """Return the sandbox check of a case's image; it calls no model."""
        profile = codex.profile_name(uuid)
        inputs = Inputs(self.blobs)
        inputs.add_bundle(f"{codex.TASK_INPUT}/task", case.public)
        inputs.add_file("/xgent/codex-home/config.toml", codex.probe_toml(profile))
        spec_case = self._case(case)
        command = sandbox.probe_command(
            self.protocol.spec.runtime,
            spec_case.repo_path,
            profile,
            path=self.host.images[spec_case.image].path,
        )
        self._control(inputs, command, 60, credential=False)
        workspace = self._workspace(inputs, case, condition, owner=codex.USER)
        return self._codex_request(uuid, "probe", case, inputs, workspace, secrets=False)

    def login(self, uuid: ExecutionId, condition: FrozenCondition, case: FrozenCase) -> Planned:
        """Return one model call that proves the credential, with a prompt that asks for nothing."""
        inputs = self._codex_inputs(uuid, condition, case)
        inputs.add_file("/xgent/prompt.txt", b"Reply with the single word: ready\n")
        command = codex.exec_command(self.protocol.spec.runtime, self._case(case).repo_path)
        workspace = self._workspace(inputs, case, condition, owner=codex.USER)
        self._expect(inputs, workspace)
        self._control(inputs, command, case.limits.agent_timeout_s, credential=True)
        return self._codex_request(uuid, "login", case, inputs, workspace, secrets=True)

    def oracle(self, uuid: ExecutionId, condition: FrozenCondition, case: FrozenCase) -> Planned:
        """Return the reference solution, run as root like the verifier."""
        inputs = Inputs(self.blobs)
        inputs.add_bundle("/", case.oracle)
        command = _script(self._case(case).repo_path, "/solution/solve.sh")
        self._control(inputs, command, case.limits.grade_timeout_s, credential=False)
        workspace = self._workspace(inputs, case, condition, owner=None)
        variables = {**case.variables.everywhere, **case.variables.solution}
        return self._root_request(
            uuid, "oracle", case, inputs, workspace, capture=True, variables=variables
        )

    def grade(
        self,
        uuid: ExecutionId,
        condition: FrozenCondition,
        case: FrozenCase,
        changes: list[Change],
        sources: dict[str, Digest],
    ) -> Planned:
        """Return the verifier in a new container that gets the delivery and the tests only."""
        inputs = Inputs(self.blobs)
        inputs.add_bundle("/", case.grader)
        inputs.entries = [_executable(item, "tests/test.sh") for item in inputs.entries]
        inputs.sources.update(sources)
        command = _script(self._case(case).repo_path, "/tests/test.sh")
        self._control(inputs, command, case.limits.grade_timeout_s, credential=False)
        workspace = self._workspace(inputs, case, condition, owner=None, changes=changes)
        variables = {**case.variables.everywhere, **case.variables.verifier}
        return self._root_request(
            uuid, "grade", case, inputs, workspace, capture=False, variables=variables
        )

    def optimizer(self, uuid: ExecutionId, case: FrozenCase, brief: Brief) -> Planned:
        """Return the optimizer's work in the image of `case`, on a copy of the text.

        It gets no skill and no instructions but its prompt: the text under study lies below its
        working directory, where Codex does not look for either.
        """
        spec = self.protocol.spec
        optimizer = spec.optimizer
        if optimizer is None:
            raise ValueError("the study has no optimizer")
        runtime = spec.runtime.replaced(model=optimizer.model, effort=optimizer.effort)
        limits = CaseLimits(
            agent_timeout_s=spec.budget.trial_timeout_s,
            grade_timeout_s=spec.budget.grade_timeout_s,
            cpus=spec.runtime.cpus,
            memory_mb=spec.runtime.memory_mb,
        )
        granted = case.replaced(limits=limits)
        inputs = Inputs(self.blobs)
        for path, content in brief.files.items():
            inputs.add_file(f"{codex.TASK_INPUT}/{path}", content)
        for directory, bundle in brief.bundles.items():
            inputs.add_bundle(f"{codex.TASK_INPUT}/{directory}", bundle)
        config = codex.config_toml(
            runtime,
            workdir=OPTIMIZER_WORK,
            path=self.host.images[self._case(case).image].path,
            trusted=False,
            variables={},
            project_doc_max_bytes=0,
        )
        self._add_settings(inputs, uuid, config)
        inputs.add_file("/xgent/prompt.txt", brief.prompt)
        inputs.add_file("/xgent/answer-schema.json", brief.schema)
        workspace = Workspace(
            path=OPTIMIZER_WORK,
            from_image=False,
            owner=codex.USER,
            remove=[],
            entries=inputs.remember(brief.text, ""),
            changes=[],
            ensure=list(codex.PROTECTED),
        )
        self._expect(inputs, workspace)
        command = codex.exec_command(runtime, OPTIMIZER_WORK, schema="/xgent/answer-schema.json")
        self._control(inputs, command, limits.agent_timeout_s, credential=True)
        return self._codex_request(uuid, "optimizer", granted, inputs, workspace, secrets=True)

    # What the kinds have in common.

    def _case(self, case: FrozenCase) -> Case:
        return next(item for item in self.protocol.spec.cases if item.id == case.id)

    def _codex_inputs(
        self, uuid: ExecutionId, condition: FrozenCondition, case: FrozenCase
    ) -> Inputs:
        spec_case = self._case(case)
        inputs = Inputs(self.blobs)
        inputs.add_bundle(f"{codex.TASK_INPUT}/task", case.public)
        config = codex.config_toml(
            self.protocol.spec.runtime,
            workdir=spec_case.repo_path,
            path=self.host.images[spec_case.image].path,
            trusted=self._delivers_agents(),
            variables=case.variables.everywhere,
            project_doc_max_bytes=self.protocol.project_doc_max_bytes,
        )
        self._add_settings(inputs, uuid, config)
        installed = [*condition.fixed_skills, *([condition.skill] if condition.skill else [])]
        for skill in installed:
            inputs.add_bundle(f"{codex.SKILL_ROOT}/{skill.name}", skill.bundle)
        return inputs

    def _add_settings(self, inputs: Inputs, uuid: ExecutionId, config: bytes) -> None:
        """Add the driver's configuration, what it may not override, and a private authority."""
        inputs.add_file("/xgent/codex-home/config.toml", config)
        if self.protocol.model_ca is not None:
            inputs.add_file(codex.MODEL_CA, self.blobs.get(self.protocol.model_ca))
        requirements = codex.requirements_toml(codex.profile_name(uuid))
        inputs.add_file("/etc/codex/requirements.toml", requirements)

    def _delivers_agents(self) -> bool:
        """Say whether any condition has AGENTS.md text; trust is then equal in all of them."""
        return any(load_bundle(self.blobs, item.agents) for item in self.protocol.conditions)

    def _expect(self, inputs: Inputs, workspace: Workspace) -> None:
        """Add what the agent is meant to see, and the script that compares it with what it does."""
        lines = visibility.expected_lines(
            inputs.entries, workspace.entries, home=codex.CODEX_HOME, workdir=workspace.path
        )
        skills = {
            skill.name
            for item in self.protocol.conditions
            for skill in (*item.fixed_skills, *([item.skill] if item.skill else []))
        }
        text = visibility.plan_text(
            workdir=workspace.path,
            from_image=workspace.from_image,
            home=codex.CODEX_HOME,
            credential=codex.CREDENTIAL,
            skills=skills,
        )
        inputs.add_file("/xgent/expected", lines)
        inputs.add_file("/xgent/look.sh", text.encode())
        inputs.add_file("/xgent/visible.sh", self.blobs.get(self.protocol.payload["visible.sh"]))

    def _control(self, inputs: Inputs, command: bytes, limit_s: int, *, credential: bool) -> None:
        """Add the supervisor, its plan and the command."""
        is_codex = b"env -i" in command
        placed = {item.path for item in inputs.entries}
        prepare = codex.PREPARE if is_codex else PREPARE_VERIFIER
        if "xgent/look.sh" in placed:
            prepare += " &&\n    . /xgent/look.sh && visible"
        stdin = "/xgent/prompt.txt" if "xgent/prompt.txt" in placed else "/dev/null"
        plan = "\n".join(
            [
                f"limit_s={limit_s}",
                f"first_output_s={FIRST_OUTPUT_S if credential else ''}",
                f"output_limit={OUTPUT_LIMIT_BYTES}",
                f"credential_to={shlex.quote(codex.CREDENTIAL if credential else '')}",
                f"stdin_from={stdin}",
                f"prepare() {{\n{prepare}\n}}",
                f"collect() {{\n{codex.COLLECT if is_codex else COLLECT_VERIFIER}\n}}",
                "",
            ]
        )
        supervisor = self.blobs.get(self.protocol.payload["supervisor.sh"])
        inputs.add_file("/xgent/supervisor.sh", supervisor, executable=True)
        inputs.add_file("/xgent/plan.sh", plan.encode())
        inputs.add_file("/xgent/command.sh", command)

    def _workspace(
        self,
        inputs: Inputs,
        case: FrozenCase,
        condition: FrozenCondition,
        *,
        owner: int | None,
        changes: list[Change] | None = None,
    ) -> Workspace:
        """Return the working directory: image or frozen source, then the condition's AGENTS.md."""
        source: Tree = load_bundle(self.blobs, case.workspace) if case.workspace else ()
        agents = load_bundle(self.blobs, condition.agents) if case.workspace else ()
        return Workspace(
            path=self._case(case).repo_path,
            from_image=case.workspace is None,
            owner=owner,
            remove=list(visibility.DROPPED),
            entries=[
                entry
                for entry in inputs.remember((*source, *agents), "")
                if not visibility.is_dropped(entry.path)
            ],
            changes=changes or [],
            ensure=list(codex.PROTECTED) if owner is not None else [],
            repository=owner is not None and case.workspace is not None,
        )

    def _codex_request(
        self,
        uuid: ExecutionId,
        kind: Kind,
        case: FrozenCase,
        inputs: Inputs,
        workspace: Workspace,
        *,
        secrets: bool,
    ) -> Planned:
        runtime = self.protocol.spec.runtime
        seccomp = "unconfined"
        if runtime.seccomp == "default":
            seccomp = self.blobs.get(self.protocol.payload["seccomp.json"]).decode()
        security: list[Json] = ["no-new-privileges", f"seccomp={seccomp}"]
        if self.host.apparmor:
            security.append(f"apparmor={runtime.apparmor_profile or 'unconfined'}")
        container = self._container(case, user=f"{codex.USER}:{codex.USER}")
        tool: dict[str, Json] = {
            "Type": "bind",
            "Source": self.host.tool,
            "Target": codex.INSTALL,
            "ReadOnly": True,
        }
        memory_files: dict[str, Json] = {
            "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=512m",  # noqa: S108 - in the container
            codex.HOME: f"rw,nosuid,nodev,mode=700,uid={codex.USER},gid={codex.USER},size=256m",
        }
        container["HostConfig"] = {
            **self._limits(case),
            "NetworkMode": runtime.network if secrets else "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": security,
            "MaskedPaths": [],
            "ReadonlyPaths": [],
            "Tmpfs": memory_files,
            "Mounts": [tool],
        }
        return self._planned(
            uuid,
            kind,
            inputs,
            workspace,
            container=container,
            user=codex.USER,
            capture=Capture(
                workspace=True,
                exclude=list(codex.PROTECTED),
                max_file_bytes=MAX_FILE_BYTES,
                paths=[],
            ),
            secrets=secrets,
            limit_s=case.limits.agent_timeout_s if secrets else 60,
        )

    def _root_request(
        self,
        uuid: ExecutionId,
        kind: Kind,
        case: FrozenCase,
        inputs: Inputs,
        workspace: Workspace,
        *,
        capture: bool,
        variables: Mapping[str, str],
    ) -> Planned:
        container = self._container(case, user="0:0")
        container["Env"] = [f"{name}={value}" for name, value in variables.items()]
        container["HostConfig"] = {
            **self._limits(case),
            "NetworkMode": "none",
            "SecurityOpt": ["no-new-privileges"],
        }
        return self._planned(
            uuid,
            kind,
            inputs,
            workspace,
            container=container,
            user=0,
            capture=Capture(
                workspace=capture,
                exclude=[".git"],
                max_file_bytes=MAX_FILE_BYTES,
                paths=[],
                outside=capture,
            ),
            secrets=False,
            limit_s=case.limits.grade_timeout_s,
        )

    def _planned(
        self,
        uuid: ExecutionId,
        kind: Kind,
        inputs: Inputs,
        workspace: Workspace,
        *,
        container: dict[str, Json],
        user: int,
        capture: Capture,
        secrets: bool,
        limit_s: int,
    ) -> Planned:
        request = Request(
            uuid=uuid,
            run_id=self.run_id,
            kind=kind,
            engine=EngineAddress(socket=self.host.socket),
            container=container,
            user_id=user,
            inputs=inputs.entries,
            directories=[],
            workspace=workspace,
            capture=capture,
            secrets=secrets,
            limit_s=limit_s,
            grace_s=120,
        )
        return Planned(request=request, sources=inputs.sources)

    def _container(self, case: FrozenCase, *, user: str) -> dict[str, Json]:
        return {
            "Image": self.host.images[self._case(case).image].id,
            "Entrypoint": ["/bin/sh", "/xgent/supervisor.sh"],
            "Cmd": [],
            "User": user,
            "WorkingDir": "/",
            "Env": [],
        }

    def _limits(self, case: FrozenCase) -> dict[str, Json]:
        memory = case.limits.memory_mb * 1024 * 1024
        return {
            "Init": True,
            "LogConfig": {"Type": "none"},
            "Memory": memory,
            "MemorySwap": memory,
            "NanoCpus": int(case.limits.cpus * 1_000_000_000),
            "PidsLimit": 512,
            "Ulimits": [{"Name": "core", "Soft": 0, "Hard": 0}],
        }


def _script(workdir: str, path: str) -> bytes:
    return f"cd {shlex.quote(workdir)} && exec {path}\n".encode()


def _executable(entry: RequestEntry, path: str) -> RequestEntry:
    return entry.model_copy(update={"mode": 0o755}) if entry.path == path else entry
