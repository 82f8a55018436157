"""Rules of the study: names, groups, what the mode needs, what the budget must cover."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from xgent_evolve.spec.bounds import FEWEST_ARTIFACTS, compared_cases, planned
from xgent_evolve.spec.faults import Finding, shown, shown_list
from xgent_evolve.spec.job_spec import JobSpec
from xgent_evolve.spec.locate import JsonPath


def study_findings(spec: JobSpec) -> Iterator[Finding]:
    """Yield every broken rule of the study."""
    yield from _unique_names(spec)
    yield from _groups(spec)
    yield from _needs_of_mode(spec)
    yield from _budget(spec)


def _unique_names(spec: JobSpec) -> Iterator[Finding]:
    named = {
        "cases": ("id", [case.id for case in spec.cases]),
        "conditions": ("id", [condition.id for condition in spec.conditions]),
        "guardrails": ("name", [guardrail.name for guardrail in spec.guardrails]),
    }
    for key, (field, names) in named.items():
        # Names become file names, and some file systems fold case.
        seen: dict[str, int] = {}
        for index, name in enumerate(names):
            first = seen.setdefault(name.casefold(), index)
            if first < index:
                yield Finding(
                    path=(key, index, field),
                    message="this name is used twice",
                    expected="a name of its own, whatever its case",
                    found=f"{shown(names[index])}, also at $.{key}[{first}].{field}",
                    fix="rename one of the two",
                )


def _groups(spec: JobSpec) -> Iterator[Finding]:
    groups = {case.group for case in spec.cases}
    for name in spec.measurement.weights:
        if name not in groups:
            yield Finding(
                path=("measurement", "weights", name),
                at_key=True,
                message="no case belongs to this group",
                expected=f"one of {shown_list(sorted(groups))}",
                found=shown(name),
                fix="name the group of a case, or remove the weight",
            )
    seen = {case.group for case in compared_cases(spec)}
    for index, case in enumerate(spec.cases):
        if case.split == "confirmation" and case.group in seen:
            yield Finding(
                path=("cases", index, "group"),
                message="a group lies in the confirmation split and in another one",
                expected="confirmation cases from groups that nothing else was measured on",
                found=shown(case.group),
                fix="move the whole group to one split",
            )


def _needs_of_mode(spec: JobSpec) -> Iterator[Finding]:
    splits = Counter(case.split for case in spec.cases)
    match spec.mode:
        case "smoke":
            return
        case "calibrate":
            if not compared_cases(spec):
                yield _needed(spec, ("cases",), "a case whose split is not confirmation")
        case "compare":
            if spec.candidate_condition is None:
                yield _needed(spec, ("candidate_condition",), "the condition under test")
            if not compared_cases(spec):
                yield _needed(spec, ("cases",), "a case whose split is not confirmation")
        case "search":
            if spec.optimizer is None:
                yield _needed(spec, ("optimizer",), "the proposer of candidates")
            if not splits["search"]:
                yield _needed(spec, ("cases",), "a case with the split search")
            if not spec.budget.max_candidates:
                yield _needed(spec, ("budget", "max_candidates"), "at least 1 candidate")


def _needed(spec: JobSpec, path: JsonPath, what: str) -> Finding:
    return Finding(
        path=path,
        message=f"mode {spec.mode} needs {what}",
        expected=what,
        found="none",
        fix=f"add it, or use another mode than {spec.mode}",
    )


def _budget(spec: JobSpec) -> Iterator[Finding]:
    if spec.mode == "smoke":
        return
    plan, budget, repeats = planned(spec), spec.budget, spec.measurement.repeats
    each = f"{plan.cases} cases x {repeats} repeats"
    # A search may end before its last candidate, but not before the first was measured.
    arms = 2 if spec.mode == "search" else plan.arms
    conditions = arms + (2 if plan.diagnosis else 0)
    paid = 1 + plan.judges
    calibration = FEWEST_ARTIFACTS * plan.judges
    needed = conditions * plan.cases * repeats * paid + calibration + budget.confirmation_trials
    judged = f" x {paid} (agent and judges) + {calibration} for calibration" if calibration else ""
    if budget.max_trials < needed:
        yield Finding(
            path=("budget", "max_trials"),
            message="the budget does not cover the planned executions",
            expected=f"at least {needed} = {conditions} conditions x {each}{judged} + "
            f"{budget.confirmation_trials} for confirmation",
            found=str(budget.max_trials),
            fix="raise budget.max_trials (retries count too), or plan less",
        )
    declared = sum(case.split == "confirmation" for case in spec.cases)
    confirmation = 2 * declared * repeats * paid
    if budget.confirmation_trials and budget.confirmation_trials < confirmation:
        yield Finding(
            path=("budget", "confirmation_trials"),
            message="the reserve does not cover one confirmation",
            expected=f"0 (no confirmation), or at least {confirmation} = 2 conditions x "
            f"{declared} cases x {repeats} repeats"
            + (f" x {paid} (agent and judges)" if calibration else ""),
            found=str(budget.confirmation_trials),
            fix="raise budget.confirmation_trials, or set it to 0",
        )
    if budget.confirmation_trials and not declared:
        yield Finding(
            path=("budget", "confirmation_trials"),
            message="a reserve for confirmation needs confirmation cases",
            expected="0, or a case with the split confirmation",
            found=str(budget.confirmation_trials),
            fix="add confirmation cases, or remove the reserve",
        )
