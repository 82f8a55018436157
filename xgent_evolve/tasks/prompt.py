"""The prompt of a task: its instruction without the lines that mark it for data filters."""

from __future__ import annotations

import re

_CANARY = re.compile(r"\s*(?:<!--.*canary.*-->|#.*canary.*)\s*", re.IGNORECASE)


def prompt_of(instruction: str) -> str:
    """Return the instruction without leading canary lines and the blank lines after them.

    Harbor strips them too: they speak to whoever collects training data, not to the agent. A
    canary anywhere else stays, and instruction.md itself is placed byte for byte.
    """
    lines = instruction.splitlines(keepends=True)
    start = 0
    while start < len(lines) and _CANARY.fullmatch(lines[start]):
        start += 1
        while start < len(lines) and not lines[start].strip():
            start += 1
    return "".join(lines[start:])
