"""Waits for the end of a started command, hands over its credential, passes a cancellation on."""

import os
import threading
import time

from engine import patiently
from errors import GapError
from faults import around
from handover import HANDED_OVER, RECORD

CANCEL_PAUSE_S = 2.0
QUIET_PAUSE_S = 5.0
"""How often a driver looks for a cancellation."""
FORGOTTEN_PAUSE_S = 1.0


class Ending:
    """From `started` to `exited`."""

    def __init__(self, execution, request, engine, credential, handover):
        self.execution = execution
        self.request = request
        self.engine = engine
        self.credential = credential
        self.handover = handover
        self.limit = time.monotonic() + request["limit_s"] + request["grace_s"]
        self.receipts_size = -1
        self.cancelled = False
        self.told = 0.0

    def run(self, container):
        """Record how the container ended, and that the credential ended with it."""
        if not self.execution.find("exited"):
            state, forced = self.attend(container)
            self.execution.record(
                "exited",
                forced=forced,
                engine={
                    "exit_code": state["ExitCode"],
                    "oom_killed": state["OOMKilled"],
                    "started_at": state["StartedAt"],
                    "finished_at": state["FinishedAt"],
                },
            )
        if self.request["secrets"]:
            self.credential.remove_pipe()
            # Its only copy was in the container's memory file system, which ended with it.
            self.execution.record("credential_destroyed", where="container memory, host pipe")

    def attend(self, container):
        """Feed the credential while the container runs, and take what is handed over."""
        listener = self.handover.listen()
        stop = threading.Event()
        feeder = threading.Thread(target=self.credential.feed, args=(stop,))
        feeder.start()
        try:
            with around("wait", self.execution.uuid):
                state, forced = self.wait(container)
        finally:
            stop.set()
            listener.stop()
            feeder.join()
        if forced or state["ExitCode"] != HANDED_OVER:
            self.handover.discard()  # not the supervisor's last act
        return state, forced

    def wait(self, container):
        """Return the state of the ended container, and whether it was ended by force."""
        forced = quick = False
        while True:
            state = patiently(lambda: self.state_of(container))
            if state["Status"] == "created":
                self.wait_for_record(container)
                return state, forced
            if not state["Running"]:
                return state, forced
            if quick:
                time.sleep(0.2)
            if time.monotonic() > self.limit:
                forced = True
                # A paused container cannot be killed.
                self.signal(container, "unpause")
                self.signal(container, "kill")
            began = time.monotonic()
            left = max(self.limit - began, 1.0)
            self.engine.wait_end(container, left, lambda: self.look_for_cancel(container))
            quick = time.monotonic() - began < 0.05

    def wait_for_record(self, container):
        """Wait for the end of a command that the engine does not know to run.

        One that dies just when a container has come up holds afterwards that it was never
        started, and neither sees nor ends it (20.10). Its supervisor ends it at its limit.
        """
        while patiently(lambda: self.engine.stat(container, RECORD)) is None:
            self.look_for_cancel(container)
            if time.monotonic() > self.limit:
                raise GapError("the engine forgot that it started this, and there is no record")
            time.sleep(FORGOTTEN_PAUSE_S)

    def state_of(self, container):
        """Return the engine's state of a container; GapError when it is gone."""
        found = self.engine.inspect(container)
        if found is None:
            raise GapError("container %s is gone and no result was captured" % container[:12])
        return found["State"]

    def signal(self, container, action):
        """Send an action to the container; that it has ended already is fine."""
        patiently(lambda: self.engine.call("POST", "/containers/%s/%s" % (container, action)))

    def look_for_cancel(self, container):
        """Pass a cancellation on, again and again; say in how many seconds to look again.

        0 when the limit changed. Whoever cancels tells the supervisor himself, so there is no
        hurry to see it.
        """
        noticed = False
        size = os.stat(self.execution.receipts_path).st_size
        if size != self.receipts_size and not self.cancelled:
            self.receipts_size = size
            self.cancelled = self.execution.find("cancel_requested") is not None
            noticed = self.cancelled
            if noticed:
                self.limit = min(self.limit, time.monotonic() + self.request["grace_s"])
        if self.cancelled and time.monotonic() - self.told > CANCEL_PAUSE_S:
            self.told = time.monotonic()
            with around("cancel.tell", self.execution.uuid):
                self.signal(container, "kill?signal=TERM")
        if noticed:
            return 0
        return CANCEL_PAUSE_S if self.cancelled else QUIET_PAUSE_S
