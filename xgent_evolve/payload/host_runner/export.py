"""What a command left: read from the stopped container, kept by hash."""

import hashlib
import json
import os
import tempfile

from durable import path_text, sync_directory, write_durable
from errors import Gap, RunnerError
from trees import tar_nodes

CONTROL = "/xgent/ctl"


class Export:
    """Reads what the command left and keeps it by hash; secrets are replaced on the way."""

    def __init__(self, driver, container):
        self.driver = driver
        self.container = container
        self.objects = os.path.join(driver.execution.path, "objects")
        self.sizes = {}
        self.redactions = 0
        self.archives = []
        self.secrets = [
            value for value in secret_values(driver.secrets.get("credential")) if len(value) >= 8
        ]

    def run(self):
        os.makedirs(self.objects, mode=0o700, exist_ok=True)
        try:
            return self.manifest()
        finally:
            for path in self.archives:
                os.unlink(path)

    def manifest(self):
        """Return what the receipt `exported` says; every object it names is durable."""
        manifest = {"files": {}, "delivery": None}
        control = self.read(CONTROL, required=True)
        record = control.pop(b"record", None)
        if record is None:
            # The command's end was not seen by the supervisor: the result is lost, not zero.
            manifest["record"] = None
            manifest["command_started"] = b"token" in control
        else:
            manifest["record"] = self.checked_record(record)
            if self.driver.request["capture"]["workspace"]:
                manifest["delivery"] = self.delivery()
        for name, node in sorted(control.items()):
            if node.kind == "file" and name != b"token":
                manifest["files"][path_text(name)] = self.keep(node)
        for path in self.driver.request["capture"]["paths"]:
            self.keep_tree(path, manifest)
        sync_directory(self.objects)
        manifest["objects"] = self.sizes
        manifest["redactions"] = self.redactions
        return manifest

    def checked_record(self, node):
        record = json.loads(node.reader().decode("utf-8"))
        if (record["uuid"], record["container"]) != (self.driver.execution.uuid, self.container):
            raise Gap("the exit record belongs to another execution")
        return record

    def keep_tree(self, path, manifest):
        for name, node in sorted(self.read(path).items()):
            if node.kind == "file":
                manifest["files"][path + "/" + path_text(name)] = self.keep(node)
            elif node.kind == "link":
                manifest["files"][path + "/" + path_text(name)] = {"link": path_text(node.target)}

    def read(self, path, required=False):
        """Return the nodes below `path` in the stopped container; their archive stays until the
        export ends, since the readers read from it.
        """
        descriptor, temporary = tempfile.mkstemp(dir=self.driver.execution.path)
        self.archives.append(temporary)
        with os.fdopen(descriptor, "wb") as stream:
            if not self.driver.engine.get_archive(self.container, path, stream):
                if required:
                    # It was staged, so its absence is the engine's trouble and says nothing.
                    raise RunnerError("E_REMOTE_ENGINE", "%s cannot be read" % path)
                return {}
        return tar_nodes(temporary, strict=False)

    def keep(self, node):
        """Store a file's bytes by hash and return its fact."""
        content = node.reader()
        for secret in self.secrets:
            if secret in content:
                self.redactions += content.count(secret)
                content = content.replace(secret, b"[REDACTED]")
        sha256 = hashlib.sha256(content).hexdigest()
        path = os.path.join(self.objects, sha256)
        if sha256 not in self.sizes and not os.path.exists(path):
            write_durable(path, content)
        self.sizes[sha256] = len(content)
        return {"sha256": sha256, "size": len(content)}

    def delivery(self):
        """Return the difference between the baseline and the workspace that the command left."""
        plan, capture = self.driver.request["workspace"], self.driver.request["capture"]
        path = os.path.join(self.driver.execution.path, "baseline.json")
        with open(path, "rb") as stream:
            content = stream.read()
        staged = self.driver.execution.find("staged")
        if hashlib.sha256(content).hexdigest() != staged["baseline_sha256"]:
            raise Gap("baseline.json differs from what was staged")
        before = json.loads(content.decode("utf-8"))
        after = {path_text(name): node for name, node in self.read(plan["path"]).items()}
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


def excluded(name, prefixes):
    return any(name == prefix or name.startswith(prefix + "/") for prefix in prefixes)


def same_file(old, new):
    """A directory's mode is not part of a delivery; a file's and a link's everything is."""
    if old is None or new is None:
        return old is new
    if old["kind"] == "dir" and new["kind"] == "dir":
        return True
    return old == new


def secret_values(credential):
    """Return the strings to keep out of exports: the credential itself and its JSON leaves."""
    if credential is None:
        return []
    found = [credential.strip()]
    try:
        stack = [json.loads(credential.decode("utf-8"))]
    except ValueError:
        return found
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, str) and len(item) >= 16:
            found.append(item.encode("utf-8"))
    return found
