"""Receives blobs: nothing has a blob's name before its bytes were verified."""

import fcntl
import os
import tempfile
import time

from durable import remove_if_there, sha256_file, sync_directory, write_all
from errors import RunnerError
from faults import around
from trees import blob_path

FORGOTTEN_S = 3600
"""Age at which an upload that nobody continues is removed."""


class Uploads:
    """The blobs that are being received over one connection."""

    def __init__(self, root):
        self.root = root
        self.directory = os.path.join(root, "blobs", "incoming")
        self.open = {}

    def sweep(self):
        """Remove what an interrupted upload left, unless somebody still writes it."""
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return
        for name in names:
            path = os.path.join(self.directory, name)
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - os.fstat(descriptor).st_mtime > FORGOTTEN_S:
                    remove_if_there(path)
            except BlockingIOError:
                pass
            finally:
                os.close(descriptor)

    def missing(self, blobs):
        """Return the hashes of those that are not here."""
        return [item["sha256"] for item in blobs if not self.has(item)]

    def has(self, item):
        """Say whether a blob is here, by name and size."""
        try:
            return os.stat(blob_path(self.root, item["sha256"])).st_size == item["size"]
        except FileNotFoundError:
            return False

    def put(self, blobs, body):
        """Take one frame: several small blobs, or one part of a large one.

        With an `offset`, two requests may send the same blob at once: each part has its place.
        Without it, a blob's parts come in order.
        """
        start = 0
        for item in blobs:
            content = body[start : start + item["length"]]
            start += item["length"]
            if not self.has(item):
                self.take(item, content)

    def take(self, item, content):
        """Write one part; the last one gives the blob its name."""
        key = item["sha256"]
        if key not in self.open:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            descriptor, path = tempfile.mkstemp(dir=self.directory)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.open[key] = (descriptor, path)
        descriptor, path = self.open[key]
        try:
            with around("put.write"):
                if "offset" in item:
                    os.lseek(descriptor, item["offset"], os.SEEK_SET)
                write_all(descriptor, content)
            if item["last"]:
                with around("put.publish"):
                    self.publish(item, descriptor, path)
        except BaseException:
            self.drop(key)
            remove_if_there(path)
            raise
        if item["last"]:
            self.drop(key)

    def drop(self, key):
        """Forget an upload."""
        descriptor, _ = self.open.pop(key)
        os.close(descriptor)

    def publish(self, item, descriptor, path):
        """Verify what was received and give it its name."""
        key = item["sha256"]
        os.fsync(descriptor)
        if os.fstat(descriptor).st_size != item["size"] or sha256_file(path) != key:
            raise RunnerError("E_STORE_REMOTE_MISMATCH", "blob %s arrived damaged" % key)
        final = blob_path(self.root, key)
        os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
        os.chmod(path, 0o400)
        os.replace(path, final)
        sync_directory(os.path.dirname(final))
