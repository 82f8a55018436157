"""Fills a created container: the workspace, the inputs, the supervisor; starts nothing."""

import hashlib
import os
import tempfile

from durable import canonical, open_durable, path_bytes, path_text, write_durable
from faults import around, supervisor_fault
from handover import CONTROL, TOKEN
from images import ImageTrees
from repository import repository_nodes
from trees import (
    Node,
    apply_changes,
    bytes_node,
    entry_nodes,
    put_node,
    remove_paths,
    tar_nodes,
    with_parents,
    write_tar,
)


class Staging:
    """Puts into one container what its request names."""

    def __init__(self, execution, request, engine, container):
        self.execution = execution
        self.request = request
        self.engine = engine
        self.container = container

    def run(self, handover=None):
        """Fill the container and return what the receipt `staged` says.

        With a handover the container fills itself when it starts, from the archive that lies
        there then.
        """
        plan, uuid = self.request["workspace"], self.execution.uuid
        workspace = self.workspace_nodes()
        baseline = {path_text(name): node.fact() for name, node in workspace.items() if name}
        content = canonical(baseline)
        with around("stage.baseline", uuid):
            write_durable(os.path.join(self.execution.path, "baseline.json"), content)
        if plan.get("repository"):
            # After the baseline: what is Git's own is never part of a delivery.
            key = hashlib.sha256(content).hexdigest()
            workspace.update(repository_nodes(self.execution.root, workspace, key))
        # A path of the image may be a link; the volume lies where it leads.
        path = self.engine.resolve(self.container, plan["path"])
        parts = [
            (path.encode("utf-8"), workspace, plan["owner"]),
            (b"", self.input_nodes(), None),
        ]
        with around("stage.fill", uuid):
            if handover is None:
                self.put(parts)
            else:
                with open_durable(handover.stage, 0o644) as stream:
                    write_tar(stream, parts)
        return {
            "baseline_sha256": hashlib.sha256(content).hexdigest(),
            "workspace_paths": len(baseline),
            "workspace_path": path,
        }

    def put(self, parts):
        """Unpack trees in the container; each is a prefix, its nodes and who owns them."""
        with tempfile.TemporaryFile(dir=self.execution.path) as stream:
            write_tar(stream, parts)
            stream.seek(0)
            self.engine.put_archive(self.container, "/", stream)

    def take_token(self):
        """Take the token that the supervisor must take before the command; then it runs none."""
        name = TOKEN.strip("/").encode("ascii")
        self.put([(b"", {name: bytes_node(b"cancelled\n")}, None)])

    def input_nodes(self):
        """Return the inputs, the control directory and the directories for the command."""
        uid = self.request["user_id"]
        identity = {"uuid": self.execution.uuid, "container": self.container}
        nodes = entry_nodes(self.request["inputs"], self.execution.root, 0)
        nodes[b"xgent/identity"] = bytes_node(canonical(identity) + b"\n")
        fault = supervisor_fault(self.execution.uuid)
        if fault is not None:
            nodes[b"xgent/fault"] = bytes_node(fault)
        nodes = with_parents(nodes, 0)
        nodes[CONTROL.strip("/").encode("ascii")] = Node("dir", 0o755, uid)
        for path in self.request["directories"]:
            nodes[path_bytes(path).strip(b"/")] = Node("dir", 0o755, uid)
        return nodes

    def workspace_nodes(self):
        """Return the working directory as the command finds it."""
        plan, root = self.request["workspace"], self.execution.root
        owner = plan["owner"]
        nodes = {}
        if plan["from_image"]:
            image = ImageTrees(root, self.engine)
            nodes.update(tar_nodes(image.tar(self.request["container"]["Image"], plan["path"])))
        remove_paths(nodes, [path_bytes(path) for path in plan["remove"]])
        overlay = with_parents(entry_nodes(plan["entries"], root, owner or 0), owner or 0)
        for name, node in overlay.items():
            put_node(nodes, name, node)
        apply_changes(nodes, plan["changes"], root, owner or 0)
        for path in plan["ensure"]:
            nodes.setdefault(path_bytes(path), Node("dir", 0o755, owner or 0))
        nodes[b""] = Node("dir", 0o755, owner or 0)
        return nodes
