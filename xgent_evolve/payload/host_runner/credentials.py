"""Hands a credential over through a pipe; no regular file of the host ever holds it."""

import errno
import os
import time

from errors import RunnerError
from faults import around

LARGEST_BYTES = 60 * 1024
"""What a pipe takes in one piece, so that a reader gets all of it or nothing."""
READER_COMES_S = 120


class Credential:
    """One execution's credential and its pipe."""

    def __init__(self, execution, value):
        self.execution = execution
        self.value = value
        self.directory = os.path.join(execution.path, "secret")
        self.pipe = os.path.join(self.directory, "credential")

    def make_pipe(self):
        """Make the pipe before the container that mounts it."""
        os.makedirs(self.directory, mode=0o755, exist_ok=True)
        os.chmod(self.directory, 0o755)
        if not os.path.exists(self.pipe):
            os.mkfifo(self.pipe)
        # The container's user reads it; the directory above is closed to others on the host.
        os.chmod(self.pipe, 0o644)

    def mount(self):
        """Return the engine's mount of the pipe's directory."""
        return {
            "Type": "bind",
            "Source": self.directory,
            "Target": "/xgent/secret",
            "ReadOnly": True,
        }

    def feed(self, stop):
        """Write the credential as soon as the supervisor reads, until `stop` is set."""
        if self.value is None:
            return
        end = time.monotonic() + READER_COMES_S
        while not stop.is_set() and time.monotonic() < end:
            try:
                descriptor = os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    return
                stop.wait(0.01)
                continue
            try:
                with around("credential.write", self.execution.uuid):
                    os.write(descriptor, self.value)
            except OSError:  # its reader went away, or it failed: whoever comes next gets it
                stop.wait(0.01)
            else:
                return
            finally:
                os.close(descriptor)

    def remove_pipe(self):
        """Remove the pipe; its directory stays: the engine needs it to read the container."""
        if os.path.exists(self.pipe):
            os.unlink(self.pipe)


def read_credential(path):
    """Return the content of a credential file on the host."""
    try:
        with open(os.path.expanduser(path), "rb") as stream:
            content = stream.read(LARGEST_BYTES + 1)
    except OSError as error:
        text = "%s: %s" % (path, error.strerror)
        raise RunnerError("E_REMOTE_CREDENTIAL", text, path=path) from error
    return content


def require_credential(content):
    """Return a credential that can be handed over; RunnerError when it is too large."""
    if len(content) > LARGEST_BYTES:
        text = "the credential is larger than %d bytes" % LARGEST_BYTES
        raise RunnerError("E_REMOTE_CREDENTIAL", text)
    return content
