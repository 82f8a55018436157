"""Host side of xgent-evolve: owns every step of an execution on the host of the engine.

One file, standard library only, Python 3.8 or newer. The controller stores it under
`<root>/runner/<sha256>.py` and starts `serve` over one SSH channel. Each accepted execution is
driven by a process of its own session, so that it is captured and exported even when the
controller and the connection are gone.

Directory of one execution, `<root>/executions/<uuid>/`:

    request.json     what was accepted, byte for byte (its SHA-256 is in the first receipt)
    receipts.jsonl   append-only, hash-chained: accepted, created, staged, start_intent, started,
                     exited, exported | failed | gap, then cleaned
    baseline.json    the workspace before the command
    objects/         exported bytes by SHA-256, until cleaned
    secret/          a FIFO while a credential is handed over; never a regular file

Rules that every step keeps: a receipt is durable before the next step; a container is found by
the name that is a function of the UUID; `start` is sent only after a start intent and only to a
container that was never started; a result exists only if the supervisor's own record says so.
"""

import os
import sys

from driver import drive
from server import Server


def main(arguments):
    """`serve ROOT`: answer a controller. `drive ROOT UUID`: drive one execution by hand."""
    os.umask(0o022)
    verb, root = arguments[0], arguments[1]
    os.makedirs(root, mode=0o700, exist_ok=True)
    # Closed to others as a whole, so that what containers read below may be readable.
    os.chmod(root, 0o700)
    for name in ("executions", "blobs", "tools"):
        os.makedirs(os.path.join(root, name), mode=0o700, exist_ok=True)
    if verb == "serve":
        Server(root, made_root="new" in arguments[2:]).run()
    elif verb == "drive":
        drive(root, arguments[2], {})
    else:
        raise SystemExit("unknown verb %s" % verb)


if __name__ == "__main__":
    main(sys.argv[1:])
