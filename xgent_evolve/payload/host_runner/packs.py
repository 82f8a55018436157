"""Git's files written from a tree of nodes: one pack with its index, and the index of a checkout.

Git itself takes no part: neither this host nor the image needs it.
"""

import hashlib
import os
import struct
import zlib

from durable import CHUNK

COMMIT, TREE, BLOB = 1, 2, 3
NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
MODES = {"dir": b"40000", "link": b"120000"}
LEVEL = 1
"""The pack is read once or twice, so little time goes into making it small."""


class Pack:
    """A pack that grows by one object after the other; each is stored once."""

    def __init__(self, stream):
        self.stream = stream
        self.objects = {}
        self.stream.write(struct.pack(">4sII", b"PACK", 2, 0))

    def add(self, kind, size, chunks):
        """Add an object of `size` bytes and return its id."""
        digest = hashlib.sha1(NAMES[kind] + b" %d\0" % size)  # noqa: S324 - Git's own choice
        start = self.stream.tell()
        header = entry_header(kind, size)
        crc, packer = zlib.crc32(header), zlib.compressobj(LEVEL)
        self.stream.write(header)
        for chunk in chunks:
            digest.update(chunk)
            crc = self.write(packer.compress(chunk), crc)
        crc = self.write(packer.flush(), crc)
        name = digest.digest()
        if name in self.objects:
            self.stream.seek(start)
            self.stream.truncate()
        else:
            self.objects[name] = (start, crc)
        return name

    def write(self, content, crc):
        """Write a part of an object; return its checksum so far."""
        self.stream.write(content)
        return zlib.crc32(content, crc)

    def finish(self):
        """Write the number of objects and the checksum; return the checksum."""
        self.stream.seek(8)
        self.stream.write(struct.pack(">I", len(self.objects)))
        self.stream.seek(0)
        digest = hashlib.sha1()  # noqa: S324
        for chunk in iter(lambda: self.stream.read(CHUNK), b""):
            digest.update(chunk)
        self.stream.write(digest.digest())
        return digest.digest()

    def index(self, checksum):
        """Return the content of the pack's index (version 2)."""
        names = sorted(self.objects)
        counts = [0] * 256
        for name in names:
            counts[name[0]] += 1
        for number in range(1, 256):
            counts[number] += counts[number - 1]
        large, offsets = [], []
        for name in names:
            start = self.objects[name][0]
            if start >= 1 << 31:
                offsets.append(1 << 31 | len(large))
                large.append(start)
            else:
                offsets.append(start)
        content = b"\377tOc" + struct.pack(">I256I", 2, *counts) + b"".join(names)
        content += b"".join(struct.pack(">I", self.objects[name][1]) for name in names)
        content += b"".join(struct.pack(">I", offset) for offset in offsets)
        content += b"".join(struct.pack(">Q", start) for start in large) + checksum
        return content + hashlib.sha1(content).digest()  # noqa: S324


def entry_header(kind, size):
    """Return how an object of a pack begins: its type and size, seven bits a byte."""
    first, size = kind << 4 | size & 15, size >> 4
    header = bytearray()
    while size:
        header.append(first | 0x80)
        first, size = size & 0x7F, size >> 7
    header.append(first)
    return bytes(header)


def git_mode(node):
    """Return the mode of a file or link as Git writes it."""
    if node.kind == "link":
        return MODES["link"]
    return b"100755" if node.mode & 0o100 else b"100644"


def add_files(pack, nodes):
    """Add every file and link; return mode and object id by path."""
    found = {}
    known = {}
    for name in sorted(nodes):
        node = nodes[name]
        if node.kind == "dir":
            continue
        if node.kind == "link":
            object_id = pack.add(BLOB, len(node.target), [node.target])
        elif node.sha256 in known:
            object_id = known[node.sha256]
        else:
            with node.open() as stream:
                chunks = iter(lambda stream=stream: stream.read(CHUNK), b"")
                object_id = known[node.sha256] = pack.add(BLOB, node.size, chunks)
        found[name] = (git_mode(node), object_id)
    return found


def add_trees(pack, files):
    """Add the trees of these files and return the id of their root."""
    trees = {b"": {}}
    for name, entry in files.items():
        directory, _, last = name.rpartition(b"/")
        trees.setdefault(directory, {})[last] = entry
        while directory:
            above, _, last = directory.rpartition(b"/")
            trees.setdefault(above, {}).setdefault(last, None)
            directory = above
    for directory in sorted(trees, key=lambda name: name.count(b"/") + bool(name), reverse=True):
        content = tree_content(trees[directory])
        object_id = pack.add(TREE, len(content), [content])
        if directory:
            above, _, last = directory.rpartition(b"/")
            trees[above][last] = (MODES["dir"], object_id)
    return object_id


def tree_content(entries):
    """Return a tree object's content; Git sorts a directory as if its name ended in a slash."""
    order = sorted(
        entries.items(), key=lambda item: item[0] + (b"/" if item[1][0] == MODES["dir"] else b"")
    )
    return b"".join(b"%s %s\0%s" % (mode, name, object_id) for name, (mode, object_id) in order)


def checkout_index(nodes, files):
    """Return the index of a checkout in which nothing is changed (version 2).

    Times are left at zero, so Git compares contents when it looks for the first time.
    """
    parts = [struct.pack(">4sII", b"DIRC", 2, len(files))]
    for name in sorted(files):
        mode, object_id = files[name]
        size = len(nodes[name].target) if nodes[name].kind == "link" else nodes[name].size
        head = struct.pack(">6I", 0, 0, 0, 0, 0, 0) + struct.pack(
            ">4I", int(mode, 8), 0, 0, size & 0xFFFFFFFF
        )
        entry = head + object_id + struct.pack(">H", min(len(name), 0xFFF)) + name
        parts.append(entry + b"\0" * (8 - len(entry) % 8))
    content = b"".join(parts)
    return content + hashlib.sha1(content).digest()  # noqa: S324


def write_pack(path, nodes, describe):
    """Write the pack of one commit to `path`; return its parts beside it.

    `describe` makes the commit's content from the id of its tree. Returned are the id of the
    commit, the checksum of the pack, its index, and the index of the checkout.
    """
    with open(path, "w+b") as stream:
        pack = Pack(stream)
        files = add_files(pack, nodes)
        content = describe(add_trees(pack, files))
        commit = pack.add(COMMIT, len(content), [content])
        checksum = pack.finish()
        stream.flush()
        os.fsync(stream.fileno())
    return commit, checksum, pack.index(checksum), checkout_index(nodes, files)
