"""What do running executions cost while nothing happens: controller and host runner together?

Containers that sleep are started through the whole path; then the processor time of the controller
and of every process of the host runner is read over a quiet window. The engine and the containers
are not counted: they would be there without us.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from pathlib import Path

from measure import machine, say
from rig import controller, rig

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(root: Path) -> float:
    """Return what the processes that serve or drive `root` have used so far."""
    total = 0
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = (status.parent / "cmdline").read_bytes().split(b"\0")
            if int(status.parent.name) == os.getpid() or str(root).encode() not in words:
                continue
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


async def measure(executions: int, window_s: float, settle_s: float) -> float:
    """Return the share of one core that running executions cost."""
    with rig() as made:
        test = next(made.spec.parent.glob("tasks/release-notes/tests/test.sh"))
        test.write_text(f"#!/bin/sh\nsleep {settle_s + window_s + 5:.0f}\n")
        async with controller(made, "run") as work, asyncio.TaskGroup() as group:
            for item in range(executions):
                group.create_task(work.noop(str(item)))
            await asyncio.sleep(settle_s)
            root = Path(work.protocol.spec.runtime.remote_root)
            before = processor_seconds(root)
            # Looking at every process takes time of this one, which is no part of the answer.
            own = time.process_time()
            await asyncio.sleep(window_s)
            own = time.process_time() - own
            return (own + processor_seconds(root) - before) / window_s


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--executions", type=int, default=50)
    parser.add_argument("--window", type=float, default=20)
    parser.add_argument("--settle", type=float, default=30)
    options = parser.parse_args()
    facts = machine()
    started = time.monotonic()
    share = asyncio.run(measure(options.executions, options.window, options.settle))
    document = {
        "machine": facts,
        "executions": options.executions,
        "window_s": options.window,
        "core_share": share,
        "total_s": time.monotonic() - started,
    }
    lines = [f"{options.executions} running executions cost {100 * share:.2f} % of a core"]
    say("idle", document, lines)


if __name__ == "__main__":
    main()
