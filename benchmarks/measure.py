"""What all benchmarks share: repeating, medians, ratios, and how a result is said.

Absolute times say something about the machine. So every benchmark times what it is about and an
anchor in turns, round by round, and the result is the ratio within a round.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

type Samples = dict[str, list[float]]
"""Seconds by name, one number for each round."""


def timed(call: Callable[[], object]) -> float:
    """Return how many seconds `call` took."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turns(calls: Mapping[str, Callable[[], float]], rounds: int, warm_up: int = 1) -> Samples:
    """Return the numbers of every call; each round has all of them, in another order."""
    names = list(calls)
    samples: Samples = {name: [] for name in names}
    for number in range(-warm_up, rounds):
        shift = number % len(names)
        for name in names[shift:] + names[:shift]:
            value = calls[name]()
            if number >= 0:
                samples[name].append(value)
    return samples


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the range that holds the middle four fifths."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "median": statistics.median(ordered),
        "p10": ordered[round(0.1 * last)],
        "p90": ordered[round(0.9 * last)],
    }


def ratio(samples: Samples, name: str, anchor: str) -> dict[str, float]:
    """Return the spread of `name` divided by `anchor`, round by round."""
    pairs = zip(samples[name], samples[anchor], strict=True)
    return spread([value / base for value, base in pairs])


def run_fresh(arguments: Sequence[str]) -> dict[str, Any]:
    """Run this benchmark's own script again in a new interpreter and return its JSON."""
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def peak_memory_mb() -> float:
    """Return this process's largest resident size."""
    text = open("/proc/self/status").read()  # noqa: SIM115, PTH123 - the process ends here
    line = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def machine() -> dict[str, object]:
    """Return what a reader needs to know about where the numbers come from."""
    return {
        "cpus": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "system": platform.release(),
    }


def say(name: str, document: Mapping[str, Any], lines: Sequence[str]) -> None:
    """Print the table for people on stderr and the numbers for machines on stdout."""
    sys.stderr.write("\n".join([name, *(f"  {line}" for line in lines), ""]))
    sys.stdout.write(json.dumps({"benchmark": name, **document}, indent=2) + "\n")


def row(label: str, values: Mapping[str, float], unit: str, scale: float = 1.0) -> str:
    """Return one line of a table."""
    low, middle, high = (values[key] * scale for key in ("p10", "median", "p90"))
    return f"{label:<44} {middle:9.2f} {unit:<4} ({low:.2f} to {high:.2f})"
