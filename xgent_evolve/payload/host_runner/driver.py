"""Drives one execution from accepted to exported."""

import errno
import fcntl
import hashlib
import json
import os
import tarfile
import tempfile
import threading
import time

from durable import canonical, path_bytes, path_text, sync_directory, write_durable
from engine import Engine, message_of
from errors import Gap, RunnerError, StepFailed
from export import CONTROL, Export
from receipts import Execution, now_ms
from trees import (
    Node,
    apply_changes,
    entry_nodes,
    put_node,
    remove_path,
    tar_nodes,
    with_parents,
    write_tar,
)

ZERO_TIME = "0001-01-01"
TERMINAL = ("exported", "failed", "gap", "cleaned")


class Driver:
    """Carries one execution from accepted to exported; every step is skipped when recorded."""

    def __init__(self, root, uuid, secrets):
        self.root = root
        self.execution = Execution(root, uuid)
        self.secrets = secrets
        self.request = None
        self.engine = None

    def run(self):
        lock = self.execution.lock()
        if lock is None:
            return
        try:
            if self.last_kind() in TERMINAL:
                return
            self.request = self.execution.request()
            self.engine = Engine(self.request["engine"]["socket"])
            container = self.create()
            self.stage(container)
            self.start(container)
            self.finish(container)
        except StepFailed as failure:
            self.execution.record(
                "failed", stage=failure.stage, cause=failure.cause, detail=failure.detail
            )
        except Gap as gap:
            self.execution.record("gap", reason=str(gap))
        finally:
            os.close(lock)

    def last_kind(self):
        receipts = self.execution.receipts()
        return receipts[-1]["kind"] if receipts else None

    # -- create

    def create(self):
        """Return the container's id; it is durable before anything else happens (V2)."""
        recorded = self.execution.find("created")
        if recorded:
            return recorded["container_id"]
        if self.request["secrets"]:
            self.make_fifo()
        body = self.container_body()
        status, document = self.engine.call(
            "POST", "/containers/create?name=" + self.execution.name, body
        )
        if status == 409:
            container = self.adopt_by_name()
        elif status == 201:
            container = document["Id"]
        elif status == 404:
            raise StepFailed("create", "image_missing", str(message_of(document)))
        else:
            raise StepFailed("create", "engine_refused", str(message_of(document)))
        self.execution.record("created", container_id=container, name=self.execution.name)
        return container

    def container_body(self):
        body = json.loads(json.dumps(self.request["container"]))
        body["Labels"] = dict(body.get("Labels") or {}, **self.labels())
        host = body["HostConfig"]
        host.setdefault("Mounts", []).append(
            {
                "Type": "volume",
                "Source": self.execution.volume,
                "Target": self.request["workspace"]["path"],
                "VolumeOptions": {"NoCopy": True, "Labels": self.labels()},
            }
        )
        if self.request["secrets"]:
            host["Mounts"].append(
                {
                    "Type": "bind",
                    "Source": os.path.join(self.execution.path, "secret"),
                    "Target": "/xgent/secret",
                    "ReadOnly": True,
                }
            )
        for mount in host["Mounts"]:
            if mount["Source"].startswith("tools/"):
                mount["Source"] = os.path.join(self.root, mount["Source"])
        return body

    def labels(self):
        accepted = self.execution.receipts()[0]
        return {
            "xgent.execution": self.execution.uuid,
            "xgent.run": self.request["run_id"],
            "xgent.request": accepted["request_sha256"],
        }

    def adopt_by_name(self):
        found = self.engine.inspect(self.execution.name)
        if found is None:
            raise StepFailed("create", "engine_refused", "name is taken and was released again")
        labels = found["Config"].get("Labels") or {}
        if any(labels.get(key) != value for key, value in self.labels().items()):
            raise Gap("a container named %s exists that is not ours" % self.execution.name)
        return found["Id"]

    def make_fifo(self):
        directory = os.path.join(self.execution.path, "secret")
        os.makedirs(directory, mode=0o755, exist_ok=True)
        os.chmod(directory, 0o755)
        fifo = os.path.join(directory, "credential")
        if not os.path.exists(fifo):
            os.mkfifo(fifo)
        # The container's user reads it; the directory above is closed to others on the host.
        os.chmod(fifo, 0o644)

    # -- stage

    def stage(self, container):
        """Put the workspace, the inputs and the supervisor into the container; start nothing."""
        if self.execution.find("staged") or self.execution.find("start_intent"):
            return
        workspace = self.workspace_nodes()
        owner = self.request["workspace"]["owner"]
        uid = self.request["user_id"]
        baseline = {path_text(name): node.fact() for name, node in workspace.items() if name}
        content = canonical(baseline)
        write_durable(os.path.join(self.execution.path, "baseline.json"), content)
        with tempfile.TemporaryFile(dir=self.execution.path) as stream:
            path = self.request["workspace"]["path"].encode("utf-8")
            write_tar(stream, path, workspace, owner)
            stream.seek(0)
            self.engine.put_archive(container, "/", stream)
        with tempfile.TemporaryFile(dir=self.execution.path) as stream:
            self.write_inputs(stream, container, uid)
            stream.seek(0)
            self.engine.put_archive(container, "/", stream)
        self.execution.record(
            "staged",
            baseline_sha256=hashlib.sha256(content).hexdigest(),
            workspace_paths=len(baseline),
        )

    def write_inputs(self, stream, container, uid):
        identity = canonical({"uuid": self.execution.uuid, "container": container}) + b"\n"
        nodes = entry_nodes(self.request["inputs"], self.root, 0)
        nodes[b"xgent/identity"] = Node("file", 0o644, 0, reader=lambda: identity)
        nodes = with_parents(nodes, 0)
        nodes[CONTROL.strip("/").encode("ascii")] = Node("dir", 0o755, uid)
        for path in self.request["directories"]:
            nodes[path_bytes(path).strip(b"/")] = Node("dir", 0o755, uid)
        write_tar(stream, b"", nodes, None)

    def workspace_nodes(self):
        plan = self.request["workspace"]
        owner = plan["owner"]
        nodes = {}
        if plan["from_image"]:
            nodes.update(tar_nodes(self.image_tar(plan["path"])))
        for path in plan["remove"]:
            remove_path(nodes, path_bytes(path))
        overlay = with_parents(entry_nodes(plan["entries"], self.root, owner or 0), owner or 0)
        for name, node in overlay.items():
            put_node(nodes, name, node)
        apply_changes(nodes, plan["changes"], self.root, owner or 0)
        for path in plan["ensure"]:
            nodes.setdefault(path_bytes(path), Node("dir", 0o755, owner or 0))
        nodes[b""] = Node("dir", 0o755, owner or 0)
        return nodes

    def image_tar(self, path):
        """Return the archive of `path` in the image, made once per image and path."""
        image = self.request["container"]["Image"]
        key = hashlib.sha256(("%s\0%s" % (image, path)).encode("utf-8")).hexdigest()
        directory = os.path.join(self.root, "images")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        final = os.path.join(directory, key + ".tar")
        with open(os.path.join(directory, key + ".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(final):
                self.read_image(image, path, final)
        return final

    def read_image(self, image, path, final):
        name = "xg-image-" + os.path.basename(final)[:20]
        labels = {"xgent.image": image}
        self.engine.call("DELETE", "/containers/%s?force=1" % name)
        status, document = self.engine.call(
            "POST",
            "/containers/create?name=" + name,
            {"Image": image, "Cmd": ["true"], "Entrypoint": [], "Labels": labels},
        )
        if status != 201:
            raise StepFailed("workspace", "image_unreadable", str(message_of(document)))
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(final))
        try:
            with os.fdopen(descriptor, "wb") as stream:
                if not self.engine.get_archive(document["Id"], path + "/.", stream):
                    tarfile.open(fileobj=stream, mode="w").close()
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, final)
            sync_directory(os.path.dirname(final))
        finally:
            if os.path.exists(temporary):
                os.unlink(temporary)
            self.engine.call("DELETE", "/containers/%s?force=1&v=1" % document["Id"])

    # -- start

    def start(self, container):
        """Start the command at most once (V3)."""
        if self.execution.find("started"):
            return
        if not self.execution.find("start_intent"):
            self.execution.record("start_intent", container_id=container)
        state = self.state_of(container)
        if state["Status"] == "created" and state["StartedAt"].startswith(ZERO_TIME):
            status, document = self.engine.call(
                "POST", "/containers/%s/start" % container, timeout=300
            )
            state = self.state_of(container)
            if status not in (204, 304) and state["StartedAt"].startswith(ZERO_TIME):
                raise StepFailed("start", "engine_refused", str(message_of(document)))
        self.execution.record("started", container_id=container)

    def state_of(self, container):
        found = self.engine.inspect(container)
        if found is None:
            raise Gap("container %s is gone and no result was captured" % container[:12])
        return found["State"]

    # -- finish

    def finish(self, container):
        if not self.execution.find("exited"):
            stop = threading.Event()
            feeder = threading.Thread(target=self.feed_secret, args=(stop,))
            feeder.start()
            try:
                state, forced = self.wait(container)
            finally:
                stop.set()
                feeder.join()
                self.remove_fifo()
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
        if self.request["secrets"] and not self.execution.find("credential_destroyed"):
            # Its only copy was in the container's memory file system, which ended with it.
            self.execution.record("credential_destroyed", where="container memory, host pipe")
        manifest = Export(self, container).run()
        self.execution.record("exported", **manifest)

    def feed_secret(self, stop):
        """Write the credential once into the FIFO as soon as the supervisor reads it."""
        value = self.secrets.get("credential")
        fifo = os.path.join(self.execution.path, "secret", "credential")
        if value is None or not os.path.exists(fifo):
            return
        while not stop.is_set():
            try:
                descriptor = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno not in (errno.ENXIO, errno.ENOENT):
                    raise
                time.sleep(0.01)
                continue
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(value)
            return

    def remove_fifo(self):
        """Remove the pipe; its directory stays: the engine needs it to read the container."""
        fifo = os.path.join(self.execution.path, "secret", "credential")
        if os.path.exists(fifo):
            os.unlink(fifo)

    def wait(self, container):
        """Wait for the container's end; beyond the supervisor's own limit it is killed."""
        limit = time.monotonic() + self.request["limit_s"] + self.request["grace_s"]
        forced = False
        while True:
            remaining = max(1.0, limit - time.monotonic())
            try:
                self.engine.call(
                    "POST", "/containers/%s/wait" % container, timeout=min(remaining, 3600)
                )
            except RunnerError:
                time.sleep(0.2)
            state = self.state_of(container)
            if not state["Running"]:
                return state, forced
            if time.monotonic() > limit:
                forced = True
                self.engine.call("POST", "/containers/%s/kill" % container)


def drive(root, uuid, secrets):
    """Entry of a driving process: the outcome is in the receipts, trouble in drive.log."""
    try:
        Driver(root, uuid, secrets).run()
    except Exception as error:
        # Not terminal: the next observer sees an undriven execution and drives it again.
        path = os.path.join(root, "executions", uuid, "drive.log")
        with open(path, "a") as stream:
            stream.write("%d %s: %s\n" % (now_ms(), type(error).__name__, error))
        raise
