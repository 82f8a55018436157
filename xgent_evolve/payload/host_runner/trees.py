"""Trees of files: from requests and archives, to archives, and what changes them.

Files are streamed: a node says how its bytes are opened, and nobody holds a whole file.
"""

import hashlib
import io
import os
import tarfile

from durable import CHUNK, path_bytes, path_text
from errors import StepFailedError


class Node:
    """One path of a tree: its kind, mode, owner and how its bytes are opened."""

    __slots__ = ("kind", "mode", "owner", "target", "size", "sha256", "open")

    def __init__(self, kind, mode, owner, target=None, size=0, sha256=None, opener=None):
        self.kind = kind
        self.mode = mode
        self.owner = owner
        self.target = target
        self.size = size
        self.sha256 = sha256
        self.open = opener

    def fact(self):
        """Return what a delivery compares."""
        return {
            "kind": self.kind,
            "mode": self.mode,
            "sha256": self.sha256,
            "size": self.size,
            "target": None if self.target is None else path_text(self.target),
        }

    def content(self):
        """Return the whole content, for files that are known to be small."""
        with self.open() as stream:
            return stream.read(self.size)


def bytes_node(content, mode=0o644, owner=0):
    """Return the node of a file with that content."""
    return Node("file", mode, owner, size=len(content), opener=lambda: io.BytesIO(content))


def part_node(path, mode):
    """Return the node of a file whose bytes are those of a file of this host."""
    size = os.path.getsize(path)
    return Node("file", mode, 0, size=size, opener=part_opener(path, 0, size))


def entry_nodes(entries, root, owner):
    """Return the nodes of a request's entries; every file is read from the verified cache."""
    nodes = {}
    for entry in entries:
        node = Node(entry["kind"], entry["mode"], owner)
        if entry["kind"] == "file":
            node.size, node.sha256 = entry["size"], entry["sha256"]
            node.open = blob_opener(root, entry["sha256"], entry["size"])
        elif entry["kind"] == "link":
            node.target = path_bytes(entry["target"])
        nodes[path_bytes(entry["path"])] = node
    return nodes


def blob_path(root, sha256):
    """Return where an uploaded blob is kept."""
    return os.path.join(root, "blobs", sha256[:2], sha256[2:])


def blob_opener(root, sha256, size):
    """Return a function that opens a blob; its bytes are checked while they are read."""
    return lambda: BlobReader(blob_path(root, sha256), sha256, size)


class BlobReader:
    """An uploaded blob; reading its last byte fails when it was damaged on the host."""

    def __init__(self, path, sha256, size):
        self.path = path
        self.sha256 = sha256
        self.left = size
        self.digest = hashlib.sha256()
        try:
            self.stream = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        except FileNotFoundError:
            text = "blob %s is not on the host" % sha256
            raise StepFailedError("stage", "blob_missing", text) from None
        self.check(os.fstat(self.stream.fileno()).st_size == size)

    def __enter__(self):
        """Return the reader itself."""
        return self

    def __exit__(self, *_):
        """Close the file."""
        self.stream.close()

    def read(self, size):
        """Read up to `size` bytes."""
        content = self.stream.read(size)
        self.digest.update(content)
        self.left -= len(content)
        if content and self.left == 0:
            self.check(self.digest.hexdigest() == self.sha256)
        return content

    def check(self, good):
        """Remove a damaged blob, so that it is sent again, and fail."""
        if not good:
            self.stream.close()
            os.unlink(self.path)
            text = "blob %s was damaged on the host" % self.sha256
            raise StepFailedError("stage", "blob_damaged", text)


def tar_nodes(tar_path, strict=True):
    """Return the nodes of an archive that the engine made of one directory.

    The engine's names start with the directory's own name; that part is dropped. Hard links
    become copies. FIFOs and sockets are dropped; devices are refused when `strict`, else dropped.
    A name that leads out of the directory, by itself or through a link, is no engine's work.
    """
    nodes = {}
    with tarfile.open(tar_path, "r:", errors="surrogateescape", encoding="utf-8") as archive:
        while True:
            member = archive.next()
            if member is None:
                return nodes
            archive.members.clear()  # it would keep every member of a large tree
            name = member_name(member, nodes)
            if not name:
                continue
            node = member_node(archive, tar_path, member, nodes)
            if node is not None:
                nodes[name] = node
            elif strict and (member.ischr() or member.isblk()):
                raise StepFailedError("workspace", "device_file", "%r is a device" % name)


def member_name(member, nodes):
    """Return a member's name below the archived directory; nothing for the directory itself."""
    raw = member.name.encode("utf-8", "surrogateescape")
    parts = raw.rstrip(b"/").split(b"/")
    name = b"/".join(parts[1:])
    unsafe = raw.startswith(b"/") or any(part in (b"", b"..") for part in parts)
    parent = name.rpartition(b"/")[0]
    while parent and not unsafe:
        unsafe = parent in nodes and nodes[parent].kind != "dir"
        parent = parent.rpartition(b"/")[0]
    if unsafe:
        raise StepFailedError("receive", "unsafe_member", "%r leads out of its directory" % raw)
    return name


def member_node(archive, tar_path, member, nodes):
    """Return the node of one member; None for what cannot be delivered."""
    mode = member.mode & 0o777
    if member.isdir():
        return Node("dir", mode, member.uid)
    if member.issym():
        target = member.linkname.encode("utf-8", "surrogateescape")
        return Node("link", 0o777, member.uid, target=target)
    if member.isreg():
        digest, size = hash_member(archive, member)
        opener = part_opener(tar_path, member.offset_data, size)
        return Node("file", mode, member.uid, size=size, sha256=digest, opener=opener)
    if member.islnk():
        linked = member.linkname.encode("utf-8", "surrogateescape").strip(b"/")
        return nodes.get(b"/".join(linked.split(b"/")[1:]))
    return None


def hash_member(archive, member):
    """Return SHA-256 and size of a member."""
    digest, size = hashlib.sha256(), 0
    stream = archive.extractfile(member)
    for chunk in iter(lambda: stream.read(CHUNK), b""):
        digest.update(chunk)
        size += len(chunk)
    return digest.hexdigest(), size


def part_opener(path, offset, size):
    """Return a function that opens a part of a file, such as a member of an archive."""
    return lambda: PartReader(path, offset, size)


class PartReader:
    """A part of a file, read as if it were a file."""

    def __init__(self, path, offset, size):
        self.stream = open(path, "rb")  # noqa: SIM115 - closed by __exit__
        self.stream.seek(offset)
        self.left = size

    def __enter__(self):
        """Return the reader itself."""
        return self

    def __exit__(self, *_):
        """Close the file."""
        self.stream.close()

    def read(self, size):
        """Read up to `size` bytes of the part."""
        content = self.stream.read(min(size, self.left))
        self.left -= len(content)
        return content


def write_tar(stream, parts):
    """Write trees as one tar that the engine can unpack: of each the prefix, nodes and owner.

    Without an owner every node keeps its own.
    """
    archive = tarfile.open(  # noqa: SIM115 - on a failure nothing of it is used
        fileobj=stream,
        mode="w|",
        format=tarfile.GNU_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    )
    for prefix, nodes, owner in parts:
        for name in sorted(nodes):
            path = prefix + b"/" + name if name else prefix
            add_member(archive, path.strip(b"/"), nodes[name], owner)
            archive.members.clear()
    archive.close()


def add_member(archive, path, node, owner):
    """Add one node to an archive."""
    info = tarfile.TarInfo(path.decode("utf-8", "surrogateescape"))
    info.mode, info.mtime = node.mode, 0
    info.uid = info.gid = node.owner if owner is None else owner
    if node.kind == "file":
        info.size = node.size
        with node.open() as content:
            archive.addfile(info, content)
        return
    info.type = tarfile.DIRTYPE
    if node.kind == "link":
        info.type = tarfile.SYMTYPE
        info.linkname = node.target.decode("utf-8", "surrogateescape")
    archive.addfile(info)


def with_parents(nodes, owner):
    """Add the directories that the paths need and that nobody listed."""
    complete = dict(nodes)
    for name in nodes:
        parent = name.rpartition(b"/")[0]
        while parent and parent not in complete:
            complete[parent] = Node("dir", 0o755, owner)
            parent = parent.rpartition(b"/")[0]
    return complete


def put_node(nodes, name, node):
    """Place one path; a directory that becomes something else takes its content along."""
    existing = nodes.get(name)
    if existing is not None and existing.kind == "dir":
        if node.kind == "dir":
            return
        remove_paths(nodes, [name])
    nodes[name] = node


def remove_paths(nodes, names):
    """Remove paths and everything below them."""
    removed = set(names)
    if not removed:
        return
    for other in [key for key in nodes if is_below(key, removed)]:
        del nodes[other]


def is_below(name, removed):
    """Say whether a path or a directory above it is removed."""
    while name:
        if name in removed:
            return True
        name = name.rpartition(b"/")[0]
    return False


def apply_changes(nodes, changes, root, owner):
    """Apply a delivery: removals first, then what is new or different."""
    gone = [path_bytes(item["path"]) for item in changes if item["after"] is None]
    remove_paths(nodes, gone)
    entries = [dict(item["after"], path=item["path"]) for item in changes if item["after"]]
    overlay = with_parents(entry_nodes(entries, root, owner), owner)
    for name in sorted(overlay):
        put_node(nodes, name, overlay[name])
