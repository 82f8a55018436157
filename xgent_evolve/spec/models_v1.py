"""JobSpec version 1: what a caller writes (requirements B2 to B10).

Models are closed and immutable. The docstring under a field is its description in the published
JSON Schema. Relative paths are resolved against the directory of the JobSpec. Decimals are
written as JSON numbers and kept exactly.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from xgent_evolve.spec.kinds import (
    AbsolutePath,
    Address,
    Confidence,
    Cpus,
    DateText,
    DottedVersion,
    EnvName,
    Fraction,
    GitSha,
    HostDirectory,
    HostName,
    ImageReference,
    LocalPath,
    LoginName,
    Name,
    Part,
    ProxyAddress,
    RelativePath,
    Sha256,
    Text,
    Weight,
)

type Effort = Literal["minimal", "low", "medium", "high", "xhigh"]


class ProtectedRule(Part):
    """A rule that no candidate may drop."""

    path: RelativePath
    """Instruction file that holds the rule, relative to the repository."""
    text: Text
    """The rule's text."""
    match: Literal["exact", "contains"] = "exact"
    """exact: the text must stay as whole lines; contains: it must stay somewhere in the file."""


class Target(Part):
    """What may be improved, and from which state."""

    repo: LocalPath
    """The Git working tree that holds the instructions."""
    base_commit: GitSha
    """The commit that the working tree stands on."""
    surface: Literal["skill", "agents"]
    """Which kind of text is studied: one skill, or the repository's AGENTS.md files."""
    paths: Annotated[list[RelativePath], Field(min_length=1)]
    """Files or directories that a candidate may change. For surface=skill: one skill root."""
    protected_rules: list[ProtectedRule] = Field(default_factory=list[ProtectedRule])
    """Rules that every condition and candidate must keep."""
    compatible_bases: list[GitSha] = Field(default_factory=list[str])
    """Older commits, real ancestors of the base, whose tasks the instructions also suit."""


class Source(Part):
    """Which bytes of the working tree are frozen and may leave this machine."""

    paths: Annotated[list[RelativePath], Field(min_length=1)]
    """Tracked files or directories, frozen as they are on disk."""
    new_paths: list[RelativePath] = Field(default_factory=list[str])
    """Untracked files that are frozen too."""
    fixed_skill_roots: list[RelativePath] = Field(default_factory=list[str])
    """Skills that are installed unchanged in every condition; outside the target's paths."""


class Authority(Part):
    """What the caller allows. It comes from the caller alone, never from a repository's text."""

    repo: LocalPath
    """The repository that the caller speaks for; must be the target's."""
    export_paths: Annotated[list[RelativePath], Field(min_length=1)]
    """Paths of the repository that may be sent to the host."""
    write_paths: list[RelativePath] = Field(default_factory=list[str])
    """Paths of the repository that apply may write."""
    allow_apply: bool = False
    """Whether apply may write at all."""
    auth_path: LocalPath | None = None
    """Credential file on the host that may be used; must equal the one of authentication."""
    evaluation_root: LocalPath | None = None
    """Directory of quality material (version 2)."""
    allow_typesafe_auxiliary: bool = False
    """Whether material may be sent to the auxiliary scorer (version 2)."""


class Ssh(Part):
    """How to reach the host. Host keys are always checked."""

    host: HostName
    """Host name, address, or alias of ~/.ssh/config (ProxyJump and the like are followed)."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """TCP port; the one of ~/.ssh/config for this host, or 22, when absent."""
    user: LoginName | None = None
    """Login name; the local one when absent."""
    known_hosts: LocalPath | None = None
    """Known-hosts file, from / or ~/; ~/.ssh/known_hosts when absent."""
    identity: LocalPath | None = None
    """Private key file; the agent and default keys when absent."""


class Docker(Part):
    """The engine on the host."""

    path: AbsolutePath
    """The docker command on the host; names the engine the way its user does."""
    version: DottedVersion
    """Engine version, as a dotted prefix (20.10 accepts 20.10.24)."""
    socket: AbsolutePath | None = None
    """Engine socket; asked of the docker command when absent."""


class Codex(Part):
    """The Codex CLI that is installed on the host for the containers."""

    version: Literal["0.162.1"]
    """Codex CLI version."""
    architecture: Literal["x86_64", "aarch64"]
    """The engine's native CPU architecture."""
    registry: Address | None = None
    """npm registry; the host's npm configuration when absent."""


class HostFile(Part):
    """A credential file that is already on the host."""

    source: Literal["host_file"]
    """The credential lies on the host."""
    path: LocalPath
    """Its path there; `~/` is the login's home."""


class ControllerEnv(Part):
    """An API key taken from this process's environment and sent over the connection's stdin."""

    source: Literal["controller_env"]
    """The credential is in the controller's environment."""
    name: EnvName
    """Name of the variable; its value is never written anywhere."""


type Authentication = Annotated[HostFile | ControllerEnv, Field(discriminator="source")]


class Sampling(Part):
    """Sampling settings; Codex 0.162.1 sends none, so only null is accepted."""

    seed: None = None
    """No seed can be sent."""


class Runtime(Part):
    """Where and with what the trials run."""

    ssh: Ssh
    """The host."""
    remote_root: HostDirectory
    """Directory on the host that belongs to xgent-evolve alone."""
    docker: Docker
    """The engine."""
    codex: Codex
    """The agent program."""
    model: Name | None = None
    """Model name. Required by compare; smoke without it calls no model."""
    effort: Effort | None = None
    """Reasoning effort, pinned for every trial."""
    tools: list[Literal["shell"]] = Field(default_factory=list[Literal["shell"]])
    """Tools of the agent."""
    sampling: Sampling = Sampling()
    """Sampling settings."""
    authentication: Authentication | None = None
    """Where the model credential comes from."""
    base_url: Address = "https://api.openai.com/v1"
    """Responses API endpoint that the model driver calls."""
    network: Name = "bridge"
    """Engine network of the model driver's container; the agent's tools never have network."""
    model_proxy: ProxyAddress | None = None
    """Proxy for the model driver alone: no credentials, path or query."""
    apparmor_profile: Name | None = None
    """AppArmor profile that is loaded on the host; unconfined when absent."""
    seccomp: Literal["default", "unconfined"] = "default"
    """System calls of the agent's container: the list that is shipped, or all."""
    cpus: Cpus = Decimal(2)
    """CPUs of one container."""
    memory_mb: Annotated[int, Field(ge=64)] = 2048
    """Memory of one container, in MiB; swap is not added."""


class Budget(Part):
    """Hard limits, all finite. A run stops before it would cross one."""

    max_candidates: Annotated[int, Field(ge=0)] = 0
    """Most candidates that may be proposed (search)."""
    max_trials: Annotated[int, Field(gt=0)]
    """Most agent executions that may start, retries and confirmation included."""
    max_concurrency: Annotated[int, Field(ge=1, le=256)]
    """Most executions at one time."""
    trial_timeout_s: Annotated[int, Field(ge=1, le=86_400)]
    """Wall time of one agent execution, in seconds."""
    grade_timeout_s: Annotated[int, Field(ge=1, le=86_400)] = 600
    """Wall time of one grading, in seconds."""
    deadline_s: Annotated[int, Field(ge=1)]
    """Time from the start of a run or resume after which nothing new starts, in seconds."""
    recovery_window_s: Annotated[int, Field(ge=0)]
    """How long an unreachable host is retried before the command stops, in seconds."""
    max_retries: Annotated[int, Field(ge=0, le=10)]
    """Further attempts after a captured infrastructure failure, per slot."""
    max_auxiliary_calls: Annotated[int, Field(ge=0)] = 0
    """Most auxiliary calls (version 2)."""
    confirmation_trials: Annotated[int, Field(ge=0)] = 0
    """Part of max_trials that only confirmation may spend."""


class Measurement(Part):
    """How the comparison is judged, fixed before anything runs."""

    objective: Literal["task_success"]
    """What is measured: the share of tasks whose verifier says 1."""
    weights: dict[Name, Weight] = Field(default_factory=dict[str, Decimal])
    """Weight of a source group; 1 for a group that is not named."""
    min_gain: Fraction
    """Smallest gain worth having; keep needs the whole interval above it."""
    non_inferiority_margin: Fraction
    """Largest loss that still counts as not worse."""
    confidence: Confidence
    """Confidence level of the two-sided interval."""
    min_groups: Annotated[int, Field(ge=2)]
    """Fewest independent source groups with a pair; below, the evidence is insufficient."""
    repeats: Annotated[int, Field(ge=1)]
    """Trials of every case in every condition."""
    search_policy: Literal["strict"] = "strict"
    """Rule of the search (version 2 has another)."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the bootstrap."""


class Guardrail(Part):
    """A floor that the candidate must not fall below."""

    name: Name
    """task_contract is the verifier's reward; others are read from checks.json."""
    floor: Fraction
    """Smallest acceptable mean of the candidate condition."""


class RepoSource(Part):
    """The task starts from the target repository's frozen files, placed at repo_path."""

    kind: Literal["repo"]
    """A task of the target repository itself."""
    repo: LocalPath
    """The repository; must be the target's."""
    base: GitSha
    """The commit it starts from: the target's base or one of its compatible bases."""


class LocalSource(Part):
    """The task starts from what the image has at repo_path."""

    kind: Literal["local"]
    """A task directory of the caller's own, frozen by hash."""
    origin: Text
    """Where the task came from, for the reader."""


class PublicSource(Part):
    """A public benchmark task, pinned to a commit of its checkout."""

    kind: Literal["public"]
    """Every file is checked byte for byte against the commit's objects."""
    repo: LocalPath
    """The checkout that holds the task directory."""
    commit: GitSha
    """The pinned commit."""


type CaseSource = Annotated[RepoSource | LocalSource | PublicSource, Field(discriminator="kind")]


class Case(Part):
    """One task of the study."""

    id: Name
    """Unique name."""
    source: CaseSource
    """Where the task comes from and what it starts from."""
    group: Name
    """Independent source group; tasks of one origin belong together."""
    split: Literal["search", "validation", "confirmation"]
    """What the case may be used for."""
    information_cutoff: DateText
    """Date up to which the task's material was known."""
    observable_requirements: Annotated[list[Text], Field(min_length=1)]
    """Public requirements, each checkable from outside."""
    task_path: LocalPath
    """The task directory."""
    repo_path: AbsolutePath
    """Working directory in the container."""
    image: ImageReference
    """Image by digest (`name@sha256:…`) or by local image id (`sha256:…`)."""
    platform: Literal["linux/amd64"] = "linux/amd64"
    """Platform of the image."""
    public_paths: list[RelativePath] = Field(default_factory=lambda: ["instruction.md"])
    """Files of the task directory that the agent may read; instruction.md is the prompt."""
    grader_paths: list[RelativePath] = Field(default_factory=lambda: ["tests"])
    """Files of the task directory that only the grader gets; tests/test.sh is run."""
    oracle_paths: list[RelativePath] = Field(default_factory=lambda: ["solution"])
    """Files of the task directory that only the oracle check gets; solution/solve.sh is run."""
    verifier_exit: Literal["must_agree", "ignored"] = "must_agree"
    """Whether the exit code of test.sh must be 0 exactly when the reward is 1."""


class Condition(Part):
    """One arm of the study."""

    id: Name
    """Unique name."""
    skill: Literal["absent", "baseline", "candidate", "fixed"]
    """Which skill text the agent gets."""
    agents: Literal["minimal", "baseline", "candidate", "fixed"]
    """Which AGENTS.md text the agent gets."""
    overrides: dict[RelativePath, str | None] = Field(default_factory=dict[str, str | None])
    """Full text of changed files under the target's paths; null removes the file."""


class Optimizer(Part):
    """The search's proposer (mode search)."""

    strategy: Literal["hillclimb"] = "hillclimb"
    """Which algorithm searches."""
    model: Name
    """Model of the optimizer."""
    effort: Effort
    """Reasoning effort of the optimizer."""
    method_path: LocalPath
    """File with the optimizer's instructions."""
    method_sha256: Sha256
    """SHA-256 of that file."""


class JobSpecV1(Part):
    """A JobSpec of version 1: one study, complete and closed."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        populate_by_name=False,
    )

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    """Address of the JSON Schema, for editors; not used otherwise."""
    schema_version: Literal[1]
    """Version of this format."""
    protocol_id: Name
    """The caller's name for the study."""
    question: Text
    """The question that the study answers."""
    mode: Literal["smoke", "compare", "search"]
    """smoke: does everything work; compare: two conditions; search: find better text."""
    target: Target
    """What is studied."""
    source: Source
    """What is frozen of the repository."""
    runtime: Runtime
    """Where and with what it runs."""
    authority: Authority
    """What the caller allows."""
    budget: Budget
    """Hard limits."""
    measurement: Measurement
    """How it is judged."""
    guardrails: list[Guardrail]
    """Floors."""
    cases: Annotated[list[Case], Field(min_length=1)]
    """The tasks."""
    conditions: Annotated[list[Condition], Field(min_length=1)]
    """The arms."""
    baseline_condition: Name
    """The arm that others are compared with."""
    candidate_condition: Name | None = None
    """The arm under test (mode compare)."""
    optimizer: Optimizer | None = None
    """The proposer (mode search)."""
