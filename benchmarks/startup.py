"""How long the command line takes before it does anything, against an empty interpreter.

python benchmarks/startup.py [--rounds 15]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from measure import in_turns, machine, ratio, row, say, spread, timed

from xgent_evolve.demo.study import write_study
from xgent_evolve.spec.models_v1 import Ssh

EMPTY = "python -c pass"
OURS = ("xgent-evolve --version", "xgent-evolve --help", "xgent-evolve validate")


def write_spec(directory: Path) -> Path:
    """Write the demo study; validating it needs no host."""
    return write_study(
        directory,
        ssh=Ssh(host="127.0.0.1", port=22, user="nobody", known_hosts="/k", identity="/i"),
        remote_root="/srv/demo",
        image=f"sha256:{'1' * 64}",
        docker_path="/usr/bin/docker",
        docker_version="20.10",
        base_url="http://127.0.0.1:9/v1",
        architecture="x86_64",
        key_env="XGENT_BENCH_KEY",
    )


def caller(*arguments: str) -> Callable[[], float]:
    """Return a call that runs this interpreter once and says how long it took."""
    words = [sys.executable, *arguments]
    return lambda: timed(lambda: subprocess.run(words, check=True, capture_output=True))


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="xgent-bench-") as name:
        spec = write_spec(Path(name))
        calls = {
            EMPTY: caller("-c", "pass"),
            OURS[0]: caller("-m", "xgent_evolve", "--version"),
            OURS[1]: caller("-m", "xgent_evolve", "--help"),
            OURS[2]: caller("-m", "xgent_evolve", "validate", "--spec", str(spec)),
        }
        samples = in_turns(calls, options.rounds)
    ratios = {name: ratio(samples, name, EMPTY) for name in OURS}
    lines = [row(name, spread(samples[name]), "ms", 1000) for name in calls]
    lines += [row(f"{name} / {EMPTY}", ratios[name], "x") for name in OURS]
    times = {name: spread(values) for name, values in samples.items()}
    say("startup", {"machine": facts, "seconds": times, "ratio": ratios}, lines)


if __name__ == "__main__":
    main()
