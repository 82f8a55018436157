"""Places where a test may end the process as a power cut would.

`XGENT_EVOLVE_CRASH_AT=7` kills the process with SIGKILL at the seventh point that it reaches,
`XGENT_EVOLVE_CRASH_AT=journal.sync:2` at the second time it reaches the point of that name. Unset,
a point costs one comparison. Tests count upwards until a run survives, so a point that somebody
adds later is exercised without naming it.
"""

from __future__ import annotations

import os
import signal
from collections import Counter

VARIABLE = "XGENT_EVOLVE_CRASH_AT"

_at = os.environ.get(VARIABLE, "")
_reached: Counter[str] = Counter()


def crash_point(name: str) -> None:
    """Die here when the environment asks for it; `name` says which effect comes next."""
    if not _at:
        return
    wanted, _, count = _at.rpartition(":")
    _reached[name] += 1
    reached = _reached[name] if wanted == name else _reached.total()
    if wanted in {"", name} and reached == int(count):
        os.kill(os.getpid(), signal.SIGKILL)
