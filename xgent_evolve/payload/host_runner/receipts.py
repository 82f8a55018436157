"""The directory of one execution: its request, its receipts and its lock."""

import fcntl
import hashlib
import json
import os
import time

from durable import canonical, sync_directory
from errors import Gap


class Execution:
    """One execution's directory: its request, its receipts and its lock."""

    def __init__(self, root, uuid):
        self.root = root
        self.uuid = uuid
        self.path = os.path.join(root, "executions", uuid)
        self.name = "xg-" + uuid
        self.volume = "xg-" + uuid + "-work"

    def exists(self):
        return os.path.exists(os.path.join(self.path, "receipts.jsonl"))

    def request(self):
        with open(os.path.join(self.path, "request.json"), "rb") as stream:
            content = stream.read()
        accepted = self.receipts()[0]
        if hashlib.sha256(content).hexdigest() != accepted["request_sha256"]:
            raise Gap("request.json differs from what was accepted")
        return json.loads(content.decode("utf-8"))

    def receipts(self):
        """Return the receipts in order; a torn last line was never durable and is ignored."""
        try:
            with open(os.path.join(self.path, "receipts.jsonl"), "rb") as stream:
                content = stream.read()
        except FileNotFoundError:
            return []
        found, previous = [], ""
        for line in content.split(b"\n")[:-1]:
            receipt = json.loads(line.decode("utf-8"))
            if receipt["seq"] != len(found) or receipt["prev"] != previous:
                raise Gap("receipt %d does not follow the one before it" % len(found))
            previous = hashlib.sha256(line).hexdigest()
            found.append(receipt)
        return found

    def find(self, kind):
        for receipt in self.receipts():
            if receipt["kind"] == kind:
                return receipt
        return None

    def record(self, kind, **facts):
        """Append one receipt; it is durable on return."""
        path = os.path.join(self.path, "receipts.jsonl")
        with open(path, "ab+") as stream:
            stream.seek(0)
            content = stream.read()
            kept = content[: content.rfind(b"\n") + 1]
            if len(kept) != len(content):
                stream.truncate(len(kept))
            lines = kept.split(b"\n")[:-1]
            previous = hashlib.sha256(lines[-1]).hexdigest() if lines else ""
            receipt = dict(facts, seq=len(lines), kind=kind, prev=previous, at_ms=now_ms())
            stream.seek(0, os.SEEK_END)
            stream.write(canonical(receipt) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        if not lines:
            sync_directory(self.path)
        return receipt

    def lock(self):
        """Return an open descriptor that holds the execution's lock, or None when it is held."""
        descriptor = os.open(os.path.join(self.path, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return descriptor

    def driven(self):
        descriptor = self.lock()
        if descriptor is None:
            return True
        os.close(descriptor)
        return False


def now_ms():
    return int(time.time() * 1000)
