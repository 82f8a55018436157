"""How long a study's whole source is frozen, durably, against the tools that people would use.

python benchmarks/freeze.py [--files 20000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from blake3 import blake3
from freeze_tree import write_study
from measure import in_turns, machine, ratio, row, run_fresh, say, spread, timed

from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.spec.load import load_spec
from xgent_evolve.store.rundir import RunDir

FIRST, AGAIN = "first freeze", "unchanged freeze"
COPY, RESTIC, GIT = "cp -a and sync", "restic backup", "git add and write-tree"
HASH, HASHES = "hashing alone", "hashing alone, BLAKE3, SHA-256 and SHA-1"
PAIRS = ((FIRST, COPY), (RESTIC, FIRST), (GIT, FIRST), (AGAIN, HASH), (AGAIN, HASHES))


def freeze(spec: Path, output: Path) -> dict[str, float]:
    """Freeze as `run` does, into a new run directory or once more into one that is there."""
    opened = nullcontext(RunDir.open(output)) if output.exists() else RunDir.draft(output)
    started = time.perf_counter()
    with opened as rundir:
        protocol = build_protocol(load_spec(spec), rundir.blobs)
        rundir.write_protocol(protocol.to_bytes())
    seconds = time.perf_counter() - started
    own, workers = (
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"seconds": seconds, "peak_mb": own, "peak_of_one_child_mb": workers}


class Contest:
    """The tree, a scratch directory beside it, and one call for each contestant."""

    def __init__(self, directory: Path, spec: Path) -> None:
        self.spec = spec
        repository = spec.parent / json.loads(spec.read_text())["target"]["repo"]
        self.tree = repository / "tree"
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self.peaks: list[dict[str, float]] = []

    def calls(self) -> dict[str, Callable[[], float]]:
        """Return what is measured, by name."""
        fresh = {FIRST: self.first, COPY: self.copy, GIT: self.git}
        if shutil.which("restic"):
            fresh[RESTIC] = self.restic
        again = {
            AGAIN: self.again,
            HASH: lambda: timed(lambda: hash_tree(self.tree, blake3)),
            HASHES: lambda: timed(
                lambda: hash_tree(self.tree, blake3, hashlib.sha256, hashlib.sha1)
            ),
        }
        return {name: self.clean(call) for name, call in fresh.items()} | again

    def clean(self, call: Callable[[], float]) -> Callable[[], float]:
        """Return the call with an empty scratch directory and nothing left to write before it."""

        def cleaned() -> float:
            for name in self.scratch.iterdir():
                if name.name != "kept":
                    shutil.rmtree(name)
            os.sync()
            return call()

        return cleaned

    def first(self) -> float:
        return self.freeze(self.scratch / "run")

    def again(self) -> float:
        kept = self.scratch / "kept"
        if not kept.exists():
            self.freeze(kept)
        return self.freeze(kept)

    def freeze(self, output: Path) -> float:
        answer: dict[str, Any] = run_fresh([__file__, "--freeze", str(self.spec), str(output)])
        self.peaks.append(answer)
        return answer["seconds"]

    def copy(self) -> float:
        words = f"cp -a {self.tree} {self.scratch}/copy && sync -f {self.scratch}/copy"
        return timed(lambda: run("sh", "-c", words))

    def git(self) -> float:
        names = {"GIT_DIR": f"{self.scratch}/git", "GIT_WORK_TREE": str(self.tree)}
        words = f"git init -q && git add -A && git write-tree && sync -f {self.scratch}/git"
        return timed(lambda: run("sh", "-c", words, **names))

    def restic(self) -> float:
        names = {
            "RESTIC_PASSWORD": "benchmark",
            "RESTIC_REPOSITORY": f"{self.scratch}/restic",
            "RESTIC_CACHE_DIR": f"{self.scratch}/restic-cache",
        }
        run("restic", "init", "-q", **names)
        words = ("restic", "backup", "-q", "--compression", "off", str(self.tree))
        return timed(lambda: run(*words, **names))


def hash_tree(root: Path, *kinds: Callable[[bytes], Any]) -> None:
    """Read and hash every file below `root`, as the shortest loop does it."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = f"{directory}/{name}"
            if not os.path.islink(path):  # noqa: PTH114 - the shortest loop
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                    content = file.read()
                for kind in kinds:
                    kind(content).hexdigest()


def run(*words: str, **environment: str) -> None:
    """Run a program to its end."""
    subprocess.run(words, check=True, capture_output=True, env=os.environ | environment)


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--directory", type=Path, help="where to write (default: a new one in TMPDIR)"
    )
    parser.add_argument("--freeze", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.freeze:
        sys.stdout.write(json.dumps(freeze(*options.freeze)))
        return
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="xgent-bench-", dir=options.directory) as name:
        spec, size = write_study(Path(name), options.files)
        contest = Contest(Path(name), spec)
        samples = in_turns(contest.calls(), options.rounds)
    ratios = {
        f"{name} / {anchor}": ratio(samples, name, anchor)
        for name, anchor in PAIRS
        if {name, anchor} <= samples.keys()
    }
    peak = max(answer["peak_mb"] for answer in contest.peaks)
    child = max(answer["peak_of_one_child_mb"] for answer in contest.peaks)
    lines = [f"{options.files} files, {size / 1e6:.0f} MB"]
    lines += [row(name, spread(values), "s") for name, values in samples.items()]
    lines += [row(name, values, "x") for name, values in ratios.items()]
    lines += [f"peak memory {peak:.0f} MB, of its largest child {child:.0f} MB"]
    document = {
        "machine": facts,
        "files": options.files,
        "bytes": size,
        "seconds": {name: spread(values) for name, values in samples.items()},
        "ratio": ratios,
        "peak_mb": {"process": peak, "largest_child": child},
    }
    say("freeze", document, lines)


if __name__ == "__main__":
    main()
