"""Drives one execution from accepted to its end."""

import json
import os

from credentials import Credential
from durable import remove_leftovers
from ending import Ending
from engine import Engine, message_of, patiently
from errors import CancelledError, DamagedError, GapError, StepFailedError
from export import Export
from faults import around, load
from handover import TOKEN, Handover
from images import ImageTrees
from receipts import Execution, is_ended, now_ms
from staging import Staging

ZERO_TIME = "0001-01-01"


class Driver:
    """Carries one execution from accepted to its end; every step is skipped when recorded."""

    def __init__(self, root, uuid, secrets):
        self.root = root
        self.execution = Execution(root, uuid)
        self.credential = Credential(self.execution, secrets.get("credential"))
        self.handover = Handover(self.execution.path, uuid)
        self.request = None
        self.engine = None

    def run(self):
        """Drive it, unless it has ended or somebody else does."""
        lock = self.execution.lock()
        if lock is None:
            return
        try:
            if not is_ended(self.execution.receipts()):
                remove_leftovers(self.execution.path)
                self.handover.remove_leftovers()
                self.drive()
        finally:
            self.handover.discard()  # it may hold what was to be redacted
            os.close(lock)

    def drive(self):
        """Go through the steps, and put every end on record."""
        record = self.execution.record
        try:
            self.request = self.execution.request()
            self.engine = Engine(self.request["engine"]["socket"])
            container = patiently(self.create)
            patiently(lambda: self.stage(container))
            patiently(lambda: self.start(container))
            self.ending().run(container)
            self.export(container)
        except StepFailedError as failure:
            record("failed", stage=failure.stage, cause=failure.cause, detail=failure.detail)
        except CancelledError as cancelled:
            record("cancelled", stage=str(cancelled))
        except GapError as gap:
            record("gap", reason=str(gap))

    # -- create

    def create(self):
        """Return the container's id; it is durable before anything else happens (V2)."""
        recorded = self.execution.find("created")
        if recorded:
            return recorded["container_id"]
        self.require_not_cancelled("create")
        if self.request["secrets"]:
            self.credential.make_pipe()
        self.handover.make()
        self.make_volume()
        container = self.make_container()
        self.execution.record("created", container_id=container, name=self.execution.name)
        return container

    def require_not_cancelled(self, stage):
        """Leave before the command was started when somebody asked for that."""
        if self.execution.find("cancel_requested"):
            raise CancelledError(stage)

    def make_volume(self):
        """Make the workspace's volume; the engine answers with the one that has the name."""
        body = {"Name": self.execution.volume, "Labels": self.labels()}
        with around("create.volume", self.execution.uuid):
            status, document = self.engine.call("POST", "/volumes/create", body)
        if status != 201:
            raise StepFailedError("create", "engine_refused", str(message_of(document)))
        if not self.is_ours(document.get("Labels")):
            raise GapError("a volume named %s exists that is not ours" % self.execution.volume)

    def make_container(self):
        """Make the container, or adopt the one that an earlier drive made under the name (X3)."""
        address = "/containers/create?name=" + self.execution.name
        with around("create.container", self.execution.uuid):
            status, document = self.engine.call("POST", address, self.container_body())
        if status == 409:
            return self.adopt_by_name()
        if status == 404:
            raise StepFailedError("create", "image_missing", str(message_of(document)))
        if status != 201:
            raise StepFailedError("create", "engine_refused", str(message_of(document)))
        return document["Id"]

    def container_body(self):
        """Return the engine's request: the accepted one with labels, volume and pipes."""
        body = json.loads(json.dumps(self.request["container"]))
        body["Labels"] = dict(body.get("Labels") or {}, **self.labels())
        if self.request["user_id"] == 0:
            # Only root gives files their owners.
            tar = ImageTrees(self.root, self.engine).unpacker(body["Image"])
            if tar:
                body["Entrypoint"] = self.handover.unpacking(tar, body["Entrypoint"])
        mounts = body["HostConfig"].setdefault("Mounts", [])
        mounts.append(
            {
                "Type": "volume",
                "Source": self.execution.volume,
                "Target": self.request["workspace"]["path"],
                "VolumeOptions": {"NoCopy": True, "Labels": self.labels()},
            }
        )
        mounts.append(self.handover.mount())
        if self.request["secrets"]:
            mounts.append(self.credential.mount())
        for mount in mounts:
            if mount["Source"].startswith("tools/"):
                mount["Source"] = os.path.join(self.root, mount["Source"])
                mount["ReadOnly"] = True  # whatever was asked: other runs use the same install
        return body

    def labels(self):
        """Return the labels by which a resource is recognised as this execution's."""
        accepted = self.execution.receipts()[0]
        return {
            "xgent.execution": self.execution.uuid,
            "xgent.run": self.request["run_id"],
            "xgent.request": accepted["request_sha256"],
        }

    def is_ours(self, found):
        """Say whether a resource carries this execution's labels."""
        found = found or {}
        return all(found.get(key) == value for key, value in self.labels().items())

    def adopt_by_name(self):
        """Return the id of the container that has our name and labels."""
        found = self.engine.inspect(self.execution.name)
        if found is None:
            text = "name is taken and was released again"
            raise StepFailedError("create", "engine_refused", text)
        if not self.is_ours(found["Config"].get("Labels")):
            raise GapError("a container named %s exists that is not ours" % self.execution.name)
        return found["Id"]

    # -- stage, start, export

    def stage(self, container):
        """Fill the container, once."""
        if self.execution.find("staged") or self.execution.find("start_intent"):
            return
        self.require_not_cancelled("stage")
        found = self.inspect(container)
        handover = self.handover if self.handover.unpacks(found) else None
        staged = Staging(self.execution, self.request, self.engine, container).run(handover)
        self.execution.record("staged", **staged)

    def start(self, container):
        """Start the command at most once (V3)."""
        if self.execution.find("started"):
            return
        known = self.execution.find("start_intent") is not None
        # A cancellation that is on record first wins, and no intent is written any more.
        latest = self.execution.record(
            "start_intent", unless=() if known else ("cancel_requested",), container_id=container
        )
        if latest["kind"] == "cancel_requested":
            raise CancelledError("start")
        if self.was_never_started(container) and not (known and self.has_begun(container)):
            if known and self.execution.find("cancel_requested"):
                self.fence(container)
            else:
                self.send_start(container)
        self.execution.record("started", container_id=container)

    def send_start(self, container):
        """Send the start; what became of it is read from the container's state alone."""
        with around("start", self.execution.uuid):
            status, document = self.engine.call(
                "POST", "/containers/%s/start" % container, timeout=300
            )
        if status in (204, 304) or not self.was_never_started(container):
            return
        if not self.has_begun(container):
            raise StepFailedError("start", "engine_refused", str(message_of(document)))

    def fence(self, container):
        """Make sure that a start which is still under way runs no command."""
        with around("cancel.fence", self.execution.uuid):
            Staging(self.execution, self.request, self.engine, container).take_token()
        if self.was_never_started(container):
            raise CancelledError("start")

    def was_never_started(self, container):
        """Say whether the engine holds that the container was never started (X5)."""
        state = self.state_of(container)
        return state["Status"] == "created" and state["StartedAt"].startswith(ZERO_TIME)

    def has_begun(self, container):
        """Say whether its supervisor was there: an engine that dies may forget a start.

        The token that a cancellation puts there is not empty.
        """
        token = self.engine.stat(container, TOKEN)
        return token is not None and token["size"] == 0

    def state_of(self, container):
        """Return the engine's state of a container; GapError when it is gone."""
        return self.inspect(container)["State"]

    def inspect(self, container):
        """Return what the engine says about a container; GapError when it is gone."""
        found = self.engine.inspect(container)
        if found is None:
            raise GapError("container %s is gone and no result was captured" % container[:12])
        return found

    def ending(self):
        """Return what waits for the command's end."""
        parts = (self.credential, self.handover)
        return Ending(self.execution, self.request, self.engine, *parts)

    def export(self, container):
        """Keep what the command left, by hash."""
        parts = (container, self.credential.value, self.handover)
        export = Export(self.execution, self.request, self.engine, *parts)
        self.execution.record("exported", **export.run())


def drive(root, uuid, secrets):
    """Entry of a driving process: the outcome is in the receipts, trouble in drive.log."""
    load(root)
    try:
        Driver(root, uuid, secrets).run()
    except DamagedError as error:
        note(root, uuid, error)
    except Exception as error:
        # Not terminal: the next observer sees an undriven execution and drives it again.
        note(root, uuid, error)
        raise


def note(root, uuid, error):
    """Leave a line about trouble, where that is possible."""
    line = "%d %s: %s\n" % (now_ms(), type(error).__name__, error)
    try:
        path = os.path.join(root, "executions", uuid, "drive.log")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "w") as stream:
            stream.write(line)
    except OSError:
        pass
