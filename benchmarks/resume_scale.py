"""Time and memory to resume a finished run of 100, 1,000 and 10,000 executions.

The run directories are synthetic and made by the store's own classes; they are replayed in an
interpreter of their own that counts connections and files opened for writing. There are two
anchors: a plain loop that reads the journal, parses every line and hashes it; and one that does
the same with every record and every blob that the journal leads to, as a report must.

    python benchmarks/resume_scale.py [--executions 100 1000 10000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from measure import in_turns, machine, peak_memory_mb, ratio, row, run_fresh, say, spread
from synthetic import SLOTS_PER_REPEAT, synthetic_run

RESUME, JOURNAL, ALL = "resume", "loop over the journal", "loop over journal and blobs"


def resume_once(run: Path) -> dict[str, float]:
    """Resume a finished run and return seconds, peak memory, connections and writes."""
    from xgent_evolve.api.study import resume

    seen = {"socket.connect": 0, "open": 0}

    def watch(event: str, details: tuple[object, ...]) -> None:
        counts = event == "socket.connect" or (
            event == "open" and str(run) in str(details[0]) and is_write(details[1], details[2])
        )
        if counts:
            seen[event] += 1

    sys.addaudithook(watch)
    started = time.perf_counter()
    resume(run, environment={})
    seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "peak_memory_mb": peak_memory_mb(),
        "connections": seen["socket.connect"],
        "files_opened_for_writing": seen["open"],
    }


def is_write(mode: object, flags: object) -> bool:
    """Say whether a file is opened for writing."""
    named = isinstance(mode, str) and any(letter in mode for letter in "wax+")
    return named or (isinstance(flags, int) and flags & 3 != 0)


def loop_once(run: Path, *, blobs: bool) -> dict[str, float]:
    """Parse and hash the journal line by line, and perhaps every blob as well."""
    from blake3 import blake3

    def read(digest: str) -> bytes:
        name = digest.removeprefix("blake3:")
        content = (run / "blobs" / name[:2] / name[2:]).read_bytes()
        assert blake3(content).hexdigest() == name
        return content

    started = time.perf_counter()
    for line in (run / "journal.jsonl").read_bytes().splitlines():
        fact = json.loads(line)["fact"]
        blake3(line).hexdigest()
        if blobs and fact["type"] == "captured":
            for digest in json.loads(read(fact["artifacts"]))["blobs"].values():
                for event in read(digest).splitlines():
                    if event.startswith(b"{"):
                        json.loads(event)
    return {"seconds": time.perf_counter() - started, "peak_memory_mb": peak_memory_mb()}


def measured(directory: Path, executions: int, rounds: int) -> dict[str, object]:
    """Return what resuming a run of so many executions costs."""
    run = synthetic_run(directory, executions)
    last: dict[str, dict[str, float]] = {}

    def fresh(name: str, verb: str) -> float:
        last[name] = run_fresh([__file__, "--once", verb, "--run", str(run)])
        return last[name]["seconds"]

    calls = {
        RESUME: lambda: fresh(RESUME, "resume"),
        JOURNAL: lambda: fresh(JOURNAL, "journal"),
        ALL: lambda: fresh(ALL, "all"),
    }
    samples = in_turns(calls, rounds)
    return {
        "journal_mb": (run / "journal.jsonl").stat().st_size / 1e6,
        "seconds": {name: spread(values) for name, values in samples.items()},
        "ratio": {name: ratio(samples, RESUME, name) for name in (JOURNAL, ALL)},
        **{key: value for key, value in last[RESUME].items() if key != "seconds"},
    }


def table(results: dict[int, dict[str, object]]) -> Iterator[str]:
    """Yield the lines for people."""
    for number, found in results.items():
        seconds = found["seconds"]
        for name in (RESUME, JOURNAL, ALL):
            yield row(f"{number}, {name}", seconds[name], "ms", 1000)
        for name, value in found["ratio"].items():
            yield row(f"{number}, {RESUME} / {name}", value, "x")
        yield (
            f"{number} executions: {found['peak_memory_mb']:.0f} MB, {found['connections']}"
            f" connections, {found['files_opened_for_writing']} files opened for writing"
        )
    numbers = list(results)
    for small, large in pairwise(numbers):
        times = [results[size]["seconds"][RESUME]["median"] for size in (small, large)]
        yield f"{large // small} times the executions took {times[1] / times[0]:.1f} times as long"


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--executions", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", choices=("resume", "journal", "all"), help=argparse.SUPPRESS)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        if options.once == "resume":
            found = resume_once(options.run)
        else:
            found = loop_once(options.run, blobs=options.once == "all")
        sys.stdout.write(json.dumps(found))
        return
    facts, results = machine(), {}
    for number in options.executions:
        if number % SLOTS_PER_REPEAT:
            parser.error(f"give multiples of {SLOTS_PER_REPEAT}")
        with tempfile.TemporaryDirectory(prefix="xgent-bench-") as name:
            results[number] = measured(Path(name), number, options.rounds)
    document = {"machine": facts, "results": {str(key): item for key, item in results.items()}}
    say("resume_scale", document, list(table(results)))


if __name__ == "__main__":
    main()
