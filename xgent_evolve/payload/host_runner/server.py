"""Answers the controller's framed requests."""

import hashlib
import json
import os
import shutil
import struct
import threading
import time

import faults
from cancelling import cancel
from cleaning import Cleaning
from credentials import read_credential, require_credential
from durable import CHUNK, sync_directory, write_all, write_durable
from errors import DamagedError, RunnerError, StepFailedError
from faults import around
from probe import probe
from receipts import TERMINAL, Execution
from spawner import Spawner, read_exact
from tailing import tail
from tools import install_tool
from uploads import Uploads

MARKER = b"\n<<xgent-host-runner 1>>\n"
QUIET_S = 1.0
"""A driving process needs a moment to take its lock, so being undriven is news only later."""


class Server:
    """Answers framed requests on stdin and stdout until the controller closes the channel."""

    def __init__(self, root, made_root):
        self.root = root
        self.made_root = made_root
        self.spawner = Spawner(root)
        faults.load(root)
        self.output = os.dup(1)
        os.dup2(2, 1)  # a stray print must not damage the frames
        self.write_lock = threading.Lock()
        self.uploads = Uploads(root)
        self.uploads.sweep()

    def run(self):
        """Answer until the channel ends."""
        write_all(self.output, MARKER)
        while True:
            header = read_exact(0, 8)
            if header is None:
                return
            json_size, body_size = struct.unpack(">II", header)
            content = read_exact(0, json_size)
            body = read_exact(0, body_size) if body_size else b""
            if content is None or body is None:
                return
            request = json.loads(content.decode("utf-8"))
            if request["verb"] == "put":
                self.answer(request, body)
            else:
                threading.Thread(target=self.answer, args=(request, body), daemon=True).start()

    def answer(self, request, body):
        """Carry out one verb; whatever goes wrong is answered, too."""
        try:
            verb = getattr(self, "verb_" + request["verb"])
            result = verb(request, body)
            self.reply({"id": request["id"], "ok": True, "result": result})
        except (RunnerError, StepFailedError) as error:
            code = getattr(error, "code", "E_REMOTE_HOST")
            self.refuse(request, code, str(error), getattr(error, "facts", {}))
        except BrokenPipeError:
            os._exit(0)  # the controller is gone; it asks again over another connection
        except Exception as error:  # noqa: BLE001 - the controller must get some answer
            text = "%s: %s" % (type(error).__name__, error)
            self.refuse(request, "E_REMOTE_RUNNER", text, {})

    def refuse(self, request, code, message, facts):
        """Answer with an error."""
        failure = {"code": code, "message": message, "facts": facts}
        self.reply({"id": request["id"], "ok": False, "error": failure})

    def reply(self, document, body=b""):
        """Send one frame."""
        content = json.dumps(document).encode("utf-8")
        with self.write_lock:
            write_all(self.output, struct.pack(">II", len(content), len(body)) + content + body)

    # -- facts

    def verb_probe(self, request, _body):
        """Say what the host is."""
        return probe(self.root, request)

    def verb_install(self, request, _body):
        """Install or verify a tool."""

        def progress(text):
            self.reply({"id": request["id"], "progress": text})

        return install_tool(self.root, request, progress)

    def verb_forget(self, _request, _body):
        """Undo a first visit: remove the runner and what is empty, and nothing that is in use."""
        for name in ("executions", "blobs", "tools", "images"):
            remove_if_empty(os.path.join(self.root, name))
        if os.listdir(self.root) == ["runner"]:
            shutil.rmtree(os.path.join(self.root, "runner"))
            if self.made_root:
                remove_if_empty(self.root)

    # -- blobs

    def verb_missing(self, request, _body):
        """Say which blobs are not here."""
        return self.uploads.missing(request["blobs"])

    def verb_put(self, request, body):
        """Receive blobs."""
        self.uploads.put(request["blobs"], body)

    # -- executions

    def verb_accept(self, request, _body):
        """Register executions."""
        return {item["uuid"]: self.accept(item) for item in request["executions"]}

    def accept(self, item):
        """Register an execution durably; accepting the same request again changes nothing."""
        content = item["request"].encode("utf-8")
        sha256 = hashlib.sha256(content).hexdigest()
        execution = Execution(self.root, item["uuid"])
        if not execution.receipts():
            os.makedirs(execution.path, mode=0o700, exist_ok=True)
            lock = execution.lock(5)
            if lock is None:
                raise RunnerError("E_REMOTE_BUSY", "%s is being accepted" % item["uuid"])
            try:
                if not execution.receipts():
                    with around("accept.request", execution.uuid):
                        write_durable(os.path.join(execution.path, "request.json"), content)
                    sync_directory(os.path.dirname(execution.path))
                    execution.record("accepted", request_sha256=sha256)
            finally:
                os.close(lock)
        same = execution.receipts()[0]["request_sha256"] == sha256
        return "accepted" if same else "conflict"

    def verb_drive(self, request, body):
        """Start driving what is not driven; the body is the credential, kept in memory only."""
        secrets = {"credential": body} if body else {}
        host_file = request.get("credential_file")
        if host_file:
            secrets["credential"] = read_credential(host_file)
        for content in secrets.values():
            require_credential(content)
        for uuid in request["uuids"]:
            if not Execution(self.root, uuid).driven():
                self.spawner.drive(uuid, secrets if request["with_secret"] else {})

    def verb_cancel(self, request, _body):
        """Cancel executions and return the state of each."""
        socket_path = request["socket"]
        return {uuid: cancel(self.root, uuid, socket_path) for uuid in request["uuids"]}

    def verb_observe(self, request, _body):
        """Answer when something is new for one of the executions, or after `wait_s`.

        With `kinds`, only such receipts and the end of an execution are news.
        """
        started = time.monotonic()
        kinds = request.get("kinds")
        seen = request["seen"].items()
        watched = {uuid: Watched(self.root, uuid, count, kinds) for uuid, count in seen}
        while True:
            waited = time.monotonic() - started
            news = [item.is_news(waited) for item in watched.values()]
            if waited >= request["wait_s"] or any(news):
                return {uuid: item.look() for uuid, item in watched.items()}
            # Often while something has just happened, seldom for what takes long.
            age = min(item.age for item in watched.values()) if watched else 0.0
            time.sleep(min(2.0, max(0.005, age * 0.03), request["wait_s"] - waited))

    def verb_tail(self, request, body):
        """Show what a command has printed so far; the body is its credential, to be kept out."""
        host_file = request.get("credential_file")
        credential = read_credential(host_file) if host_file else body
        return tail(self.root, request["uuid"], request, credential)

    def verb_fetch(self, request, _body):
        """Send exported bytes as chunks, each object once."""
        for uuid, sha256 in request["objects"]:
            path = os.path.join(Execution(self.root, uuid).path, "objects", sha256)
            try:
                stream = open(path, "rb")  # noqa: SIM115 - closed below
            except FileNotFoundError:
                text = "object %s is not there" % sha256
                raise RunnerError("E_STORE_REMOTE_MISSING", text) from None
            with stream:
                chunk = stream.read(CHUNK)
                while True:
                    following = stream.read(CHUNK)
                    header = {"id": request["id"], "sha256": sha256, "last": not following}
                    self.reply(header, chunk)
                    if not following:
                        break
                    chunk = following

    # -- removal

    def verb_cleanup(self, request, _body):
        """Remove what ended executions own; return all of their receipts."""
        cleaning = Cleaning(self.root, request["socket"])
        return {uuid: cleaning.clean(uuid) for uuid in request["uuids"]}

    def verb_residue(self, request, _body):
        """List what carries our label or name."""
        return Cleaning(self.root, request["socket"]).residue()

    def verb_remove(self, request, _body):
        """Remove residue by exact name; return the names of what was removed."""
        return Cleaning(self.root, request["socket"]).remove(request["names"])


class Watched:
    """One execution that an observer waits for; looking costs a stat while nothing happens.

    Now and then it costs an open file and its lock too, to see whether somebody still drives it.
    """

    def __init__(self, root, uuid, seen, kinds):
        self.execution = Execution(root, uuid)
        self.seen = seen
        self.kinds = None if kinds is None else set(kinds).union(TERMINAL)
        self.size = None
        self.asked = 0.0
        self.age = 0.0

    def is_news(self, waited):
        """Say whether an observer must be told."""
        try:
            status = os.stat(self.execution.receipts_path)
        except FileNotFoundError:
            return True
        # Only the pace depends on the wall clock, so one that jumps decides nothing.
        self.age = max(0.0, time.time() - status.st_mtime)
        if status.st_size != self.size:
            self.size = status.st_size
            item = self.look()
            new = {receipt["kind"] for receipt in item["receipts"]}
            news = new if self.kinds is None else new & self.kinds
            return bool(news) or item["state"] in ("absent", "damaged")
        if waited - self.asked < max(QUIET_S, min(10.0, self.age * 0.1)):
            return False
        self.asked = waited
        # A driver that lives appends what it does, and that changes the size.
        if self.execution.driven():
            return False
        item = self.look()
        return not item["driven"] and item["state"] not in TERMINAL

    def look(self):
        """Return the state, whether it is driven, and the receipts that are new."""
        try:
            driven = self.execution.driven()
            receipts = self.execution.receipts()
        except DamagedError as error:
            return {"state": "damaged", "driven": driven, "receipts": [], "detail": str(error)}
        if not receipts:
            return {"state": "absent", "driven": False, "receipts": []}
        # A request to cancel is no state of its own: it changes where the execution goes.
        states = [item["kind"] for item in receipts if item["kind"] != "cancel_requested"]
        return {"state": states[-1], "driven": driven, "receipts": receipts[self.seen :]}


def remove_if_empty(path):
    """Remove a directory that is empty."""
    try:
        if not os.listdir(path):
            os.rmdir(path)
    except FileNotFoundError:
        pass
