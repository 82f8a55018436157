"""Hillclimb: one proposal at a time, always from the best version so far (requirement I2)."""

from __future__ import annotations

from xgent_evolve.strategies.strategy import Refused, SearchEnd, SearchStudy, Step


async def hillclimb(study: SearchStudy) -> SearchEnd:
    """Climb from the baseline: propose, measure, compare with the parent, keep or discard.

    Only `keep` moves the best version on: the whole interval of the paired difference lies above
    the smallest gain worth having, and no floor is missed. Whatever else was found stays in the
    history that the next proposal is made with.
    """
    best = study.baseline
    await study.measure(best)
    steps: list[Step] = []
    for number in range(1, study.max_candidates + 1):
        if not study.can_gain(best):
            return SearchEnd(best, tuple(steps), "headroom")
        if not study.has_room():
            return SearchEnd(best, tuple(steps), "budget")
        answer = await study.propose(number, best, steps)
        if isinstance(answer, Refused):
            steps.append(Step(number, best, answer, None))
            continue
        await study.measure(answer.version)
        step = Step(number, best, answer, study.compare(answer.version, best))
        steps.append(step)
        if step.decision == "keep":
            best = answer.version
    return SearchEnd(best, tuple(steps), "candidates")
