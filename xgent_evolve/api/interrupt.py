"""What a signal does to a run: the first one ends it in an orderly way, the second at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Literal

from xgent_evolve.engine.gate import Gate
from xgent_evolve.errors import Interrupted

type OnInterrupt = Literal["detach", "drain"]
"""detach: leave at once, executions go on on the host. drain: begin nothing new, wait for what is
under way and store it. Both are resumable."""

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def run_interruptible[T](
    work: Coroutine[object, object, T],
    *,
    next_step: str,
    gate: Gate | None = None,
    on_interrupt: OnInterrupt = "detach",
) -> T:
    """Run `work` to its end, to the draining of `gate`, or to a signal.

    Everything that counts is durable before it is acted upon, so leaving at any moment loses
    nothing.

    Raises:
        Interrupted: a signal ended it.
        XgentError: the reason for which the gate was closed, once it is drained.

    """
    return asyncio.run(_supervise(work, gate or Gate(), next_step, on_interrupt))


async def _supervise[T](
    work: Coroutine[object, object, T], gate: Gate, next_step: str, on_interrupt: OnInterrupt
) -> T:
    task = asyncio.ensure_future(work)
    drained = asyncio.ensure_future(gate.drained())
    received: list[int] = []

    def on_signal(number: int) -> None:
        received.append(number)
        if on_interrupt == "drain" and len(received) == 1:
            gate.close(_interrupted(number, next_step))
        else:
            task.cancel()

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
    try:
        await asyncio.wait({task, drained}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
            raise drained.result()
        if task.cancelled() and received:
            raise _interrupted(received[-1], next_step)
        return task.result()
    finally:
        drained.cancel()
        for number in SIGNALS:
            loop.remove_signal_handler(number)


def _interrupted(number: int, next_step: str) -> Interrupted:
    name = signal.Signals(number).name
    return Interrupted(f"stopped by {name}", signal_number=number, fix=next_step)
