"""Places where a test may end, fail or hold the process as a power cut or a full disk would.

`XGENT_EVOLVE_CRASH_AT=7` acts at the seventh point that is reached, `XGENT_EVOLVE_CRASH_AT=
journal.sync:2` at the second time that the point of that name is reached. Unset, a point costs one
comparison. Tests count upwards until a run survives, so a point that somebody adds later is
exercised without naming it.

`XGENT_EVOLVE_CRASH_AS` says what happens there: `kill` (SIGKILL, the default), `enospc`, `eio` or
`eacces` (that operating-system error), or `pause` (say so on stderr and go on after two seconds).
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from collections import Counter

VARIABLE = "XGENT_EVOLVE_CRASH_AT"
ACTION_VARIABLE = "XGENT_EVOLVE_CRASH_AS"
PAUSE_S = 2.0

_at = os.environ.get(VARIABLE, "")
_action = os.environ.get(ACTION_VARIABLE, "kill")
_reached: Counter[str] = Counter()
_ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO, "eacces": errno.EACCES}


def crash_point(name: str) -> None:
    """Act here when the environment asks for it; `name` says which effect comes next.

    Raises:
        OSError: the environment asks for an error.

    """
    if not _at:
        return
    wanted, _, count = _at.rpartition(":")
    _reached[name] += 1
    reached = _reached[name] if wanted == name else _reached.total()
    if wanted in {"", name} and reached == int(count):
        _act(name)


def _act(name: str) -> None:
    if _action in _ERRORS:
        raise OSError(_ERRORS[_action], os.strerror(_ERRORS[_action]))
    if _action == "pause":
        sys.stderr.write(f"paused at {name}\n")
        sys.stderr.flush()
        time.sleep(PAUSE_S)
        return
    os.kill(os.getpid(), signal.SIGKILL)
