"""The tasks of a study: where each comes from, and who may read which of its files."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from xgent_evolve.spec.kinds import (
    AbsolutePath,
    DateText,
    GitSha,
    ImageReference,
    LocalPath,
    Name,
    RelativePath,
    Text,
)
from xgent_evolve.spec.part import Limits, Part


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
    benchmark: Text | None = None
    """Name and version of the benchmark, for the reader."""
    repo: LocalPath
    """The checkout that holds the task directory."""
    commit: GitSha
    """The pinned commit."""


type CaseSource = Annotated[RepoSource | LocalSource | PublicSource, Limits(kind_key="kind")]


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
    observable_requirements: Annotated[list[Text], Limits(min_length=1, max_length=1000)]
    """Public requirements, each checkable from outside."""
    task_path: LocalPath
    """The task directory."""
    repo_path: AbsolutePath
    """Working directory in the container; files of the repository are placed there."""
    scope_paths: Annotated[list[RelativePath], Limits(max_length=1000)] = field(
        default_factory=list[str]
    )
    """Directories of the repository that the task works in; its top when empty (kind repo)."""
    image: ImageReference
    """Image by digest (`name@sha256:…`) or by local image id (`sha256:…`)."""
    platform: Literal["linux/amd64", "linux/arm64"] = "linux/amd64"
    """Platform of the image."""
    public_paths: Annotated[list[RelativePath], Limits(max_length=1000)] = field(
        default_factory=lambda: ["instruction.md"]
    )
    """Files of the task directory that the agent may read; instruction.md is the prompt."""
    grader_paths: Annotated[list[RelativePath], Limits(max_length=1000)] = field(
        default_factory=lambda: ["tests"]
    )
    """Files of the task directory that only the grader gets; tests/test.sh is run."""
    oracle_paths: Annotated[list[RelativePath], Limits(max_length=1000)] = field(
        default_factory=lambda: ["solution"]
    )
    """Files of the task directory that only the oracle check gets; solution/solve.sh is run."""
    verifier_exit: Literal["must_agree", "ignored"] = "must_agree"
    """Whether the exit code of test.sh must be 0 exactly when the reward is 1."""
    oracle_check: Literal["required", "unchecked"] = "required"
    """required: before anything is paid for, the reference solution must be graded 1 and the
    untouched workspace 0; unchecked: neither is run, and every report says so."""
    protected_paths: list[RelativePath] = field(default_factory=list[str])
    """Paths below repo_path that the agent may not change; a delivery that does is graded 0."""
