"""Cancels executions: on record first, then told to whoever carries them out."""

import os

from durable import remove_if_there
from engine import Engine
from errors import EngineAwayError, RunnerError
from faults import around
from receipts import TERMINAL, Execution, find_kind, is_ended


def cancel(root, uuid, socket_path):
    """Cancel one execution and return its state; harmless after its end, and as often as wanted.

    One whose command has no start intent never starts. A started one is told to end; whoever
    drives it tells it again, exports what it left and thereby ends it.
    """
    execution = Execution(root, uuid)
    receipts = execution.receipts() if os.path.isdir(execution.path) else []
    if not receipts:
        return "absent"
    if is_ended(receipts):
        return receipts[-1]["kind"]
    last = execution.record("cancel_requested", unless=TERMINAL)
    if last["kind"] in TERMINAL:
        return last["kind"]
    if find_kind(execution.receipts(), "start_intent") is None:
        return end_unstarted(execution)
    created = find_kind(receipts, "created")
    if created is not None:
        tell(uuid, created["container_id"], Engine(socket_path))
    return "cancel_requested"


def end_unstarted(execution):
    """Say the last word about an execution that nobody drives; a driver says it itself."""
    lock = execution.lock()
    if lock is None:
        return "cancel_requested"
    try:
        # Holding the lock, so nobody is between the request and the start intent.
        if find_kind(execution.receipts(), "start_intent") is not None:
            return "cancel_requested"
        remove_if_there(os.path.join(execution.path, "secret", "credential"))
        return execution.record("cancelled", unless=TERMINAL, stage="undriven")["kind"]
    finally:
        os.close(lock)


def tell(uuid, container, engine):
    """Ask the supervisor to end the command; a driving process repeats this until it ends."""
    try:
        with around("cancel.tell", uuid):
            status, _ = engine.call(
                "POST", "/containers/%s/kill?signal=TERM" % container, timeout=30
            )
    except EngineAwayError:
        return  # it is on record; the next drive tells it
    if status not in (204, 404, 409):
        raise RunnerError("E_REMOTE_ENGINE", "the engine cannot tell %s" % container)
