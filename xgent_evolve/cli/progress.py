"""Shows what a run is doing: a live view on a terminal, plain lines in a pipe, or JSON lines.

Colour and liveness are two decisions: the view is live only when stderr is a terminal that can
move its cursor and nobody asked for quiet.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

from xgent_evolve.cli.output import say_json, tell, wants_colour
from xgent_evolve.execution.events import Event, ExecutionMoved, Observer, Planned, SlotDone, Story

if TYPE_CHECKING:
    from rich.table import Table


@contextmanager
def progress(*, as_json: bool) -> Generator[Observer]:
    """Yield the observer that suits where the output goes."""
    if as_json:
        yield JsonProgress()
    elif is_live():
        with LiveProgress() as live:
            yield live
    else:
        yield PlainProgress()


def is_live() -> bool:
    """Say whether stderr is a terminal on which lines can be rewritten."""
    dumb = os.environ.get("TERM", "dumb") == "dumb" or bool(os.environ.get("CI"))
    return sys.stderr.isatty() and not dumb


class JsonProgress:
    """One JSON object per event, on stdout."""

    def tell(self, event: Event) -> None:
        """Print one event."""
        names = {
            Story: "story",
            Planned: "planned",
            ExecutionMoved: "execution",
            SlotDone: "slot",
        }
        say_json({"type": names[type(event)], **asdict(event)})


class Counter:
    """How many slots have their result, replayed ones included."""

    def __init__(self) -> None:
        """Start at nothing known."""
        self.done = 0
        self.planned = 0
        self.words: dict[str, int] = {}

    def take(self, event: Event) -> None:
        """Count one event."""
        match event:
            case Planned(executions=executions):
                self.planned = executions
            case SlotDone(result=result):
                self.words[result] = self.words.get(result, 0) + 1
                self.done += result != "broken"
            case _:
                pass

    def text(self) -> str:
        """Return the count in words."""
        total = f" of {self.planned}" if self.planned else ""
        words = ", ".join(f"{count} {word}" for word, count in sorted(self.words.items()))
        return f"{self.done}{total} executions done" + (f": {words}" if words else "")


class PlainProgress:
    """One line per change, on stderr; every line can be understood alone."""

    def __init__(self) -> None:
        """Start the clock of the lines."""
        self._started = time.monotonic()
        self._counter = Counter()

    def tell(self, event: Event) -> None:
        """Print what a reader of a log wants to know of one event."""
        self._counter.take(event)
        line = event_line(event)
        if line is not None:
            total = f"{self._counter.done}/{self._counter.planned}" if self._counter.planned else ""
            tell(f"{time.monotonic() - self._started:7.1f} s {total:>7} {line}")


def event_line(event: Event) -> str | None:
    """Return an event in words, or None when it is not worth a line."""
    match event:
        case Story(text=text):
            return text
        case Planned(executions=executions):
            return f"{executions} executions are planned"
        case ExecutionMoved(phase="running" | "adopted" as phase):
            return f"{event.slot} #{event.attempt} {phase}"
        case ExecutionMoved():
            return None
        case SlotDone():
            took = "" if event.duration_ms is None else f" in {event.duration_ms / 1000:.1f} s"
            detail = f": {event.detail}" if event.detail else ""
            return f"{event.slot} #{event.attempt} {event.result}{took}{detail}"


class LiveProgress:
    """A view that is redrawn: one bar, and one line for every execution that is under way."""

    def __init__(self) -> None:
        """Prepare the view; nothing is drawn yet."""
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, no_color=not wants_colour(sys.stderr), markup=False)
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._counter = Counter()
        self._running: dict[str, tuple[str, float]] = {}
        self._story = ""

    def __enter__(self) -> LiveProgress:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing and leave one line that says where it came to."""
        self._live.stop()
        if self._counter.planned:
            tell(self._counter.text())

    def tell(self, event: Event) -> None:
        """Take one event into the picture."""
        self._counter.take(event)
        match event:
            case Story(text=text):
                self._story = text
            case ExecutionMoved(slot=slot, phase=phase):
                since = self._running.get(slot, ("", time.monotonic()))[1]
                self._running[slot] = (phase, since)
            case SlotDone(slot=slot):
                self._running.pop(slot, None)
            case Planned():
                pass
        self._live.update(self._picture())

    def _picture(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(self._counter.planned, 1), completed=self._counter.done)
        table.add_row(bar, self._counter.text())
        if not self._running:
            table.add_row("", self._story)
        now = time.monotonic()
        for slot, (phase, since) in list(self._running.items())[:12]:
            table.add_row(f"{phase} {now - since:.0f} s", slot)
        return table
