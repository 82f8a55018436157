"""How long one interval takes, against scipy's percentile bootstrap of the same resamples.

Each measurement has an interpreter of its own, so that its peak memory is its own. scipy's
interval is another one: it does not keep its level at few groups. What is compared is the price.

    python benchmarks/bootstrap.py [--groups 100 1000 10000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from measure import in_turns, machine, peak_memory_mb, ratio, row, run_fresh, say, spread, timed

OURS, SCIPY = "ours", "scipy"


def once(which: str, groups: int) -> dict[str, float]:
    """Return seconds and peak memory of one interval over made-up differences."""
    draw = random.Random(groups)
    values = [draw.choice((-0.5, 0.0, 0.5, 1.0)) for _ in range(groups)]
    call = ours(values) if which == OURS else scipys(values)
    return {"seconds": timed(call), "peak_memory_mb": peak_memory_mb()}


def ours(values: Sequence[float]) -> Callable[[], object]:
    """Return a call that makes our interval; what it needs is imported already."""
    import numpy.random  # noqa: F401 - numpy loads it late, scipy early

    from xgent_evolve.measure.bootstrap import resample

    pairs = [(value, 1.0) for value in values]
    return lambda: resample(pairs, confidence=0.95, seed=0)


def scipys(values: Sequence[float]) -> Callable[[], object]:
    """Return a call that makes scipy's interval; what it needs is imported already."""
    import numpy as np
    from scipy.stats import bootstrap

    data = (np.array(values),)
    settings = {"n_resamples": 10_000, "method": "percentile", "vectorized": True}
    # All resamples at once need 8 bytes for each of groups x 10,000 draws; scipy offers batches.
    batch = max(1, 10_000_000 // len(values))
    return lambda: bootstrap(data, np.mean, batch=batch, rng=np.random.default_rng(0), **settings)


def fresh(which: str, groups: int, memory: dict[str, float]) -> Callable[[], float]:
    """Return a call that measures once in a new interpreter and keeps the peak memory."""

    def measure() -> float:
        found = run_fresh([str(Path(__file__)), "--once", which, "--groups", str(groups)])
        memory[which] = found["peak_memory_mb"]
        return float(found["seconds"])

    return measure


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", choices=(OURS, SCIPY), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        sys.stdout.write(json.dumps(once(options.once, options.groups[0])))
        return
    facts, results, lines = machine(), {}, []
    for groups in options.groups:
        memory: dict[str, float] = {}
        calls = {name: fresh(name, groups, memory) for name in (OURS, SCIPY)}
        samples = in_turns(calls, options.rounds)
        found = ratio(samples, OURS, SCIPY)
        results[str(groups)] = {
            "seconds": {name: spread(values) for name, values in samples.items()},
            "ratio": found,
            "peak_memory_mb": memory,
        }
        lines += [row(f"{groups} groups, {name}", spread(samples[name]), "s") for name in calls]
        lines.append(row(f"{groups} groups, ours / scipy", found, "x"))
        lines.append(f"{groups} groups, peak memory {memory[OURS]:.0f} / {memory[SCIPY]:.0f} MB")
    say("bootstrap", {"machine": facts, "results": results}, lines)


if __name__ == "__main__":
    main()
