"""The parts of a study that all versions of a JobSpec share: text, authority, limits, arms."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Annotated, Final, Literal

from xgent_evolve.spec.kinds import (
    Confidence,
    Fraction,
    GitSha,
    LocalPath,
    Name,
    RelativePath,
    Text,
    Weight,
)
from xgent_evolve.spec.part import Limits, Part

PROVEN_GROUPS: Final = 6
"""From here on the interval is shown to keep its level, so fewer groups never decide."""


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
    paths: Annotated[list[RelativePath], Limits(min_length=1, max_length=1000)]
    """Files or directories that a candidate may change. For surface=skill: one skill root."""
    protected_rules: Annotated[list[ProtectedRule], Limits(max_length=1000)] = field(
        default_factory=list[ProtectedRule]
    )
    """Rules that every condition and candidate must keep."""
    compatible_bases: Annotated[list[GitSha], Limits(max_length=1000)] = field(
        default_factory=list[str]
    )
    """Older commits, real ancestors of the base, whose tasks the instructions also suit."""


class Source(Part):
    """Which bytes of the working tree are frozen and may leave this machine."""

    paths: Annotated[list[RelativePath], Limits(min_length=1, max_length=10_000)]
    """Tracked files or directories, frozen as they are on disk."""
    new_paths: Annotated[list[RelativePath], Limits(max_length=10_000)] = field(
        default_factory=list[str]
    )
    """Untracked files that are frozen too."""
    fixed_skill_roots: Annotated[list[RelativePath], Limits(max_length=1000)] = field(
        default_factory=list[str]
    )
    """Skills that are installed unchanged in every condition; outside the target's paths."""
    allow_lfs_pointers: list[RelativePath] = field(default_factory=list[str])
    """Files that may be frozen as Git LFS pointers, without the content that they stand for."""


class Authority(Part):
    """What the caller allows. It comes from the caller alone, never from a repository's text."""

    repo: LocalPath
    """The repository that the caller speaks for; must be the target's."""
    export_paths: Annotated[list[RelativePath], Limits(min_length=1, max_length=10_000)]
    """Paths of the repository that may be sent to the host."""
    write_paths: Annotated[list[RelativePath], Limits(max_length=10_000)] = field(
        default_factory=list[str]
    )
    """Paths of the repository that apply may write."""
    allow_secrets_in: list[RelativePath] = field(default_factory=list[str])
    """Files that may leave this machine although they hold what looks like a secret: paths of the
    repository, or a case's id and a path in its task directory, as in `case-1/tests/key.pem`."""
    allow_apply: bool = False
    """Whether apply may write at all."""
    auth_path: LocalPath | None = None
    """Credential file on the host that may be used; must equal the one of authentication."""
    evaluation_root: LocalPath | None = None
    """Directory of quality material (version 2)."""
    allow_typesafe_auxiliary: bool = False
    """Whether material may be sent to the auxiliary scorer (version 2)."""


class Budget(Part):
    """Hard limits, all finite. A run stops before it would cross one."""

    max_candidates: Annotated[int, Limits(ge=0)] = 0
    """Most candidates that may be proposed (search)."""
    max_trials: Annotated[int, Limits(gt=0)]
    """Most agent executions that may start, retries and confirmation included."""
    max_concurrency: Annotated[int, Limits(ge=1, le=256)]
    """Most executions at one time."""
    trial_timeout_s: Annotated[int, Limits(ge=1, le=86_400)]
    """Wall time of one agent execution, in seconds."""
    grade_timeout_s: Annotated[int, Limits(ge=1, le=86_400)] = 600
    """Wall time of one grading, in seconds."""
    deadline_s: Annotated[int, Limits(ge=1)]
    """Time from the start of a run or resume after which nothing new starts, in seconds."""
    recovery_window_s: Annotated[int, Limits(ge=0)]
    """How long an unreachable host is retried before the command stops, in seconds."""
    max_retries: Annotated[int, Limits(ge=0, le=10)]
    """Further attempts after a captured infrastructure failure, per slot."""
    max_auxiliary_calls: Annotated[int, Limits(ge=0)] = 0
    """Most auxiliary calls (version 2)."""
    confirmation_trials: Annotated[int, Limits(ge=0)] = 0
    """Part of max_trials that only confirmation may spend."""


class Measurement(Part):
    """How the comparison is judged, fixed before anything runs."""

    objective: Literal["task_success", "task_quality"]
    """What is measured."""
    weights: dict[Name, Weight] = field(default_factory=dict[str, Decimal])
    """Weight of a source group; 1 for a group that is not named."""
    min_gain: Fraction
    """Smallest gain worth having; keep needs the whole interval above it."""
    non_inferiority_margin: Fraction
    """Largest loss that still counts as not worse."""
    confidence: Confidence
    """Confidence level of the two-sided interval."""
    min_groups: Annotated[int, Limits(ge=2)]
    """Fewest independent source groups with a pair; below, the evidence is insufficient."""
    repeats: Annotated[int, Limits(ge=1)]
    """Trials of every case in every condition."""
    search_policy: Literal["strict", "bounded_exploration_v1"] = "strict"
    """Rule of the search."""
    seed: Annotated[int, Limits(ge=0)] = 0
    """Seed of the bootstrap."""


class Guardrail(Part):
    """A floor that the candidate must not fall below."""

    name: Name
    """task_contract is the verifier's reward; others are read from checks.json."""
    floor: Fraction
    """Smallest acceptable mean of the candidate condition."""


class Condition(Part):
    """One arm of the study."""

    id: Name
    """Unique name."""
    skill: Literal["absent", "baseline", "candidate", "fixed"]
    """Which skill text the agent gets."""
    agents: Literal["minimal", "baseline", "candidate", "fixed"]
    """Which AGENTS.md text the agent gets."""
    overrides: Annotated[dict[RelativePath, str | None], Limits(max_length=10_000)] = field(
        default_factory=dict[str, str | None]
    )
    """Full text of changed files under the target's paths; null removes the file."""
