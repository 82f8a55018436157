"""The proposer of a search, and the settings of each strategy.

Settings keep the symbols of the texts that define the strategies; a setting that is not given
has the default of that text. Repeats, seeds of models and budgets are the JobSpec's own.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Annotated, Literal

from xgent_evolve.spec.kinds import (
    Amount,
    Fraction,
    LocalPath,
    Name,
    Sha256,
    Text,
    Weight,
)
from xgent_evolve.spec.part import Limits, Part
from xgent_evolve.spec.runtime import Effort

type Count = Annotated[int, Limits(ge=0, le=10_000)]
type Positive = Annotated[int, Limits(ge=1, le=10_000)]


class Rrsi(Part):
    """Settings of the strategy rrsi. Every task is repeated measurement.repeats times."""

    T: Positive = 20
    """Rounds."""
    m: Positive = 2
    """Candidates of one round."""
    b_min: Positive = 1
    """Fewest independent edits that the annealed budget allows a candidate."""
    b_max: Positive = 4
    """Most independent edits that the annealed budget allows a candidate."""
    w: Positive = 3
    """Rounds over which stagnation is judged."""
    m_draft: Count = 1
    """Last candidates of a stagnating round that must touch an untried component."""
    delta: Fraction | None = None
    """Noise band of the score; calibrated on the baseline when absent."""
    delta_z: Weight = Decimal(2)
    """Width of a calibrated band, in standard deviations of a difference."""
    calibration_evals: Positive = 1
    """Evaluations of the baseline that calibrate the band."""
    beta0: Amount = Decimal("0.1")
    """Relative cost that a gain above the band may always add."""
    beta1: Amount = Decimal(40)
    """Further relative cost for every unit of gain above the band."""
    w_s: Amount = Decimal(100)
    """Weight of the score inside the band."""
    w_c: Amount = Decimal(15)
    """Weight of the cost inside the band."""
    w_n: Amount = Decimal("0.5")
    """Weight of novelty inside the band."""
    n_prune: Count = 4
    """Rounds without a gain after which removing a component is suggested."""
    repair_rounds: Count = 5
    """Repairs of one candidate after the critic's review."""
    invalid_missing_frac: Fraction = Decimal("0.15")
    """Share of missing trials above which a measurement is invalid."""
    n_fail_traces: Count = 22
    """Failed trials that are digested in a round."""
    n_success_traces: Count = 6
    """Successful trials that are digested in a round."""
    smoke_n: Count = 0
    """Tasks that a candidate must survive before it is measured."""


class Darwinx(Part):
    """Settings of the strategy darwinx."""

    max_steps: Positive = 10
    """Edits that may be tried; illegal ones count too."""
    screen_size: Positive = 3
    """Tasks of the screening; at most as many as there are."""
    screen_samples: Positive = 1
    """Repeats of every screening task."""
    confirm_samples: Positive = 3
    """Repeats of every task in a full confirmation; at least screen_samples."""
    screen_regression_tolerance: Amount = Decimal(1)
    """Sum of regressions that the screening lets pass."""
    regression_tolerance: Amount = Decimal(0)
    """Sum of regressions that a confirmation lets pass."""
    solved_threshold: Annotated[Fraction, Limits(gt=0)] = Decimal(1)
    """Mean from which a task counts as solved."""
    exploration_probability: Fraction = Decimal("0.5")
    """Chance that the parent is drawn evenly from the population."""
    merge_every: Count = 3
    """Steps between recombinations; 0 for none."""
    seed: Count = 42
    """Seed of the draws of parents and screening tasks."""
    max_evidence_chars: Annotated[int, Limits(ge=1000, le=1_000_000)] = 24_000
    """Most characters of one block of evidence."""


class Gepa(Part):
    """Settings of the strategy gepa. Its splits: search (feedback), validation, confirmation."""

    dataset_id: Text
    """Name of the frozen cases."""
    dataset_version: Text
    """Their version."""
    max_iterations: Count = 10
    """Proposals that may be tried."""
    max_metric_calls: Annotated[int, Limits(ge=1, le=1_000_000)] = 1000
    """Most evaluated cases; the final evaluation on confirmation cases is reserved in it."""
    reflection_batch: Positive = 3
    """Cases of one reflection."""
    random_seed: Count = 1
    """Seed of the draws of parents and batches."""
    minimum_holdout_improvement: Fraction = Decimal(0)
    """Smallest gain on confirmation cases that a promotion needs."""
    critical_cases: list[Name] = field(default_factory=list[str])
    """Confirmation cases on which a promotion may lose nothing."""


class Optimizer(Part):
    """The search's proposer (mode search)."""

    strategy: Literal["hillclimb", "rrsi", "darwinx", "gepa"] = "hillclimb"
    """Which algorithm searches."""
    model: Name
    """Model of the optimizer."""
    effort: Effort
    """Reasoning effort of the optimizer."""
    method_path: LocalPath
    """File with the optimizer's instructions."""
    method_sha256: Sha256
    """SHA-256 of that file."""
    rrsi: Rrsi | None = None
    """Settings of the strategy rrsi; only with that strategy."""
    darwinx: Darwinx | None = None
    """Settings of the strategy darwinx; only with that strategy."""
    gepa: Gepa | None = None
    """Settings of the strategy gepa, which needs them; only with that strategy."""
