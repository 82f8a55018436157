"""Forks driving processes from a single-threaded child."""

import base64
import json
import os
import signal
import struct
import threading

from driver import drive


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
        encoded = {key: base64.b64encode(value).decode("ascii") for key, value in secrets.items()}
        message = json.dumps({"uuid": uuid, "secrets": encoded}).encode("utf-8")
        with self.lock:
            write_all(self.write_end, struct.pack(">I", len(message)) + message)


def spawner_loop(root, read_end):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.setsid()
    while True:
        header = read_exact(read_end, 4)
        if header is None:
            return
        message = json.loads(read_exact(read_end, struct.unpack(">I", header)[0]).decode("utf-8"))
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


def write_all(descriptor, content):
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def read_exact(descriptor, size):
    content = b""
    while len(content) < size:
        chunk = os.read(descriptor, size - len(content))
        if not chunk:
            return None
        content += chunk
    return content
