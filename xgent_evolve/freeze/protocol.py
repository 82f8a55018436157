"""The Protocol: a JobSpec plus everything that is frozen for it.

`protocol.json` is the canonical JSON of a Protocol; its digest names the study. Every byte that a
trial, a grade or the analysis depends on is reachable from it through digests (requirement C2).
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Literal, Self, cast

from xgent_evolve.canonical import canonical_bytes, digest_bytes
from xgent_evolve.errors import StoreError
from xgent_evolve.freeze.instructions import PROJECT_DOC_MAX_BYTES
from xgent_evolve.ids import Digest
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.kinds import Cpus
from xgent_evolve.spec.locate import Value, path_text
from xgent_evolve.spec.part import Part
from xgent_evolve.spec.shape import fit


class InstalledSkill(Part):
    """A skill as the agent finds it."""

    name: str
    """Directory name below the skill root in the container."""
    bundle: Digest
    """Bundle of the skill's files, paths relative to the skill directory."""
    links: dict[str, str] = field(default_factory=dict[str, str])
    """Target of every link of the source that the bundle has as files, by its path; `.` is the
    skill's directory itself."""


class FrozenCondition(Part):
    """What one condition puts in front of the agent."""

    id: str
    """The condition's name in the JobSpec."""
    skill: InstalledSkill | None
    """The skill under test; None when absent or when the surface is agents."""
    fixed_skills: list[InstalledSkill]
    """Background skills, equal in every condition, sorted by name."""
    agents: Digest
    """Bundle of AGENTS.md files, paths relative to the repository; may be empty."""
    content: Digest
    """Digest over all of the above: equal content, equal digest, whatever the name."""


class CaseLimits(Part):
    """What every execution of one task gets: the task's own limits, never above the JobSpec's."""

    agent_timeout_s: int
    """Wall time of one agent execution, in seconds."""
    grade_timeout_s: int
    """Wall time of one grading or reference solution, in seconds."""
    cpus: Cpus
    """CPUs of one container."""
    memory_mb: int
    """Memory of one container, in MiB."""


class CaseVariables(Part):
    """Literal environment variables that the task sets."""

    everywhere: dict[str, str]
    """For the agent's tools, the verifier and the reference solution."""
    verifier: dict[str, str]
    """Further ones for the verifier."""
    solution: dict[str, str]
    """Further ones for the reference solution."""


class FrozenCase(Part):
    """One task, its views kept apart (requirement F1)."""

    id: str
    """The case's name in the JobSpec."""
    task_file: Digest | None
    """Blob of task.toml; None when the task has none."""
    limits: CaseLimits
    """Effective limits."""
    variables: CaseVariables
    """Environment variables from task.toml."""
    instruction: Digest
    """Blob of the prompt: instruction.md without leading canary lines."""
    public: Digest
    """Bundle that the agent may read."""
    grader: Digest
    """Bundle that only the grader gets, paths relative to the task directory."""
    oracle: Digest
    """Bundle that only the oracle check gets, paths relative to the task directory."""
    workspace: Digest | None
    """Bundle placed at repo_path (source.kind=repo), without AGENTS.md files and without the
    skills under study; None when the image already holds the workspace."""


class FrozenSource(Part):
    """How the frozen source differs from the base commit: bytes on disk, no filter applied."""

    changed: list[str] = field(default_factory=list[str])
    """Files and links whose bytes, mode or kind are not those of the commit; new ones included."""
    deleted: list[str] = field(default_factory=list[str])
    """Files of the commit that are gone from the disk."""
    hidden: list[str] = field(default_factory=list[str])
    """Changed files that Git was told not to look at, so that its status hides them."""


class Protocol(Part):
    """A study, frozen."""

    schema_version: Literal[1]
    """Version of this document."""
    spec: JobSpec
    """The JobSpec, of any version."""
    spec_bytes: Digest
    """Blob of the JobSpec file as it was read."""
    source: FrozenSource
    """The frozen source against the base commit."""
    conditions: list[FrozenCondition]
    """The arms, in the order of the JobSpec."""
    cases: list[FrozenCase]
    """The tasks, in the order of the JobSpec."""
    method: Digest | None = None
    """Blob of the optimizer's instructions (mode search)."""
    model_ca: Digest | None = None
    """Blob of the certificates that the model driver trusts besides the public ones."""
    evaluation: Digest | None = None
    """Bundle of the judging material, paths relative to evaluation.root (version 2)."""
    project_doc_max_bytes: int = PROJECT_DOC_MAX_BYTES
    """Bytes of AGENTS.md text that Codex loads at most, in every trial."""
    payload: dict[str, Digest]
    """Blobs of the scripts that are shipped to the host, by file name."""
    code: dict[str, Digest]
    """Digest of each part of this package that decides a score, by part name."""

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Return the Protocol whose canonical JSON `content` is.

        Raises:
            StoreError: E_STORE_CORRUPT: it is no protocol of this version, or not canonical.

        """
        try:
            value = cast("Value", json.loads(content))
        except (ValueError, RecursionError) as error:
            raise _not_a_protocol(str(error)) from error
        protocol, findings = fit(cls, value, from_protocol=True)
        if protocol is None:
            first = findings[0]
            raise _not_a_protocol(f"{path_text(first.path)}: {first.message}: {first.found}")
        if protocol.to_bytes() != content:
            raise _not_a_protocol("another byte form than the canonical one")
        return protocol

    def to_bytes(self) -> bytes:
        """Return the canonical JSON: the content of protocol.json."""
        return canonical_bytes(self.document())

    def digest(self) -> Digest:
        """Return the digest that names the study."""
        return digest_bytes(self.to_bytes())

    def condition(self, condition_id: str) -> FrozenCondition:
        """Return the frozen condition of that name."""
        return next(item for item in self.conditions if item.id == condition_id)

    def case(self, case_id: str) -> FrozenCase:
        """Return the frozen case of that name."""
        return next(item for item in self.cases if item.id == case_id)


def _not_a_protocol(found: str) -> StoreError:
    return StoreError(
        "the frozen protocol cannot be read",
        code="E_STORE_CORRUPT",
        where="protocol.json",
        expected="the canonical JSON of a Protocol of schema version 1",
        found=found,
        fix="restore protocol.json from a copy, or use the version that made the run",
    )
