"""The directory of one execution: its request, its receipts and its lock."""

import fcntl
import hashlib
import json
import os
import re
import time

from durable import canonical, sync_directory, write_all
from errors import DamagedError, GapError, RunnerError
from faults import RECEIPTS, around

TERMINAL = ("exported", "failed", "gap", "cancelled", "cleaned")
"""The last word about an execution; only `cleaned` may follow one."""

_UUID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]{0,63}\Z")


class Execution:
    """One execution's directory: its request, its receipts and its lock.

    Two locks: `lock` is held by whoever drives or cleans it; the receipts' own lock is held for
    the moment of one append, since a cancellation comes while somebody drives.
    """

    def __init__(self, root, uuid):
        if not _UUID.match(uuid):
            raise RunnerError("E_REMOTE_RUNNER", "%r is not the name of an execution" % uuid)
        self.root = root
        self.uuid = uuid
        self.path = os.path.join(root, "executions", uuid)
        self.receipts_path = os.path.join(self.path, "receipts.jsonl")
        self.name = "xg-" + uuid
        self.volume = "xg-" + uuid + "-work"
        self.read = (None, [])

    def request(self):
        """Return the accepted request; GapError when the file is another one."""
        with open(os.path.join(self.path, "request.json"), "rb") as stream:
            content = stream.read()
        accepted = self.receipts()[0]
        if hashlib.sha256(content).hexdigest() != accepted["request_sha256"]:
            raise GapError("request.json differs from what was accepted")
        return json.loads(content.decode("utf-8"))

    def receipts(self):
        """Return the receipts in order; a torn last line was never durable and is ignored."""
        try:
            with open(self.receipts_path, "rb") as stream:
                status = os.fstat(stream.fileno())
                version = (status.st_ino, status.st_size, status.st_mtime_ns)
                # They are asked for many times between two that are appended.
                if version != self.read[0]:
                    self.read = (version, parse_receipts(stream.read()))
                return list(self.read[1])
        except FileNotFoundError:
            return []

    def find(self, kind):
        """Return the receipt of a kind, or None."""
        return find_kind(self.receipts(), kind)

    def record(self, kind, unless=(), **facts):
        """Append one durable receipt and return it.

        Nothing is appended, and that receipt is returned, when there is one of this kind or of
        the kinds `unless` already.
        """
        with around("receipt." + kind, self.uuid):
            descriptor = os.open(self.receipts_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                return self.append(descriptor, kind, unless, facts)
            finally:
                os.close(descriptor)

    def append(self, descriptor, kind, unless, facts):
        """Append under the receipts' lock."""
        content = read_all(descriptor)
        receipts = parse_receipts(content)
        for other in (kind,) + tuple(unless):
            found = find_kind(receipts, other)
            if found is not None:
                return found
        kept = content[: content.rfind(b"\n") + 1]
        if len(kept) != len(content):
            os.ftruncate(descriptor, len(kept))
        previous = hashlib.sha256(kept.split(b"\n")[-2]).hexdigest() if kept else ""
        receipt = dict(facts, seq=len(receipts), kind=kind, prev=previous, at_ms=now_ms())
        try:
            write_all(descriptor, canonical(receipt) + b"\n")
            os.fsync(descriptor)
        except OSError:
            # A line that may not be durable must not be believed by the next reader.
            os.ftruncate(descriptor, len(kept))
            raise
        if not receipts:
            sync_directory(self.path)
        return receipt

    def lock(self, patience_s=0.5):
        """Return an open descriptor that holds the execution's lock, or None when it is held.

        An observer holds it for a moment, and a driver a little longer than its last receipt.
        """
        path = os.path.join(self.path, "lock")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        end = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() >= end:
                    os.close(descriptor)
                    return None
                time.sleep(0.01)
            else:
                return descriptor

    def driven(self):
        """Say whether a process drives or cleans it now."""
        try:
            descriptor = os.open(os.path.join(self.path, "lock"), os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


def parse_receipts(content):
    """Return the receipts of a file's whole lines; DamagedError when they are not a chain."""
    found, previous = [], ""
    for line in content.split(b"\n")[:-1]:
        try:
            receipt = json.loads(line.decode("utf-8"))
            follows = receipt["seq"] == len(found) and receipt["prev"] == previous
            known = receipt["kind"] in RECEIPTS
        except (ValueError, KeyError, TypeError):
            raise DamagedError("receipt %d cannot be read" % len(found)) from None
        if not follows or not known:
            raise DamagedError("receipt %d does not follow the one before it" % len(found))
        previous = hashlib.sha256(line).hexdigest()
        found.append(receipt)
    return found


def find_kind(receipts, kind):
    """Return the first receipt of a kind, or None."""
    for receipt in receipts:
        if receipt["kind"] == kind:
            return receipt
    return None


def is_ended(receipts):
    """Say whether the last word about an execution was said."""
    return bool(receipts) and receipts[-1]["kind"] in TERMINAL


def read_all(descriptor):
    """Return the whole content of an open file."""
    parts, offset = [], 0
    while True:
        part = os.pread(descriptor, 1 << 20, offset)
        if not part:
            return b"".join(parts)
        parts.append(part)
        offset += len(part)


def now_ms():
    """Return the wall clock; it is shown, and nothing is decided by it."""
    return int(time.time() * 1000)
