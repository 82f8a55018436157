"""How many executions a JobSpec can cause at most, known before anything runs.

Planned is what runs when nothing fails. The bound adds the retries that the budget allows and
stops where the budget stops. budget.max_trials counts agent executions, confirmation included; in
version 2 it counts judges and the auxiliary scorer too, since calibration is paid as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.job_spec import JobSpec

KINDS: Final = (
    "agent",
    "grade",
    "judge",
    "auxiliary",
    "optimizer",
    "confirmation",
    "probe",
    "reference",
)
"""Every kind of execution, each a field of `Bounds`."""


FEWEST_ARTIFACTS: Final = 2
"""A calibration compares at least two artifacts."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a JobSpec plans when nothing fails."""

    arms: int
    """Conditions of which every trial runs in each case."""
    cases: int
    """Cases before confirmation."""
    agent: int
    """Agent executions before confirmation."""
    confirmation_cases: int
    confirmation: int
    """Agent executions of confirmation; 0 when none is budgeted."""
    optimizer: int
    """Proposals of the search."""
    diagnosis: int = 0
    """Agent executions of the two equal conditions that show the noise (version 2)."""
    judges: int = 0
    """Assessments of each delivery (version 2)."""

    @property
    def judged(self) -> int:
        """Assessments of all deliveries before confirmation."""
        return self.judges * (self.diagnosis + self.agent)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Upper bounds of executions per kind, retries included."""

    agent: int
    """Paid agent executions before confirmation."""
    grade: int
    """Runs of a verifier, after agents and after the reference solution."""
    judge: int
    """Assessments by a judge (version 2)."""
    auxiliary: int
    """Requests to the auxiliary scorer (version 2)."""
    optimizer: int
    """Paid proposals of the search."""
    confirmation: int
    """Paid agent executions of confirmation."""
    probe: int
    """Sandbox probes without a model (smoke)."""
    reference: int
    """Runs of a reference solution without a model; checks that are known are not repeated."""
    lines: tuple[str, ...]
    """The arithmetic, one line for every kind."""


def planned(spec: JobSpec) -> Plan:
    """Return what `spec` plans; smoke plans a login start of the agent when a model is named."""
    before = compared_cases(spec)
    if spec.mode == "smoke":
        login = int(spec.runtime.model is not None)
        return Plan(1, len(spec.cases), login, 0, 0, 0)
    proposals = spec.budget.max_candidates if spec.mode == "search" else 0
    arms = 1 + proposals if spec.mode == "search" else len(spec.conditions)
    if spec.mode == "calibrate":
        arms = 0
    judged = spec.schema_version == 2
    confirmation_cases = len(spec.cases) - len(before) if spec.budget.confirmation_trials else 0
    repeats = spec.measurement.repeats
    return Plan(
        arms=arms,
        cases=len(before),
        agent=arms * len(before) * repeats,
        confirmation_cases=confirmation_cases,
        confirmation=2 * confirmation_cases * repeats,
        optimizer=proposals,
        diagnosis=2 * len(before) * repeats if judged else 0,
        judges=2 if judged else 0,
    )


def compared_cases(spec: JobSpec) -> list[Case]:
    """Return the cases that are measured before confirmation."""
    return [case for case in spec.cases if case.split != "confirmation"]


def call_bounds(spec: JobSpec) -> Bounds:
    """Return the upper bounds of `spec`. Pure."""
    return _smoke_bounds(spec) if spec.mode == "smoke" else _study_bounds(spec)


def checked_tasks(cases: Sequence[Case]) -> int:
    """Return how many tasks are checked with their reference solution before anything is paid."""
    return sum(case.oracle_check == "required" for case in cases)


def _smoke_bounds(spec: JobSpec) -> Bounds:
    cases, plan = len(spec.cases), planned(spec)
    checked = checked_tasks(spec.cases)
    attempts = 1 + spec.budget.max_retries
    agent = min(plan.agent * attempts, spec.budget.max_trials)
    of_cases = _count(cases, "case")
    login = "1 login start" if plan.agent else "no login start without runtime.model"
    return Bounds(
        agent=agent,
        grade=2 * checked * attempts,
        judge=0,
        auxiliary=0,
        optimizer=0,
        confirmation=0,
        probe=cases * attempts,
        reference=checked * attempts,
        lines=(
            f"agent {plan.agent} = {login}{_retried(plan.agent, agent, spec)}",
            f"grade {2 * checked} = {_count(checked, 'checked case')} x 2 (the untouched"
            f" workspace, the reference solution)"
            f"{_retried(2 * checked, 2 * checked * attempts, spec)}",
            "judge 0 = no judges in mode smoke",
            "auxiliary 0 = no auxiliary scorer in mode smoke",
            "optimizer 0 = no search in mode smoke",
            "confirmation 0 = no confirmation in mode smoke",
            f"probe {cases} = {of_cases} x 1 sandbox probe without a model"
            f"{_retried(cases, cases * attempts, spec)}",
            _reference_line(spec, checked),
        ),
    )


def _study_bounds(spec: JobSpec) -> Bounds:
    plan, budget = planned(spec), spec.budget
    attempts = 1 + budget.max_retries
    unreserved = max(0, budget.max_trials - budget.confirmation_trials)
    before = plan.diagnosis + plan.agent
    agent = min(before * attempts, unreserved)
    confirmation = min(plan.confirmation * attempts, budget.confirmation_trials)
    trials = min(before, agent) + plan.confirmation
    checked = checked_tasks(compared_cases(spec))
    grades = trials + 2 * checked
    artifacts = budget.max_trials if plan.judges else 0
    optimizer = plan.optimizer * attempts
    return Bounds(
        agent=agent,
        grade=(grades + artifacts) * attempts,
        judge=artifacts,
        auxiliary=min(budget.max_auxiliary_calls, artifacts),
        optimizer=optimizer,
        confirmation=confirmation,
        probe=0,
        reference=checked * attempts,
        lines=(
            f"agent {before} = {_agent_terms(spec, plan)}{_limited(before, agent, spec)}",
            _grade_line(spec, plan, trials, checked, (grades + artifacts) * attempts),
            *_judge_lines(spec, plan),
            _optimizer_line(spec, plan, optimizer),
            _confirmation_line(spec, plan, confirmation),
            _reference_line(spec, checked),
        ),
    )


def _agent_terms(spec: JobSpec, plan: Plan) -> str:
    each = f"{_count(plan.cases, 'case')} x {_count(spec.measurement.repeats, 'repeat')}"
    terms = [f"2 equal conditions (noise) x {each}"] if plan.diagnosis else []
    if plan.arms:
        terms.append(f"{_arms(spec, plan)} x {each}")
    return " + ".join(terms)


def _grade_line(spec: JobSpec, plan: Plan, trials: int, checked: int, bound: int) -> str:
    grades = trials + 2 * checked
    line = f"grade {grades} = 1 for every finished agent execution"
    if checked:
        line += f" + {_count(checked, 'checked case')} x 2 (untouched, solved)"
    if not plan.judges:
        return line + _retried(grades, bound, spec)
    return f"{line}; at most {bound} with those of the calibration's artifacts"


def _judge_lines(spec: JobSpec, plan: Plan) -> tuple[str, str]:
    if not plan.judges:
        return "judge 0 = no judges in version 1", "auxiliary 0 = no auxiliary scorer in version 1"
    judged, limit = plan.judged + plan.judges * plan.confirmation, spec.budget.max_trials
    calls = spec.budget.max_auxiliary_calls
    return (
        f"judge {judged} = {plan.judges} for every graded delivery, and {plan.judges} for every"
        f" artifact of the calibration; at most {limit} (budget.max_trials)",
        f"auxiliary {calls} = budget.max_auxiliary_calls"
        if calls
        else "auxiliary 0 = no auxiliary scorer is declared",
    )


def _reference_line(spec: JobSpec, checked: int) -> str:
    bound = checked * (1 + spec.budget.max_retries)
    return (
        f"reference {checked} = {_count(checked, 'checked case')} x 1 run of the reference"
        f" solution without a model{_retried(checked, bound, spec)}"
    )


def _arms(spec: JobSpec, plan: Plan) -> str:
    if spec.mode == "search":
        return f"(1 baseline + {_count(plan.optimizer, 'candidate')})"
    return _count(plan.arms, "condition")


def _optimizer_line(spec: JobSpec, plan: Plan, bound: int) -> str:
    if spec.mode != "search":
        return f"optimizer 0 = no search in mode {spec.mode}"
    return (
        f"optimizer {plan.optimizer} = 1 for every candidate (budget.max_candidates)"
        f"{_retried(plan.optimizer, bound, spec)}"
    )


def _confirmation_line(spec: JobSpec, plan: Plan, bound: int) -> str:
    if not plan.confirmation:
        reason = (
            "budget.confirmation_trials is 0"
            if any(case.split == "confirmation" for case in spec.cases)
            else "no case has the split confirmation"
        )
        return f"confirmation 0 = {reason}"
    limit = (
        f"; at most {bound} with retries (budget.confirmation_trials)"
        if bound > plan.confirmation
        else ""
    )
    return (
        f"confirmation {plan.confirmation} = 2 conditions x "
        f"{_count(plan.confirmation_cases, 'case')} x "
        f"{_count(spec.measurement.repeats, 'repeat')}{limit}"
    )


def _limited(plan: int, bound: int, spec: JobSpec) -> str:
    """Say which limit holds agent executions: retries, or the budget."""
    if bound < plan * (1 + spec.budget.max_retries):
        reserved = spec.budget.confirmation_trials
        less = f" - {reserved} reserved for confirmation" if reserved else ""
        cause = " with retries" if bound >= plan else ""
        return f"; at most {bound}{cause} (budget.max_trials{less})"
    return _retried(plan, bound, spec)


def _retried(plan: int, bound: int, spec: JobSpec) -> str:
    if bound <= plan:
        return ""
    return f"; at most {bound} with {_count(spec.budget.max_retries, 'retry')} each"


def _count(number: int, noun: str) -> str:
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"
