"""The engine alone: create, start, wait and remove a container, with no receipt of anything."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=120)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(120)
        self.sock.connect(self._path)


class Engine:
    """One kept connection to the engine's socket."""

    def __init__(self, path: str) -> None:
        """Connect to the socket at `path`."""
        self._connection = _Connection(path)

    def call(self, method: str, path: str, document: object = None) -> tuple[int, Any]:
        """Return status and document of one call."""
        body = None if document is None else json.dumps(document)
        headers = {"Content-Type": "application/json"}
        self._connection.request(method, f"/v1.41{path}", body, headers)
        response = self._connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if content else None

    def run(self, image: str, command: list[str]) -> None:
        """Run one container from beginning to end."""
        body = {"Image": image, "Cmd": command, "HostConfig": {"NetworkMode": "none"}}
        status, made = self.call("POST", "/containers/create", body)
        if status != 201:
            raise SystemExit(f"the engine does not create: {made}")
        self.call("POST", f"/containers/{made['Id']}/start")
        self.call("POST", f"/containers/{made['Id']}/wait")
        self.call("DELETE", f"/containers/{made['Id']}?v=1")
