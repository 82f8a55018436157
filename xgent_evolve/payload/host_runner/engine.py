"""The few calls of the engine's API that an execution needs, over its Unix socket."""

import base64
import contextlib
import http.client
import json
import os
import select
import shutil
import socket
import time
import urllib.parse

from durable import CHUNK
from errors import EngineAwayError, RunnerError, StepFailedError

END_OF_TAR = 1024
"""A tar ends with that many zero bytes."""
PATIENCE_S = 600
"""How long an engine that does not answer is asked again."""


class EngineConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.socket_path = path

    def connect(self):
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.socket_path)


class Engine:
    """The few calls of the engine's API that an execution needs.

    Paths carry no version, so each engine answers in its own: what is used here has stayed the
    same since 20.10, while old versions are dropped by newer engines.
    """

    def __init__(self, socket_path):
        self.socket_path = socket_path

    @contextlib.contextmanager
    def open(self, method, path, body=None, content_type="application/json", timeout=120):
        """Give the response of one call; EngineAwayError for whatever breaks on the way."""
        connection = EngineConnection(self.socket_path, timeout)
        headers = {"Content-Type": content_type, "Connection": "close"}
        chunked = body is not None and hasattr(body, "read")
        if chunked:
            headers["Transfer-Encoding"] = "chunked"
            body = file_chunks(body)
        try:
            try:
                connection.request(method, path, body, headers, encode_chunked=chunked)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                text = "the engine does not answer at %s: %s" % (self.socket_path, error)
                raise EngineAwayError(text) from error
            yield response
        finally:
            connection.close()

    def call(self, method, path, document=None, timeout=120):
        """Return status and parsed body of one call."""
        body = None if document is None else json.dumps(document).encode("utf-8")
        with self.open(method, path, body, timeout=timeout) as response:
            content = read_body(response)
        try:
            return response.status, json.loads(content.decode("utf-8")) if content else None
        except ValueError:
            return response.status, {"message": content.decode("utf-8", "replace")}

    def get(self, path):
        """Return the document at `path`, or None when there is no such thing."""
        status, document = self.call("GET", path)
        if status == 404:
            return None
        if status != 200:
            raise EngineAwayError("GET %s: %s" % (path, message_of(document)))
        return document

    def inspect(self, reference):
        """Return what the engine says about a container, or None when there is none."""
        return self.get("/containers/%s/json" % quote(reference))

    def volume(self, name):
        """Return what the engine says about a volume, or None when there is none."""
        return self.get("/volumes/" + quote(name))

    def remove_container(self, identity):
        """Remove a container and its anonymous volumes."""
        status, document = self.call(
            "DELETE", "/containers/%s?force=1&v=1" % quote(identity), timeout=300
        )
        if status not in (204, 404):
            raise RunnerError("E_REMOTE_ENGINE", "remove: %s" % message_of(document))

    def remove_volume(self, name):
        """Remove a volume."""
        status, document = self.call("DELETE", "/volumes/" + quote(name), timeout=300)
        if status not in (204, 404):
            raise RunnerError("E_REMOTE_ENGINE", "remove volume: %s" % message_of(document))

    def wait_end(self, container, limit_s, tick):
        """Return when the container may have ended, when `limit_s` is over or `tick` says so.

        `tick` is asked now and then, and returns after how many seconds it wants to be asked
        again; 0 ends the wait. The answer itself is not looked at: for a container that never
        ran it is a success.
        """
        end = time.monotonic() + limit_s
        connection = EngineConnection(self.socket_path, 30)
        try:
            connection.connect()
            connection.putrequest("POST", "/containers/%s/wait" % container)
            connection.putheader("Connection", "close")
            connection.endheaders()
            while time.monotonic() < end:
                pause = tick()
                if not pause:
                    return
                pause = min(pause, max(end - time.monotonic(), 0.0))
                ready, _, _ = select.select([connection.sock], [], [], pause)
                if ready and not connection.sock.recv(CHUNK):
                    return
        except OSError:
            return
        finally:
            connection.close()

    def stat(self, container, path):
        """Return what the engine says of a path in a container, or None when it is absent."""
        with self.open("HEAD", archive_address(container, path)) as response:
            read_body(response)
            found = response.getheader("X-Docker-Container-Path-Stat")
        if response.status == 404:
            return None
        if response.status != 200 or not found:
            raise EngineAwayError("look at %s: status %d" % (path, response.status))
        return json.loads(base64.b64decode(found).decode("utf-8"))

    def resolve(self, container, path):
        """Return the real path in the container of a path that may be a link."""
        found = self.stat(container, path)
        return found and found["linkTarget"] or path

    def put_archive(self, container, path, stream):
        """Unpack the tar in `stream` below `path`."""
        address = archive_address(container, path)
        with self.open("PUT", address, stream, "application/x-tar", timeout=600) as response:
            content = read_body(response)
        if response.status == 404:
            raise EngineAwayError("copy to %s: %s" % (path, content.decode("utf-8", "replace")))
        if response.status != 200:
            text = content.decode("utf-8", "replace").strip()
            raise StepFailedError("stage", "engine_refused", "copy to %s: %s" % (path, text))

    def get_archive(self, container, path, target):
        """Stream the tar of `path` into the binary file `target`; False when it is absent."""
        with self.open("GET", archive_address(container, path), timeout=600) as response:
            if response.status == 404:
                return False
            if response.status != 200:
                raise EngineAwayError("copy from %s: %s" % (path, read_body(response)[:400]))
            target.seek(0)  # an earlier try may have broken off
            target.truncate()
            reader = EngineReader(response)
            shutil.copyfileobj(reader, target, CHUNK)
            require_whole(target)
            return True


class EngineReader:
    """Reads a response; a broken connection is told apart from a full disk on this side."""

    def __init__(self, response):
        self.response = response

    def read(self, size):
        """Read up to `size` bytes."""
        try:
            return self.response.read(size)
        except (OSError, http.client.HTTPException) as error:
            raise EngineAwayError("the engine's answer broke off: %s" % error) from error


def require_whole(archive):
    """Refuse an archive without its end: an engine that fails in the middle just stops."""
    size = archive.seek(0, os.SEEK_END)
    archive.flush()
    end = os.pread(archive.fileno(), END_OF_TAR, size - END_OF_TAR) if size >= END_OF_TAR else b""
    if end != bytes(END_OF_TAR):
        raise EngineAwayError("the engine's archive is cut short")


def read_body(response):
    """Return the whole body of a response."""
    try:
        return response.read()
    except (OSError, http.client.HTTPException) as error:
        raise EngineAwayError("the engine's answer broke off: %s" % error) from error


def patiently(step, patience_s=PATIENCE_S):
    """Return what `step` returns; while the engine is away, ask again for `patience_s`.

    Every step may be repeated: it looks at what is there before it changes anything.
    """
    end = time.monotonic() + patience_s
    pause = 0.1
    while True:
        try:
            return step()
        except EngineAwayError:
            if time.monotonic() > end:
                raise
            time.sleep(pause)
            pause = min(pause * 1.5, 3.0)


def archive_address(container, path):
    """Return the address of a path's archive in a container."""
    return "/containers/%s/archive?%s" % (container, urllib.parse.urlencode({"path": path}))


def quote(text):
    """Return `text` as one part of an address."""
    return urllib.parse.quote(text, safe="")


def message_of(document):
    """Return what the engine says in an error."""
    return document.get("message", document) if isinstance(document, dict) else document


def file_chunks(stream):
    """Return the content of a file as chunks."""
    return iter(lambda: stream.read(CHUNK), b"")
