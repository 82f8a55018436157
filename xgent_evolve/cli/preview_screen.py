"""The same facts on a terminal: colours, and the bounds as a table. Rich is loaded here alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from xgent_evolve.cli.preview import Preview
from xgent_evolve.redact import printable
from xgent_evolve.spec.bounds import KINDS

BOUNDS = "executions at most"
_HEADINGS = {
    "configuration",
    "may leave this machine",
    "apply may write",
    "conditions",
    BOUNDS,
    "warnings",
}
_STYLES = (
    (re.compile(r"^(study|question|protocol|note|next)\b"), "bold"),
    (re.compile(r"^\s+(warning\[[^\]]*\])"), "bold yellow"),
    (re.compile(r"^valid\b[^;]*"), "bold green"),
    (re.compile(r"^ {6}\+.*"), "green"),
    (re.compile(r"^ {6}-.*"), "red"),
    (re.compile(r"^ {6}@@.*"), "cyan"),
    (re.compile(r"^    (added|removed|changed)\b"), "bold"),
    (re.compile(r" \+\d+(?= -\d+ lines)"), "green"),
    (re.compile(r"(?<=\d )-\d+(?= lines)"), "red"),
    (re.compile(r"  \(default\)$"), "dim"),
)


def show_preview(text: str, facts: Preview, stream: TextIO) -> None:
    """Write the plain answer `text` to a terminal, in colours and with a table of the bounds."""
    console = Console(file=stream, highlight=False, force_terminal=True, soft_wrap=True)
    heading = ""
    for line in printable(text).splitlines():
        heading = line if line in _HEADINGS else heading if line else ""
        if line == BOUNDS:
            console.print(bounds_table(facts))
        elif heading != BOUNDS:
            console.print(_painted(line))


def bounds_table(facts: Preview) -> Table:
    """Return the upper bound of every kind with its arithmetic."""
    table = Table(title=BOUNDS, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column("kind")
    table.add_column("at most", justify="right")
    table.add_column("arithmetic", overflow="fold")
    lines = dict(_arithmetic(facts))
    for kind in KINDS:
        if kind in lines:
            bound = getattr(facts.bounds, kind)
            style = "dim" if bound == 0 else ""
            table.add_row(kind, str(bound), Text(lines[kind]), style=style)
    return table


def _arithmetic(facts: Preview) -> Iterator[tuple[str, str]]:
    for line in facts.bounds.lines:
        kind, _, rest = line.partition(" ")
        yield kind, rest


def _painted(line: str) -> Text:
    if line in _HEADINGS:
        return Text(line, style="bold")
    text = Text(line)
    for pattern, style in _STYLES:
        for match in pattern.finditer(line):
            text.stylize(style, *match.span(1 if pattern.groups else 0))
    return text
