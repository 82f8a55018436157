"""The few calls of the engine's API that an execution needs, over its Unix socket."""

import http.client
import json
import shutil
import socket
import urllib.parse

from durable import CHUNK
from errors import RunnerError

API = "/v1.41"


class EngineConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.socket_path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.socket_path)


class Engine:
    """The few calls of the engine's API that an execution needs."""

    def __init__(self, socket_path):
        self.socket_path = socket_path

    def open(self, method, path, body=None, content_type="application/json", timeout=120):
        connection = EngineConnection(self.socket_path, timeout)
        headers = {"Content-Type": content_type, "Connection": "close"}
        try:
            if body is not None and hasattr(body, "read"):
                headers["Transfer-Encoding"] = "chunked"
                connection.request(
                    method, API + path, file_chunks(body), headers, encode_chunked=True
                )
            else:
                connection.request(method, API + path, body, headers)
            return connection, connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise RunnerError(
                "E_REMOTE_ENGINE",
                "the engine does not answer at %s: %s" % (self.socket_path, error),
            )

    def call(self, method, path, document=None, timeout=120):
        """Return status and parsed body of one call."""
        body = None if document is None else json.dumps(document).encode("utf-8")
        connection, response = self.open(method, path, body, timeout=timeout)
        try:
            content = response.read()
        finally:
            connection.close()
        try:
            return response.status, json.loads(content.decode("utf-8")) if content else None
        except ValueError:
            return response.status, {"message": content.decode("utf-8", "replace")}

    def inspect(self, reference):
        status, document = self.call("GET", "/containers/%s/json" % quote(reference))
        if status == 404:
            return None
        if status != 200:
            raise RunnerError("E_REMOTE_ENGINE", "inspect: %s" % message_of(document))
        return document

    def put_archive(self, container, path, stream):
        connection, response = self.open(
            "PUT",
            "/containers/%s/archive?%s" % (container, urllib.parse.urlencode({"path": path})),
            stream,
            "application/x-tar",
            timeout=600,
        )
        try:
            content = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RunnerError(
                "E_REMOTE_ENGINE", "copy to %s: %s" % (path, content.decode("utf-8", "replace"))
            )

    def get_archive(self, container, path, target):
        """Stream the tar of `path` into the binary file `target`; False when it is absent."""
        connection, response = self.open(
            "GET",
            "/containers/%s/archive?%s" % (container, urllib.parse.urlencode({"path": path})),
            timeout=600,
        )
        try:
            if response.status == 404:
                response.read()
                return False
            if response.status != 200:
                raise RunnerError(
                    "E_REMOTE_ENGINE", "copy from %s: %s" % (path, response.read()[:400])
                )
            shutil.copyfileobj(response, target, CHUNK)
            return True
        finally:
            connection.close()


def quote(text):
    return urllib.parse.quote(text, safe="")


def message_of(document):
    return document.get("message", document) if isinstance(document, dict) else document


def file_chunks(stream):
    return iter(lambda: stream.read(CHUNK), b"")
