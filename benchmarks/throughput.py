"""How many executions per second are submitted, carried out, collected and cleaned.

python benchmarks/throughput.py [--executions 200] [--concurrency 8] [--blocks 4]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local

from engine_api import Engine
from measure import in_turns, machine, peak_memory_mb, ratio, row, say, spread
from rig import Controller, Rig, controller, rig

OURS = "executions with all receipts"
API = "engine API alone"


async def measure(rig: Rig, block: int, blocks: int, places: int) -> dict[str, list[float]]:
    """Return executions per second, for each block of ours and of the engine's."""
    async with controller(rig, "run") as made:
        loop = asyncio.get_running_loop()
        calls = {OURS: submitter(made, loop, block, places), API: engine_only(rig, block, places)}
        return await asyncio.to_thread(in_turns, calls, blocks)


def submitter(
    made: Controller, loop: asyncio.AbstractEventLoop, block: int, places: int
) -> Callable[[], float]:
    """Return a call that carries out a block of executions at `places` a time."""
    blocks = iter(range(1_000_000))

    async def carry_out() -> float:
        number, free = next(blocks), asyncio.Semaphore(places)

        async def one(item: int) -> None:
            async with free:
                await made.noop(f"{number}-{item}")

        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for item in range(block):
                group.create_task(one(item))
        return block / (time.perf_counter() - started)

    return lambda: asyncio.run_coroutine_threadsafe(carry_out(), loop).result()


def engine_only(rig: Rig, block: int, places: int) -> Callable[[], float]:
    """Return a call that runs as many containers with as many threads, each with a connection."""
    mine = local()

    def one(_item: int) -> None:
        if not hasattr(mine, "engine"):
            mine.engine = Engine(rig.engine.socket)
        mine.engine.run(rig.image, ["sh", "-c", ":"])

    def carry_out() -> float:
        with ThreadPoolExecutor(places) as pool:
            started = time.perf_counter()
            for _ in pool.map(one, range(block)):
                pass
            return block / (time.perf_counter() - started)

    return carry_out


def main() -> None:
    """Measure and say."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--executions", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--blocks", type=int, default=4)
    options = parser.parse_args()
    facts = machine()
    block = max(1, options.executions // options.blocks)
    with rig() as made:
        rates = asyncio.run(measure(made, block, options.blocks, options.concurrency))
    found = ratio(rates, OURS, API)
    lines = [row(name, spread(rates[name]), "/s") for name in (OURS, API)]
    lines.append(row("ours / engine alone (1 is the most possible)", found, "x"))
    lines.append(f"controller's peak memory {peak_memory_mb():.0f} MB")
    document = {
        "machine": facts,
        "executions": block * options.blocks,
        "concurrency": options.concurrency,
        "per_second": {name: spread(values) for name, values in rates.items()},
        "ratio": found,
        "peak_memory_mb": peak_memory_mb(),
    }
    say("throughput", document, lines)


if __name__ == "__main__":
    main()
