"""A scripted model: the Responses API on loopback, spoken by junior colleagues.

It stands in for a paid model where the point is everything around the model. It keeps no state
between requests (the same request always gets the same answer, also after a restart), so a run
that was interrupted and resumed can be compared with one that was not. Token counts depend on
the number of input items and the length of the texts only, never on times, ids or dates.

As a program, `python -m xgent_evolve.demo.model --port P --key-env NAME --delay-s D` prints one
JSON line with its base_url when it is ready and serves until it is terminated.
"""

from __future__ import annotations

import argparse
import hmac
import json
import os
import signal
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Final, Self, override

from pydantic import ValidationError

from xgent_evolve.demo.conversation import Conversation, Request, read_conversation
from xgent_evolve.demo.junior import Finish, Run, known_texts, next_move
from xgent_evolve.demo.proposer import is_brief, next_proposal_move

_HOST: Final = "127.0.0.1"
_MAX_BODY_BYTES: Final = 64 * 1024 * 1024
# Below the 30 s after which Codex hands a half-finished command back to the model.
_YIELD_MS: Final = 25_000


class ScriptedModel:
    """A model endpoint that lives as long as the `with` block.

    `base_url` is what goes into `runtime.base_url`. Without `key` every request is accepted.
    """

    def __init__(
        self,
        port: int = 0,
        key: str | None = None,
        delay_s: float = 0.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Bind the port (0 picks a free one); serving starts with the `with` block.

        `delay_s` is slept before every answer, so that a test can interrupt a run under way. With
        `tls` the address is https.

        Raises:
            OSError: the port is taken.

        """
        self._key = key
        self._delay_s = delay_s
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._requests: Counter[str] = Counter()
        self._refused = 0
        self._server = _Server((_HOST, port), self)
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            # The handshake belongs to the thread of its connection, so that none waits for another.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="scripted-model", daemon=True
        )

    @property
    def port(self) -> int:
        """The port that is served."""
        return self._server.server_port

    @property
    def base_url(self) -> str:
        """Address of the API, without a trailing slash."""
        return f"{self._scheme}://{_HOST}:{self.port}/v1"

    @property
    def requests_by_thread(self) -> Mapping[str, int]:
        """How many requests each Codex thread has made so far."""
        with self._lock:
            return dict(self._requests)

    @property
    def refused(self) -> int:
        """How many requests came without the right key."""
        with self._lock:
            return self._refused

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop to serve; requests that wait for the delay are dropped."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def change_key(self, key: str) -> None:
        """Expect another key from now on, as a service does when one is revoked."""
        self._key = key

    def admits(self, authorization: str) -> bool:
        """Return whether the bearer key is the expected one; remember it when not."""
        if self._key is None or hmac.compare_digest(
            authorization.encode(), f"Bearer {self._key}".encode()
        ):
            return True
        with self._lock:
            self._refused += 1
        return False

    def count(self, thread_id: str) -> None:
        """Remember one request of a thread."""
        with self._lock:
            self._requests[thread_id] += 1

    def wait_delay(self) -> bool:
        """Sleep for the configured delay; False when the model closed meanwhile."""
        return not self._closing.wait(self._delay_s) if self._delay_s > 0 else True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        self.model = model
        super().__init__(address, _Handler)

    @override
    def handle_error(self, request: object, client_address: object) -> None:
        # A killed Codex drops its connection; that is no event of the model's life.
        if not isinstance(sys.exception(), (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)  # pyright: ignore[reportArgumentType]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server  # pyright: ignore[reportIncompatibleVariableOverride]

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay silent; the run's own records tell what happened."""

    def do_GET(self) -> None:
        """Answer the catalogue of models: Codex has its own."""
        if self._admitted():
            self._send(200, "application/json", b'{"data": [], "models": []}')

    def do_POST(self) -> None:
        """Answer `POST …/responses` with a stream of events."""
        body = self.rfile.read(min(int(self.headers.get("content-length", "0")), _MAX_BODY_BYTES))
        if not self._admitted():
            return
        if not self.path.partition("?")[0].endswith("/responses"):
            self._refuse(404, "not_found", f"no such endpoint: {self.path}")
            return
        try:
            request = Request.model_validate_json(body)
        except ValidationError as error:
            self._refuse(400, "invalid_request", f"{error.error_count()} faults in the request")
            return
        thread_id = self.headers.get("thread-id") or request.prompt_cache_key
        self.server.model.count(thread_id)
        if self.server.model.wait_delay():
            self._send(200, "text/event-stream", answer(request, thread_id))
        else:
            self.close_connection = True

    def _admitted(self) -> bool:
        if self.server.model.admits(self.headers.get("authorization", "")):
            return True
        self._refuse(401, "invalid_api_key", "The key is not the one this model expects.")
        return False

    def _refuse(self, status: int, code: str, message: str) -> None:
        error = {"error": {"type": "invalid_request_error", "code": code, "message": message}}
        self._send(status, "application/json", json.dumps(error).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def answer(request: Request, thread_id: str = "") -> bytes:
    """Return the event stream that answers `request`. Pure."""
    talk = read_conversation(request)
    move = next_proposal_move(talk) if is_brief(talk.prompt) else next_move(talk)
    number = len(talk.steps)
    response_id = f"resp_{thread_id or 'local'}_{number}"
    items = [_message(move.say)]
    if isinstance(move, Run):
        items.append(_call(move.command, f"call_{number}", code_mode=talk.code_mode))
    events = [_event("response.created", response={"id": response_id})]
    for index, item in enumerate(items):
        events.append(_event("response.output_item.done", output_index=index, item=item))
    done = {"id": response_id, "usage": usage(talk, move)}
    events.append(_event("response.completed", response=done))
    return "".join(events).encode()


def usage(talk: Conversation, move: Run | Finish) -> dict[str, object]:
    """Return the token counts of one answer."""
    texts = len(talk.prompt) + sum(len(text) for text in known_texts(talk))
    put_in = 400 + 40 * talk.items + texts // 4
    put_out = 24 + (move.effort // 4 if isinstance(move, Run) else 0)
    return {
        "input_tokens": put_in,
        "input_tokens_details": {"cached_tokens": 256 if talk.steps else 0},
        "output_tokens": put_out,
        "output_tokens_details": {"reasoning_tokens": 8},
        "total_tokens": put_in + put_out,
    }


def _event(kind: str, **fields: object) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def _message(text: str) -> dict[str, object]:
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "role": "assistant", "content": content}


def _call(command: str, call_id: str, *, code_mode: bool) -> dict[str, object]:
    arguments = json.dumps({"cmd": command, "yield_time_ms": _YIELD_MS})
    if code_mode:
        script = f"const r = await tools.exec_command({arguments}); text(r.output)"
        return {"type": "custom_tool_call", "name": "exec", "call_id": call_id, "input": script}
    return {
        "type": "function_call",
        "name": "exec_command",
        "call_id": call_id,
        "arguments": arguments,
    }


def main(arguments: list[str] | None = None) -> int:
    """Serve until terminated."""
    parser = argparse.ArgumentParser(prog="python -m xgent_evolve.demo.model")
    parser.add_argument("--port", type=int, default=0, help="port to serve; 0 picks a free one")
    parser.add_argument("--key-env", help="variable that holds the expected key; none: any key")
    parser.add_argument("--delay-s", type=float, default=0.0, help="wait before every answer")
    options = parser.parse_args(arguments)
    key: str | None = os.environ.get(options.key_env) if options.key_env else None
    if options.key_env and not key:
        parser.error(f"the variable {options.key_env} is not set")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    with ScriptedModel(options.port, key, options.delay_s) as model:
        sys.stdout.write(json.dumps({"base_url": model.base_url}) + "\n")
        sys.stdout.flush()
        stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
