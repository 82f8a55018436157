"""One gate before new work: closed, it lets what is under way come to its end.

A spent budget, a gap or a first Ctrl-C closes it with its reason. Whoever wants to begin then waits
without end; when nothing is under way any more the run stops with that reason.
"""

from __future__ import annotations

import asyncio

from xgent_evolve.errors import XgentError


class Gate:
    """Counts executions under way and keeps new ones out once it is closed."""

    def __init__(self) -> None:
        """Start open, with nothing under way."""
        self.reason: XgentError | None = None
        self._active = 0
        self._drained = asyncio.Event()

    @property
    def active(self) -> int:
        """How many executions are under way."""
        return self._active

    def close(self, reason: XgentError) -> None:
        """Let nothing new begin; the first reason counts."""
        if self.reason is None:
            self.reason = reason
        self._settle()

    async def enter(self) -> None:
        """Begin one execution, or wait for ever when the gate is closed."""
        if self.reason is not None:
            await asyncio.Event().wait()
        self._active += 1

    def leave(self) -> None:
        """End one execution."""
        self._active -= 1
        self._settle()

    async def drained(self) -> XgentError:
        """Wait until the gate is closed and nothing is under way; return the reason."""
        await self._drained.wait()
        assert self.reason is not None, "only a closed gate drains"  # noqa: S101
        return self.reason

    def _settle(self) -> None:
        if self.reason is not None and self._active == 0:
            self._drained.set()
