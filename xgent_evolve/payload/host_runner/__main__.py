"""Host side of xgent-evolve: owns every step of an execution on the host of the engine.

One archive, standard library only, Python 3.8 or newer. The controller stores it under
`<root>/runner/<sha256>.pyz` and starts `serve` over one SSH channel. Each accepted execution is
driven by a process of its own session, so that it is captured and exported even when the
controller and the connection are gone.

Directory of one execution, `<root>/executions/<uuid>/`:

    request.json     what was accepted, byte for byte (its SHA-256 is in the first receipt)
    receipts.jsonl   append-only, hash-chained: accepted, created, staged, start_intent, started,
                     exited, credential_destroyed, then exported | failed | gap | cancelled,
                     then cleaned; cancel_requested comes anywhere before the end
    baseline.json    the workspace before the command
    objects/         exported bytes by SHA-256, until cleaned
    handover/        mounted read-only: what was staged, and a FIFO for what comes back
    secret/          a FIFO while a credential is handed over; never a regular file

Rules that every step keeps: a receipt is durable before the next step; a container is found by
the name that is a function of the UUID; `start` is sent only after a start intent and only to a
container that was never started; a result exists only if the supervisor's own record says so; a
silent engine is asked again, and nothing is concluded from its silence.
"""

import os
import resource
import sys

from driver import drive
from faults import all_points
from server import Server


def main(arguments):
    """`serve ROOT` answers a controller; `drive ROOT UUID` and `points ROOT` are for people."""
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a credential is in memory
    verb, root = arguments[0], arguments[1]
    if verb == "points":
        sys.stdout.write("".join(name + "\n" for name in all_points()))
        return
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
