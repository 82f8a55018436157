"""Named places where a test can kill, hang or fail this process; no-ops otherwise.

`ROOT/faults.json` is read once, when a process starts. It maps a point to
{"action": "kill" | "hang" | "enospc" | "eio" | "eacces", "times": n, "uuid": optional}. Each
firing is a durable line of `ROOT/faults.log` before it acts. Points whose name begins with
`supervisor.` are handed into the container as /xgent/fault; there only `kill` and `hang` exist.
"""

import errno
import fcntl
import json
import os
import signal
import time

from durable import write_all

RECEIPTS = (
    "accepted",
    "created",
    "staged",
    "start_intent",
    "started",
    "exited",
    "credential_destroyed",
    "exported",
    "failed",
    "gap",
    "cancel_requested",
    "cancelled",
    "cleaned",
)
"""Every kind of receipt that exists."""

EFFECTS = (
    "put.write",
    "put.publish",
    "accept.request",
    "create.volume",
    "create.container",
    "stage.image",
    "stage.baseline",
    "stage.fill",
    "start",
    "credential.write",
    "wait",
    "export.receive",
    "export.read",
    "export.write",
    "export.publish",
    "cancel.fence",
    "cancel.tell",
    "clean.container",
    "clean.volume",
    "clean.files",
)
"""Everything that changes the host or the engine, or waits for it."""

SUPERVISOR = (
    "supervisor.token.before",
    "supervisor.token.after",
    "supervisor.command.after",
    "supervisor.record.before",
    "supervisor.record.after",
)
"""Points inside the container."""

ERRORS = {"enospc": errno.ENOSPC, "eio": errno.EIO, "eacces": errno.EACCES}


def all_points():
    """Return the names of all points, in the order of an execution's life."""
    names = list(EFFECTS) + ["receipt." + kind for kind in RECEIPTS]
    return [name + edge for name in names for edge in (".before", ".after")] + list(SUPERVISOR)


class Faults:
    """What `faults.json` asked for when this process started."""

    def __init__(self, root):
        self.root = root
        try:
            with open(os.path.join(root, "faults.json"), "rb") as stream:
                self.wanted = json.loads(stream.read().decode("utf-8"))
        except FileNotFoundError:
            self.wanted = {}
        unknown = set(self.wanted) - set(all_points())
        if unknown:
            raise SystemExit("no such fault point: %s" % ", ".join(sorted(unknown)))

    def take(self, name, uuid):
        """Return the action due at a point, after counting it durably; None when there is none."""
        plan = self.wanted.get(name)
        if plan is None or plan.get("uuid") not in (None, uuid):
            return None
        path = os.path.join(self.root, "faults.log")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with open(path, "rb") as stream:
                fired = sum(line.split(b" ")[0] == name.encode("ascii") for line in stream)
            if fired >= plan.get("times", 1):
                return None
            line = "%s %s %s\n" % (name, plan["action"], uuid or "-")
            write_all(descriptor, line.encode("utf-8"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return plan["action"]


_active = None


def load(root):
    """Read `faults.json`; without it every point stays a no-op."""
    global _active  # noqa: PLW0603 - one process has one set of faults
    faults = Faults(root)
    _active = faults if faults.wanted else None


def point(name, uuid=None):
    """Act when a fault is due here."""
    if _active is None:
        return
    action = _active.take(name, uuid)
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif action == "hang":
        while True:
            time.sleep(3600)
    elif action is not None:
        raise OSError(ERRORS[action], "fault at %s: %s" % (name, os.strerror(ERRORS[action])))


class around:  # noqa: N801 - reads as a word of the with statement
    """The points before and after one effect: `with around("start", uuid): ...`."""

    def __init__(self, name, uuid=None):
        self.name = name
        self.uuid = uuid

    def __enter__(self):
        """Pass the point before the effect."""
        point(self.name + ".before", self.uuid)

    def __exit__(self, kind, value, trace):
        """Pass the point after the effect, unless it failed."""
        if kind is None:
            point(self.name + ".after", self.uuid)


def supervisor_fault(uuid):
    """Return the content of /xgent/fault, or None: the action and the point's short name."""
    if _active is None:
        return None
    for name in SUPERVISOR:
        action = _active.take(name, uuid)
        if action is not None:
            return ("%s %s\n" % (action, name[len("supervisor.") :])).encode("ascii")
    return None
