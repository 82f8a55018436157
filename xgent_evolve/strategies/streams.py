"""Random draws of a strategy: one stream for every seed, step and purpose.

A draw never depends on how many were made before it, so that a search which is resumed, or whose
step skips a draw, goes on with the same numbers. CPython's generator gives the same values for a
text seed on every version that this package runs on.
"""

from __future__ import annotations

import random


def stream(seed: int, step: int, purpose: str) -> random.Random:
    """Return the stream of one purpose in one step, at its beginning."""
    return random.Random(f"{seed}:{step}:{purpose}")  # noqa: S311 - a draw, not a secret


def run_stream(seed: int, purpose: str) -> random.Random:
    """Return the stream of what is drawn once in a search, at its beginning."""
    return random.Random(f"{seed}:{purpose}")  # noqa: S311 - a draw, not a secret
