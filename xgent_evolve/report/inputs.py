"""The facts that a report is made of.

They carry no run id, execution id, container id, host name or time of day: two runs of one
protocol with equal outcomes differ in durations alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.ids import Digest
from xgent_evolve.measure.comparison import Comparison, Decision
from xgent_evolve.measure.diagnosis import Diagnosis
from xgent_evolve.measure.interaction import Interaction

type AttemptKind = Literal["agent", "grade", "optimizer"]
"""Which part of a trial an attempt carried out, or that it proposed a text."""

type AttemptStatus = Literal["valid", "behaviour_failure", "invalid"]
"""valid: it did its work (a grade: reward 1); behaviour_failure: a valid observation of the agent
failing (time limit, forbidden path, reward 0); invalid: infrastructure failed, no observation."""

type StepStatus = Literal["passed", "failed", "broken", "not_run"]
"""passed, failed: an observation. broken: the infrastructure failed. not_run: the JobSpec says
that it is not tried."""


@dataclass(frozen=True, slots=True)
class Study:
    """Which study a report is about."""

    protocol_digest: Digest
    """Digest of protocol.json; names the study."""
    protocol_id: str
    """The caller's name for it."""
    question: str
    """The question that the study answers."""
    mode: Literal["smoke", "compare", "search", "calibrate"]
    """What was asked of the tool."""


@dataclass(frozen=True, slots=True)
class Digests:
    """Everything frozen that decides a score (requirement C2)."""

    conditions: tuple[tuple[str, Digest], ...]
    """Condition id and digest of its content, in the order of the JobSpec."""
    cases: tuple[tuple[str, Digest], ...]
    """Case id and digest of its frozen record, in the order of the JobSpec."""
    payload: Digest
    """The scripts that run on the host and in the containers."""
    code: Digest
    """The comparison and report code."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token usage of one execution. None is unknown, which is not 0."""

    input: int | None = None
    """All input tokens, cached ones included."""
    cached_input: int | None = None
    """The part of `input` that was cached; not added again."""
    output: int | None = None
    """All output tokens, reasoning included."""
    reasoning_output: int | None = None
    """The part of `output` that was reasoning; not added again."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one part of a trial, failures included."""

    kind: AttemptKind
    condition: str
    case: str
    repeat: int
    attempt: int
    """Counted from 1; a retry is a further attempt."""
    status: AttemptStatus
    cause: str | None = None
    """What went wrong, as a code; None when nothing did."""
    exit_code: int | None = None
    """The command's own exit code; None when there is none."""
    duration_s: float | None = None
    """From the supervisor's record; None when unknown."""
    tokens: Tokens | None = None
    """Usage of the model. None for a grade without a judge: no model takes part. For an agent
    None is the same as `Tokens()`: unknown."""


@dataclass(frozen=True, slots=True)
class Auxiliary:
    """Calls to the auxiliary scorer, which are kept apart from everything else."""

    calls: int
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that the evidence lacks, beyond what the comparison itself says."""

    code: str
    """For programs, in snake_case."""
    detail: str
    """One sentence."""
    where: str = ""
    """Case, condition or slot that it concerns."""


@dataclass(frozen=True, slots=True)
class SmokeStep:
    """One check of one case in smoke mode."""

    status: StepStatus
    detail: str = ""
    """What was found, in one line."""


@dataclass(frozen=True, slots=True)
class SmokeCase:
    """What smoke found about one case."""

    case: str
    probe: SmokeStep
    """The container starts and has what a trial needs."""
    untouched: SmokeStep
    """The unchanged workspace is graded 0."""
    oracle: SmokeStep
    """The reference solution is graded 1."""
    agent: SmokeStep | None = None
    """The agent ran and was graded, whatever the reward; None when no model is named."""


DIFF_CHARACTERS = 64_000
"""Most characters of one candidate's diff."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One proposal of a search and what became of it."""

    number: int
    """Counted from 1."""
    id: str | None
    """The condition that was measured; None when nothing was."""
    parent: str
    """The condition that it started from."""
    content: Digest | None
    """Digest of what the candidate shows."""
    decision: Decision
    reasons: tuple[str, ...]
    """Why, as sentences."""
    hypothesis: str = ""
    expected_effect: str = ""
    counterexample: str = ""
    changed_paths: tuple[str, ...] = ()
    diff: str = ""
    """Parent to candidate as a unified diff, at most `DIFF_CHARACTERS`."""
    diff_cut: bool = False
    """Whether the diff goes on beyond that."""
    comparison: Comparison | None = None
    """Candidate against parent on search and validation cases."""


@dataclass(frozen=True, slots=True)
class Search:
    """How a search went."""

    strategy: str
    best: str
    """The condition that was best in the end; the baseline when nothing was kept."""
    stop: str
    """Why it ended, as a code."""
    diagnosis: Diagnosis
    candidates: tuple[Candidate, ...]
    """In the order of the proposals."""


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the confirmation came to; its numbers are the report's comparison."""

    status: Literal["not_run", "passed", "failed", "inconclusive"]
    candidate: str | None = None
    content: Digest | None = None
    reason: str = ""
    """Why it was not run."""


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """What every execution of one case could use; nothing limits its disk."""

    case: str
    platform: str
    """Of the image; the executor's architecture is recorded apart (requirement E1)."""
    image: str
    """By digest or id."""
    cpus: float
    memory_mb: int
    agent_timeout_s: int
    grade_timeout_s: int


@dataclass(frozen=True, slots=True)
class Environment:
    """What the trials ran on, as the first visit of the host recorded it."""

    architecture: str
    engine: str
    """Its version."""
    security: tuple[str, ...]
    """How the engine confines containers."""
    codex: str
    """Version."""
    manifest_sha256: str
    """Of the verified Codex install."""
    limits: tuple[CaseLimits, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """All that a report is made of."""

    study: Study
    digests: Digests
    attempts: Sequence[Attempt] = ()
    """In any order."""
    comparison: Comparison | None = None
    """The candidate against the baseline; None in smoke mode."""
    secondary: Sequence[Comparison] = ()
    """Other conditions against the baseline: shown, never decided on."""
    interaction: Interaction | None = None
    """None when the conditions are not crossed."""
    smoke: Sequence[SmokeCase] | None = None
    """Smoke mode alone."""
    search: Search | None = None
    """Mode search alone."""
    confirmation: Confirmed = Confirmed("not_run")
    auxiliary: Auxiliary | None = None
    """None when no auxiliary scorer is in use."""
    environment: Environment | None = None
    """None when no host was visited."""
    gaps: Sequence[Gap] = ()
    """Further evidence gaps, such as executions that are not resolved."""
