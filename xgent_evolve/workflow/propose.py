"""One proposal: the optimizer's remote execution, and what of its answer may be measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files

from xgent_evolve.engine.run import Run
from xgent_evolve.engine.slots import Slot
from xgent_evolve.freeze.protocol import FrozenCondition
from xgent_evolve.freeze.reach import shows_difference
from xgent_evolve.harbor.artifacts import Artifacts
from xgent_evolve.harbor.outcome import Broken
from xgent_evolve.harbor.requests import Brief
from xgent_evolve.search.projection import Observation, project
from xgent_evolve.search.proposal import (
    TEXT_DIRECTORY,
    answer_schema,
    contradictions,
    read_changes,
    read_proposal,
)
from xgent_evolve.search.text import (
    change_problems,
    changed_text,
    studied_text,
    with_text,
)
from xgent_evolve.spec.bounds import compared_cases
from xgent_evolve.store.bundles import make_tree
from xgent_evolve.strategies.strategy import Proposed, Refused, Step, Version

_MOST_REASONS = 20


async def propose(
    run: Run, number: int, parent: Version, seen: Sequence[Observation], steps: Sequence[Step]
) -> Proposed | Refused:
    """Return the optimizer's change of `parent`, or why there is none to measure.

    An answer that makes no sense counts as a proposal without a candidate; it aborts nothing.
    """
    brief = make_brief(run, parent, seen, steps)
    # Any image of the study has the shell that the optimizer works with.
    case = run.protocol.case(compared_cases(run.protocol.spec)[0].id)
    slot = Slot("propose", parent.id, case.id, number, "optimizer")
    filled = await run.command(slot, lambda planner, uuid: planner.optimizer(uuid, case, brief))
    if isinstance(filled.meaning, Broken):
        return Refused((f"{filled.meaning.cause}: {filled.meaning.detail}",))
    if filled.meaning.timed_out:
        return Refused(("the optimizer reached its time limit",))
    return judge(run, number, parent, filled.artifacts, steps)


def make_brief(
    run: Run, parent: Version, seen: Sequence[Observation], steps: Sequence[Step]
) -> Brief:
    """Return everything that the optimizer is given."""
    protocol, blobs = run.protocol, run.rundir.blobs
    shown = project(protocol, parent, seen, steps, blobs.get)
    text = studied_text(protocol.spec.target, run.condition(parent.id), blobs)
    prompt = files("xgent_evolve.search").joinpath("optimizer.md").read_bytes()
    return Brief(
        prompt=prompt,
        schema=answer_schema(),
        files=shown.files,
        bundles=shown.bundles,
        text=make_tree(replace(entry, path=f"{TEXT_DIRECTORY}/{entry.path}") for entry in text),
    )


def judge(
    run: Run, number: int, parent: Version, artifacts: Artifacts, steps: Sequence[Step]
) -> Proposed | Refused:
    """Return the candidate of an answer, registered for measurement, or every reason against it."""
    protocol, blobs = run.protocol, run.rundir.blobs
    proposal = read_proposal(artifacts, blobs.get)
    if isinstance(proposal, str):
        return Refused((proposal,))
    changes, problems = read_changes(artifacts, blobs.get)
    problems += contradictions(proposal, parent.content, changes)
    before = run.condition(parent.id)
    problems += change_problems(protocol, before, changes, blobs)
    if problems:
        return Refused(shortened(problems), proposal)
    target = protocol.spec.target
    text = changed_text(studied_text(target, before, blobs), changes)
    candidate = with_text(target, before, f"candidate-{number}", text, blobs)
    if repeated := _repeated(run, candidate, parent, steps):
        return Refused((repeated,), proposal)
    run.candidates[candidate.id] = candidate
    return Proposed(proposal, Version(candidate.id, candidate.content))


def shortened(problems: Sequence[str]) -> tuple[str, ...]:
    """Return the first problems and how many more there are: a change may touch any number."""
    more = len(problems) - _MOST_REASONS
    return (*problems[:_MOST_REASONS], *([f"and {more} more"] if more > 0 else []))


def _repeated(
    run: Run, candidate: FrozenCondition, parent: Version, steps: Sequence[Step]
) -> str | None:
    """Say why a measurement could show nothing new."""
    before = run.condition(parent.id)
    if not shows_difference(run.protocol, before, candidate, run.rundir.blobs):
        return "agents would get nothing of the change"
    known = {
        parent.content: parent.id,
        run.condition(run.protocol.spec.baseline_condition).content: "the baseline",
    }
    for step in steps:
        if isinstance(step.answer, Proposed):
            known[step.answer.version.content] = step.answer.version.id
    return f"the text is that of {known[candidate.content]}" if candidate.content in known else None
