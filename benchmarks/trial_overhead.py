"""What one execution costs beside its command: all receipts, over SSH, against plain Docker.

python benchmarks/trial_overhead.py [--rounds 20] [--harbor-rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from engine_api import Engine
from measure import Samples, in_turns, machine, ratio, row, say, spread, timed
from rig import Controller, Rig, controller, rig

COMMAND = ["sh", "-c", ":"]
OURS = "execution with all receipts"
LOCAL = "docker run --rm"
KEPT = "ssh host docker run --rm, kept connection"
FRESH = "ssh host docker run --rm, new connection"
NONE = "the same with --network none, as ours has"
API = "engine API: create, start, wait, remove"
HARBOR_TRIAL, HARBOR_RUN = "one trial of harbor run", "harbor run, the whole command"
HARBOR_TASK = {
    "instruction.md": "Do nothing.\n",
    "task.toml": 'version = "1.0"\n[environment]\ndocker_image = "@IMAGE@"\n',
    "environment/Dockerfile": "FROM @IMAGE@\nWORKDIR /app\n",
    "solution/solve.sh": "#!/bin/sh\n:\n",
    "tests/test.sh": "#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n",
}


async def measure(rig: Rig, rounds: int) -> tuple[Samples, list[float]]:
    """Return the samples and, for each of our executions, the command's own time."""
    own: list[float] = []
    async with controller(rig, "run") as made:
        loop = asyncio.get_running_loop()
        with rig.kept_connection() as kept:
            calls = anchors(rig, kept)
            calls[OURS] = lambda: one(made, loop, own)
            samples = await asyncio.to_thread(in_turns, calls, rounds)
    return samples, own[-rounds:]


def one(made: Controller, loop: asyncio.AbstractEventLoop, own: list[float]) -> float:
    """Carry out one execution; return its wall time without the command's own time."""
    started = time.perf_counter()
    work = made.noop(str(len(own)))
    duration = asyncio.run_coroutine_threadsafe(work, loop).result()
    own.append(duration)
    return time.perf_counter() - started - duration


def anchors(rig: Rig, kept: list[str]) -> dict[str, Callable[[], float]]:
    """Return what an execution is compared with: the same command in the same image."""
    docker_run = [rig.engine.path, "run", "--rm", rig.image]
    remote = f"{rig.engine.path} run --rm {rig.image} sh -c :"
    without_network = remote.replace("--rm", "--rm --network none")
    engine = Engine(rig.engine.socket)
    return {
        LOCAL: lambda: timed(lambda: call([*docker_run, *COMMAND])),
        KEPT: lambda: timed(lambda: call([*kept, remote])),
        NONE: lambda: timed(lambda: call([*kept, without_network])),
        FRESH: lambda: timed(lambda: call([*rig.ssh_command(), remote])),
        API: lambda: timed(lambda: engine.run(rig.image, COMMAND)),
    }


def call(words: list[str]) -> None:
    """Run a command that must succeed."""
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL, capture_output=True)


def harbor_seconds(rig: Rig, rounds: int) -> Samples | str:
    """Return the wall times of `harbor run` on a task that does nothing, or why there are none.

    Of the trial alone, as Harbor records it, and of the whole command.
    """
    binary = shutil.which("harbor")
    if binary is None:
        found = importlib.util.find_spec("harbor") is not None
        return "harbor has no command on PATH" if found else "harbor is not installed"
    with tempfile.TemporaryDirectory(dir=rig.directory) as name:
        task = Path(name) / "noop"
        for path, content in HARBOR_TASK.items():
            (task / path).parent.mkdir(parents=True, exist_ok=True)
            (task / path).write_text(content.replace("@IMAGE@", rig.image))
            (task / path).chmod(0o755)
        words = [binary, "run", "-p", str(task), "-a", "oracle", "-o", f"{name}/jobs", "-q"]
        try:
            whole = [timed(lambda: call(words)) for _ in range(rounds)]
        except subprocess.CalledProcessError as error:
            return f"harbor run failed: {error.stderr.decode(errors='replace')[-300:]}"
        results = [json.loads(path.read_text()) for path in Path(name).glob("jobs/*/*/result.json")]
        failed = [result["exception_info"] for result in results if result["exception_info"]]
        if failed:
            return f"harbor's trials failed: {failed[0]}"
        return {HARBOR_TRIAL: [trial_seconds(result) for result in results], HARBOR_RUN: whole}


def trial_seconds(result: dict[str, Any]) -> float:
    """Return how long a trial took by Harbor's own account."""
    began, ended = (datetime.fromisoformat(result[key]) for key in ("started_at", "finished_at"))
    return (ended - began).total_seconds()


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--harbor-rounds", type=int, default=3)
    options = parser.parse_args()
    facts = machine()
    with rig() as made:
        samples, own = asyncio.run(measure(made, options.rounds))
        harbor = harbor_seconds(made, options.harbor_rounds)
    names = (LOCAL, KEPT, NONE, FRESH, API)
    ratios = {name: ratio(samples, OURS, name) for name in names}
    lines = [row(name, spread(samples[name]), "ms", 1000) for name in (OURS, *names)]
    lines += [row(f"ours / {name}", ratios[name], "x") for name in names]
    more: dict[str, object] = {"harbor": harbor}
    if isinstance(harbor, dict):
        found = {name: spread(seconds) for name, seconds in harbor.items()}
        ours = spread(samples[OURS])["median"]
        times = {name: values["median"] / ours for name, values in found.items()}
        more = {"harbor_s": found, "harbor_times": times}
        lines += [row(name, found[name], "s") for name in found]
        lines += [f"{name}: {times[name]:.0f} times ours" for name in found]
    else:
        lines.append(f"harbor: {harbor}")
    document = {
        "machine": facts,
        "rounds": options.rounds,
        "command_s": spread(own),
        "overhead_s": {name: spread(values) for name, values in samples.items()},
        "ratio": ratios,
        **more,
    }
    say("trial_overhead", document, lines)


if __name__ == "__main__":
    main()
