"""Answers the controller's framed requests."""

import errno
import hashlib
import json
import os
import shutil
import struct
import tempfile
import threading
import time

from driver import TERMINAL
from durable import CHUNK, sha256_file, sync_directory, write_durable
from engine import Engine, message_of
from errors import Gap, RunnerError, StepFailed
from probe import probe
from receipts import Execution
from spawner import Spawner, read_exact, write_all
from tools import install_tool
from trees import blob_path

MARKER = b"\n<<xgent-host-runner 1>>\n"


class Server:
    """Answers framed requests on stdin and stdout until the controller closes the channel."""

    def __init__(self, root, made_root):
        self.root = root
        self.made_root = made_root
        self.spawner = Spawner(root)
        self.output = os.dup(1)
        os.dup2(2, 1)  # a stray print must not damage the frames
        self.write_lock = threading.Lock()
        self.uploads = {}

    def run(self):
        write_all(self.output, MARKER)
        while True:
            header = read_exact(0, 8)
            if header is None:
                return
            json_size, body_size = struct.unpack(">II", header)
            request = json.loads(read_exact(0, json_size).decode("utf-8"))
            body = read_exact(0, body_size) if body_size else b""
            if request["verb"] == "put":
                self.answer(request, body)
            else:
                threading.Thread(target=self.answer, args=(request, body), daemon=True).start()

    def answer(self, request, body):
        try:
            verb = getattr(self, "verb_" + request["verb"])
            result = verb(request, body)
            self.reply({"id": request["id"], "ok": True, "result": result})
        except (RunnerError, StepFailed) as error:
            code = getattr(error, "code", "E_REMOTE_HOST")
            facts = getattr(error, "facts", {})
            failure = {"code": code, "message": str(error), "facts": facts}
            self.reply({"id": request["id"], "ok": False, "error": failure})
        except Exception as error:
            message = "%s: %s" % (type(error).__name__, error)
            failure = {"code": "E_REMOTE_RUNNER", "message": message, "facts": {}}
            self.reply({"id": request["id"], "ok": False, "error": failure})

    def reply(self, document, body=b""):
        content = json.dumps(document).encode("utf-8")
        with self.write_lock:
            write_all(self.output, struct.pack(">II", len(content), len(body)) + content + body)

    # -- facts

    def verb_probe(self, request, _body):
        return probe(self.root, request)

    def verb_install(self, request, _body):
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
        return [item["sha256"] for item in request["blobs"] if not self.has_blob(item)]

    def has_blob(self, item):
        try:
            return os.stat(blob_path(self.root, item["sha256"])).st_size == item["size"]
        except FileNotFoundError:
            return False

    def verb_put(self, request, body):
        """Receive blobs: several small ones in one frame, or one chunk of a large one."""
        offset = 0
        for item in request["blobs"]:
            content = body[offset : offset + item["length"]]
            offset += item["length"]
            key = item["sha256"]
            stream = self.uploads.get(key)
            if stream is None:
                directory = os.path.join(self.root, "blobs", "incoming")
                os.makedirs(directory, mode=0o700, exist_ok=True)
                stream = self.uploads[key] = tempfile.NamedTemporaryFile(
                    dir=directory, delete=False
                )
            stream.write(content)
            if item["last"]:
                del self.uploads[key]
                self.publish_blob(stream, item)
        return

    def publish_blob(self, stream, item):
        stream.flush()
        os.fsync(stream.fileno())
        stream.close()
        size = os.stat(stream.name).st_size
        if size != item["size"] or sha256_file(stream.name) != item["sha256"]:
            os.unlink(stream.name)
            raise RunnerError("E_STORE_REMOTE_MISMATCH", "blob %s arrived damaged" % item["sha256"])
        final = blob_path(self.root, item["sha256"])
        os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
        os.chmod(stream.name, 0o400)
        os.replace(stream.name, final)
        sync_directory(os.path.dirname(final))

    # -- executions

    def verb_accept(self, request, _body):
        return {item["uuid"]: self.accept(item) for item in request["executions"]}

    def accept(self, item):
        """Register an execution durably; accepting the same request again changes nothing."""
        content = item["request"].encode("utf-8")
        sha256 = hashlib.sha256(content).hexdigest()
        execution = Execution(self.root, item["uuid"])
        if execution.exists():
            same = execution.receipts()[0]["request_sha256"] == sha256
            return "accepted" if same else "conflict"
        os.makedirs(execution.path, mode=0o700, exist_ok=True)
        write_durable(os.path.join(execution.path, "request.json"), content)
        sync_directory(os.path.dirname(execution.path))
        execution.record("accepted", request_sha256=sha256)
        return "accepted"

    def verb_drive(self, request, body):
        """Start driving what is not driven; the body is the credential, kept in memory only."""
        secrets = {"credential": body} if body else {}
        host_file = request.get("credential_file")
        if host_file:
            secrets["credential"] = read_credential(host_file)
        for uuid in request["uuids"]:
            if not Execution(self.root, uuid).driven():
                self.spawner.drive(uuid, secrets if request["with_secret"] else {})
        return

    def verb_observe(self, request, _body):
        """Answer when something is new for one of the executions, or after `wait_s`."""
        started = time.monotonic()
        pause = 0.01
        while True:
            found = {uuid: self.observe(uuid, seen) for uuid, seen in request["seen"].items()}
            waited = time.monotonic() - started
            if waited >= request["wait_s"] or any(
                self.is_news(item, waited) for item in found.values()
            ):
                return found
            time.sleep(pause)
            pause = min(pause * 1.5, 0.2)

    @staticmethod
    def is_news(item, waited):
        """A driving process needs a moment to take its lock, so being undriven is news late."""
        if item["receipts"] or item["state"] in ("absent", "damaged"):
            return True
        return waited > 1.0 and not item["driven"] and item["state"] not in TERMINAL

    def observe(self, uuid, seen):
        execution = Execution(self.root, uuid)
        driven = execution.driven() if os.path.isdir(execution.path) else False
        try:
            receipts = execution.receipts()
        except (Gap, ValueError, KeyError) as error:
            return {"state": "damaged", "driven": driven, "receipts": [], "detail": str(error)}
        if not receipts:
            return {"state": "absent", "driven": False, "receipts": []}
        return {"state": receipts[-1]["kind"], "driven": driven, "receipts": receipts[seen:]}

    def verb_fetch(self, request, _body):
        """Send exported bytes as chunks, each object once."""
        for uuid, sha256 in request["objects"]:
            path = os.path.join(self.root, "executions", uuid, "objects", sha256)
            try:
                stream = open(path, "rb")
            except FileNotFoundError:
                raise RunnerError("E_STORE_REMOTE_MISSING", "object %s is not there" % sha256)
            with stream:
                chunk = stream.read(CHUNK)
                while True:
                    following = stream.read(CHUNK)
                    header = {"id": request["id"], "sha256": sha256, "last": not following}
                    self.reply(header, chunk)
                    if not following:
                        break
                    chunk = following
        return

    def verb_cleanup(self, request, _body):
        return {uuid: self.clean(uuid, request["socket"]) for uuid in request["uuids"]}

    def clean(self, uuid, socket_path):
        """Remove what the receipts own, and nothing else; the receipts stay (V7)."""
        execution = Execution(self.root, uuid)
        lock = execution.lock()
        if lock is None:
            raise RunnerError("E_REMOTE_BUSY", "execution %s is still driven" % uuid)
        try:
            recorded = execution.find("cleaned")
            if recorded:
                return recorded
            if execution.receipts()[-1]["kind"] not in TERMINAL:
                raise RunnerError("E_REMOTE_BUSY", "execution %s has not ended" % uuid)
            removed = self.remove_container(execution, Engine(socket_path))
            for name in ("objects", "secret"):
                shutil.rmtree(os.path.join(execution.path, name), ignore_errors=True)
            for name in os.listdir(execution.path):
                if name not in ("request.json", "receipts.jsonl", "lock", "drive.log"):
                    os.unlink(os.path.join(execution.path, name))
            return execution.record("cleaned", removed=removed)
        finally:
            os.close(lock)

    def remove_container(self, execution, engine):
        removed = []
        found = engine.inspect(execution.name)
        if found is not None:
            labels = found["Config"].get("Labels") or {}
            if labels.get("xgent.execution") != execution.uuid:
                raise RunnerError("E_REMOTE_FOREIGN", "%s is not ours" % execution.name)
            status, document = engine.call(
                "DELETE", "/containers/%s?force=1&v=1" % found["Id"], timeout=300
            )
            if status not in (204, 404):
                raise RunnerError("E_REMOTE_ENGINE", "remove: %s" % message_of(document))
            removed.append(found["Id"])
        status, document = engine.call("GET", "/volumes/" + execution.volume)
        if (
            status == 200
            and (document.get("Labels") or {}).get("xgent.execution") == execution.uuid
        ):
            status, document = engine.call("DELETE", "/volumes/" + execution.volume)
            if status not in (204, 404):
                raise RunnerError("E_REMOTE_ENGINE", "remove volume: %s" % message_of(document))
            removed.append(execution.volume)
        return removed


def remove_if_empty(path):
    try:
        os.rmdir(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def read_credential(path):
    try:
        with open(os.path.expanduser(path), "rb") as stream:
            return stream.read()
    except OSError as error:
        raise RunnerError("E_REMOTE_CREDENTIAL", "%s: %s" % (path, error.strerror), path=path)
