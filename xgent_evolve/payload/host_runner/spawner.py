"""Forks driving processes from a single-threaded child."""

import base64
import json
import os
import signal
import struct
import threading

from driver import drive
from durable import write_all


class Spawner:
    """A single-threaded child that forks driving processes.

    Forking from the threaded server could copy a held lock; starting a new interpreter for each
    execution would cost more than the container.
    """

    def __init__(self, root):
        read_end, self.write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(self.write_end)
            try:
                spawner_loop(root, read_end)
            finally:
                os._exit(0)
        os.close(read_end)
        self.lock = threading.Lock()

    def drive(self, uuid, secrets):
        """Drive an execution in a process of its own."""
        encoded = {key: base64.b64encode(value).decode("ascii") for key, value in secrets.items()}
        message = json.dumps({"uuid": uuid, "secrets": encoded}).encode("utf-8")
        with self.lock:
            try:
                write_all(self.write_end, struct.pack(">I", len(message)) + message)
            except BrokenPipeError:
                # Without its child this server is of no use; the controller starts another.
                os._exit(70)


def spawner_loop(root, read_end):
    """Fork for every message; a child of its own session holds nothing of the connection."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them: no zombies
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
    os.setsid()
    while True:
        header = read_exact(read_end, 4)
        content = None if header is None else read_exact(read_end, struct.unpack(">I", header)[0])
        if content is None:
            return
        message = json.loads(content.decode("utf-8"))
        secrets = {key: base64.b64decode(value) for key, value in message["secrets"].items()}
        if os.fork() == 0:
            os.close(read_end)
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            code = 1
            try:
                drive(root, message["uuid"], secrets)
                code = 0
            finally:
                os._exit(code)


def read_exact(descriptor, size):
    """Return exactly `size` bytes, or None when the other side ended."""
    parts, left = [], size
    while left:
        chunk = os.read(descriptor, min(left, 1 << 20))
        if not chunk:
            return None
        parts.append(chunk)
        left -= len(chunk)
    return b"".join(parts)
