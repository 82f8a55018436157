"""A model that plays back a list of tool calls, whatever it is told, and keeps what it was sent."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

type Item = dict[str, Any]

SAYS = "SESSIONCANARY-9c1f"
"""Part of every answer, so that it is in the session's records and nowhere else."""


def shell(command: str, **arguments: Any) -> Item:
    """Return the call of the direct shell tool."""
    text = json.dumps({"cmd": command, "yield_time_ms": 29_000, **arguments})
    return {"type": "function_call", "name": "exec_command", "arguments": text}


def script(code: str) -> Item:
    """Return a call in code mode."""
    return {"type": "custom_tool_call", "name": "exec", "input": code}


class Attacker:
    """Serves the Responses API on loopback; one step for each output that it has been sent."""

    def __init__(self, steps: list[Item]) -> None:
        self.steps = steps
        self.bodies: list[str] = []
        self.lock = threading.Lock()
        attacker = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.reply(b'{"data": [], "models": []}', "application/json")

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                with attacker.lock:
                    attacker.bodies.append(body)
                self.reply(attacker.answer(json.loads(body)), "text/event-stream")

            def reply(self, content: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,))

    @property
    def port(self) -> int:
        return self.server.server_port

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer(self, request: Item) -> bytes:
        done = sum(item.get("type", "").endswith("_output") for item in request["input"])
        text = {"type": "output_text", "text": f"{SAYS} step {done}"}
        items: list[Item] = [{"type": "message", "role": "assistant", "content": [text]}]
        if done < len(self.steps):
            items.append({**self.steps[done], "call_id": f"call_{done}"})
        usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
        events = [{"type": "response.created", "response": {"id": f"r{done}"}}]
        events += [{"type": "response.output_item.done", "item": item} for item in items]
        events.append({"type": "response.completed", "response": {"id": "r", "usage": usage}})
        lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]
        return "".join(lines).encode()

    def outputs(self) -> dict[str, str]:
        """Return what the model was told of each call's result."""
        found: dict[str, str] = {}
        for body in self.bodies:
            for item in json.loads(body)["input"]:
                if item.get("type", "").endswith("_output"):
                    found[item["call_id"]] = json.dumps(item["output"])
        return found
