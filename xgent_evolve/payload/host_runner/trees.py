"""Trees of files: from requests and archives, to archives, and what changes them."""

import hashlib
import io
import os
import tarfile

from durable import CHUNK, path_bytes, path_text
from errors import StepFailed


class Node:
    """One path of a tree: its kind, mode, owner and where its bytes are."""

    __slots__ = ("kind", "mode", "owner", "target", "size", "sha256", "reader")

    def __init__(self, kind, mode, owner, target=None, size=0, sha256=None, reader=None):
        self.kind = kind
        self.mode = mode
        self.owner = owner
        self.target = target
        self.size = size
        self.sha256 = sha256
        self.reader = reader

    def fact(self):
        return {
            "kind": self.kind,
            "mode": self.mode,
            "sha256": self.sha256,
            "size": self.size,
            "target": None if self.target is None else path_text(self.target),
        }


def entry_nodes(entries, root, owner):
    """Return the nodes of a request's entries; every file is read from the verified cache."""
    nodes = {}
    for entry in entries:
        node = Node(entry["kind"], entry["mode"], owner)
        if entry["kind"] == "file":
            node.size, node.sha256 = entry["size"], entry["sha256"]
            node.reader = blob_reader(root, entry["sha256"], entry["size"])
        elif entry["kind"] == "link":
            node.target = path_bytes(entry["target"])
        nodes[path_bytes(entry["path"])] = node
    return nodes


def blob_path(root, sha256):
    return os.path.join(root, "blobs", sha256[:2], sha256[2:])


def blob_reader(root, sha256, size):
    def read():
        path = blob_path(root, sha256)
        try:
            with open(path, "rb") as stream:
                content = stream.read()
        except FileNotFoundError:
            raise StepFailed("stage", "blob_missing", "blob %s is not on the host" % sha256)
        if len(content) != size or hashlib.sha256(content).hexdigest() != sha256:
            os.unlink(path)
            raise StepFailed("stage", "blob_damaged", "blob %s was damaged on the host" % sha256)
        return content

    return read


def tar_nodes(tar_path, strict=True):
    """Return the nodes of an archive that the engine made of one directory.

    The engine's names start with the directory's own name; that part is dropped. Hard links
    become copies. FIFOs and sockets are dropped; devices are refused when `strict`, else dropped.
    """
    nodes = {}
    archive = tarfile.open(tar_path, "r:", errors="surrogateescape", encoding="utf-8")
    for member in archive:
        raw = member.name.encode("utf-8", "surrogateescape").strip(b"/")
        parts = raw.split(b"/")[1:]
        if not parts or b".." in parts:
            continue
        name = b"/".join(parts)
        mode = member.mode & 0o777
        if member.isdir():
            nodes[name] = Node("dir", mode, member.uid)
        elif member.issym():
            target = member.linkname.encode("utf-8", "surrogateescape")
            nodes[name] = Node("link", 0o777, member.uid, target=target)
        elif member.isreg():
            digest, size = hash_member(archive, member)
            reader = member_reader(tar_path, member.offset_data, size)
            nodes[name] = Node("file", mode, member.uid, size=size, sha256=digest, reader=reader)
        elif member.islnk():
            linked = member.linkname.encode("utf-8", "surrogateescape").strip(b"/")
            original = nodes.get(b"/".join(linked.split(b"/")[1:]))
            if original is not None:
                nodes[name] = original
        elif strict and (member.ischr() or member.isblk()):
            raise StepFailed("workspace", "device_file", "%r is a device" % name)
    archive.close()
    return nodes


def hash_member(archive, member):
    digest, size = hashlib.sha256(), 0
    stream = archive.extractfile(member)
    for chunk in iter(lambda: stream.read(CHUNK), b""):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def member_reader(tar_path, offset, size):
    def read():
        with open(tar_path, "rb") as stream:
            stream.seek(offset)
            return stream.read(size)

    return read


def write_tar(stream, prefix, nodes, owner):
    """Write `nodes` below `prefix` as a tar that the engine can unpack."""
    archive = tarfile.open(
        fileobj=stream,
        mode="w|",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    )
    for name in sorted(nodes):
        node = nodes[name]
        path = prefix + b"/" + name if name else prefix
        info = tarfile.TarInfo(path.strip(b"/").decode("utf-8", "surrogateescape"))
        info.mode, info.mtime = node.mode, 0
        info.uid = info.gid = node.owner if owner is None else owner
        content = None
        if node.kind == "dir":
            info.type = tarfile.DIRTYPE
        elif node.kind == "link":
            info.type = tarfile.SYMTYPE
            info.linkname = node.target.decode("utf-8", "surrogateescape")
        else:
            content = node.reader()
            info.size = len(content)
        archive.addfile(info, None if content is None else io.BytesIO(content))
    archive.close()


def with_parents(nodes, owner):
    """Add the directories that the paths need and that nobody listed."""
    complete = dict(nodes)
    for name in nodes:
        parts = name.split(b"/")[:-1]
        for depth in range(1, len(parts) + 1):
            complete.setdefault(b"/".join(parts[:depth]), Node("dir", 0o755, owner))
    return complete


def put_node(nodes, name, node):
    existing = nodes.get(name)
    if existing is not None and existing.kind == "dir" and node.kind == "dir":
        return
    if existing is not None and existing.kind == "dir":
        remove_path(nodes, name)
    nodes[name] = node


def remove_path(nodes, name):
    for other in [key for key in nodes if key == name or key.startswith(name + b"/")]:
        del nodes[other]


def apply_changes(nodes, changes, root, owner):
    """Apply a delivery: removals first, deepest first, then what is new or different."""
    for change in sorted(changes, key=lambda item: item["path"], reverse=True):
        if change["after"] is None:
            remove_path(nodes, path_bytes(change["path"]))
    for change in sorted(changes, key=lambda item: item["path"]):
        if change["after"] is not None:
            entry = dict(change["after"], path=change["path"])
            for name, node in with_parents(entry_nodes([entry], root, owner), owner).items():
                put_node(nodes, name, node)
