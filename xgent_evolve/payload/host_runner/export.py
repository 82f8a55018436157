"""What a command left: read from the stopped container, kept by hash."""

import hashlib
import json
import os
import tempfile

from durable import TEMPORARY, path_text, remove_if_there, remove_leftovers, sync_directory
from engine import patiently
from errors import GapError, RunnerError
from faults import around
from handover import CONTROL, NOT_UNPACKED
from outside import changes_outside
from redaction import Redactor, secret_values
from trees import tar_nodes

COPY_BYTES = 1 << 20
UNPUBLISHED = ("token", "fault")


class Export:
    """Reads what the command left and keeps it by hash; secrets are replaced on the way."""

    def __init__(self, execution, request, engine, container, credential, handover):
        self.execution = execution
        self.handover = handover
        self.request = request
        self.engine = engine
        self.container = container
        self.objects = os.path.join(execution.path, "objects")
        self.redactor = Redactor(secret_values(credential))
        self.blind = request["secrets"] and credential is None
        self.sizes = {}
        self.unpublished = {}
        self.archives = []

    def run(self):
        """Return what the receipt `exported` says; every object that it names is durable."""
        os.makedirs(self.objects, mode=0o700, exist_ok=True)
        remove_leftovers(self.objects)
        try:
            manifest = self.manifest()
            self.publish()
        finally:
            for path in self.archives:
                remove_if_there(path)
            self.handover.discard()
        return dict(manifest, objects=self.sizes, redactions=self.redactor.count)

    def manifest(self):
        """Read everything that is captured."""
        manifest = {"files": {}, "delivery": None}
        control = self.handover.nodes() or self.read(CONTROL, required=True)
        record = control.pop(b"record", None)
        if record is None:
            # The command's end was not seen by the supervisor: the result is lost, not zero.
            manifest["record"] = None
            manifest["command_started"] = b"token" in control
        else:
            manifest["record"] = self.checked_record(record)
        if self.blind and (record is None or manifest["record"]["started_cs"] is not None):
            return self.withheld(manifest)
        if record is not None and self.was_stopped(manifest["record"]):
            # Not by us: an engine that goes down asks the same way. That is no result.
            manifest.update(record=None, command_started=True, stopped=manifest["record"])
        if record is not None and self.request["capture"]["workspace"]:
            manifest["delivery"] = self.delivery()
        for name, node in sorted(control.items()):
            if node.kind == "file" and not is_internal(path_text(name)):
                manifest["files"][path_text(name)] = self.keep(node)
        for path in self.request["capture"]["paths"]:
            self.keep_tree(path, manifest)
        if self.request["capture"].get("outside"):
            manifest["outside"] = changes_outside(self.engine, self.container, self.request)
        return manifest

    def withheld(self, manifest):
        """Return the bare record: without the credential it cannot be kept out of the rest."""
        if self.execution.find("cancel_requested") is None:
            text = "drive it with the credential, which must be kept out of what is exported"
            raise RunnerError("E_REMOTE_CREDENTIAL", text)
        return dict(manifest, withheld=True)

    def was_stopped(self, record):
        """Say whether somebody else than a cancellation told the supervisor to end."""
        return record["status"] == "cancelled" and not self.execution.find("cancel_requested")

    def checked_record(self, node):
        """Return the supervisor's record; GapError when it is not this execution's."""
        try:
            record = json.loads(node.content().decode("utf-8"))
            owner = (record["uuid"], record["container"])
        except (ValueError, KeyError, TypeError):
            raise GapError("the exit record cannot be read") from None
        if owner != (self.execution.uuid, self.container):
            raise GapError("the exit record belongs to another execution")
        return record

    def keep_tree(self, path, manifest):
        """Keep every file below a directory of the container."""
        for name, node in sorted(self.read(path).items()):
            if node.kind == "file":
                manifest["files"][path + "/" + path_text(name)] = self.keep(node)
            elif node.kind == "link":
                manifest["files"][path + "/" + path_text(name)] = {"link": path_text(node.target)}

    def read(self, path, required=False):
        """Return the nodes below `path` in the stopped container; none when it is absent.

        Their archive stays until the export ends, since the nodes are read from it.
        """
        descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=self.execution.path)
        self.archives.append(temporary)
        with around("export.read", self.execution.uuid), os.fdopen(descriptor, "w+b") as stream:
            found = patiently(lambda: self.engine.get_archive(self.container, path, stream))
        if found:
            return tar_nodes(temporary, strict=False)
        if patiently(lambda: self.engine.inspect(self.container)) is None:
            raise GapError("the container is gone and its result was not captured")
        if required and self.execution.find("exited")["engine"]["exit_code"] != NOT_UNPACKED:
            # It was staged, so its absence is the engine's trouble and says nothing.
            raise RunnerError("E_REMOTE_ENGINE", "%s cannot be read" % path)
        return {}

    def keep(self, node):
        """Write a file's bytes beside their final names and return its fact."""
        descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=self.objects)
        with around("export.write", self.execution.uuid), os.fdopen(descriptor, "wb") as stream:
            sha256, size = self.copy(node, stream)
        if sha256 in self.sizes:
            os.unlink(temporary)
        self.unpublished.setdefault(sha256, temporary)
        self.sizes[sha256] = size
        return {"sha256": sha256, "size": size}

    def copy(self, node, stream):
        """Write a file's bytes without secrets; return hash and size of what was written."""
        digest, size = hashlib.sha256(), 0
        with node.open() as source:
            for chunk in self.redactor.clean(iter(lambda: source.read(COPY_BYTES), b"")):
                digest.update(chunk)
                size += len(chunk)
                stream.write(chunk)
        return digest.hexdigest(), size

    def publish(self):
        """Make every object durable, then give it its name: one pass each, for many files."""
        for temporary in self.unpublished.values():
            descriptor = os.open(temporary, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        with around("export.publish", self.execution.uuid):
            for sha256, temporary in self.unpublished.items():
                os.replace(temporary, os.path.join(self.objects, sha256))
            sync_directory(self.objects)

    def delivery(self):
        """Return the difference between the baseline and the workspace that the command left."""
        capture = self.request["capture"]
        staged = self.execution.find("staged")
        before = self.baseline(staged)
        path = staged.get("workspace_path", self.request["workspace"]["path"])
        after = {path_text(name): node for name, node in self.read(path, required=True).items()}
        changes, refused = [], []
        for name in sorted(set(before) | set(after)):
            if excluded(name, capture["exclude"]):
                continue
            old, node = before.get(name), after.get(name)
            new = None if node is None else node.fact()
            if same_file(old, new):
                continue
            if node is not None and node.size > capture["max_file_bytes"]:
                refused.append({"path": name, "size": node.size})
                continue
            if node is not None and node.kind == "file":
                new = dict(new, **self.keep(node))
            changes.append({"path": name, "before": old, "after": new})
        return {"changes": changes, "refused": refused}

    def baseline(self, staged):
        """Return the facts of the workspace before the command."""
        path = os.path.join(self.execution.path, "baseline.json")
        try:
            with open(path, "rb") as stream:
                content = stream.read()
        except FileNotFoundError:
            content = b""
        if hashlib.sha256(content).hexdigest() != staged["baseline_sha256"]:
            raise GapError("baseline.json differs from what was staged")
        return json.loads(content.decode("utf-8"))


def is_internal(name):
    """Say whether a control file is the supervisor's own, and says nothing about the command."""
    return name in UNPUBLISHED or name.startswith(".")


def excluded(name, prefixes):
    """Say whether a path is not part of a delivery."""
    return any(name == prefix or name.startswith(prefix + "/") for prefix in prefixes)


def same_file(old, new):
    """Compare two sides: of a directory its kind, of a file and a link everything."""
    if old is None or new is None:
        return old is new
    if old["kind"] == "dir" and new["kind"] == "dir":
        return True
    return old == new
