"""Shows what a command has printed so far; nothing is changed, and no secret is shown."""

import os
import tarfile
import tempfile

from engine import Engine
from errors import DamagedError, EngineAwayError
from export import CONTROL
from receipts import Execution, find_kind
from redaction import Redactor, secret_values

STREAMS = ("stdout", "stderr")
MOST_BYTES = 1 << 20


def tail(root, uuid, request, credential):
    """Return the end of a stream, and why there is none.

    Without the credential of an execution that has one nothing can be kept out, so nothing of it
    is shown before its export.
    """
    execution = Execution(root, uuid)
    stream = request["stream"] if request["stream"] in STREAMS else STREAMS[0]
    limit = min(max(int(request["limit"]), 0), MOST_BYTES)
    try:
        receipts = execution.receipts()
    except DamagedError:
        receipts = []
    state = receipts[-1]["kind"] if receipts else "absent"
    found = {"state": state, "text": None, "why": "it is %s" % state.replace("_", " ")}
    exported, started = find_kind(receipts, "exported"), find_kind(receipts, "started")
    if exported is not None:
        content = exported_content(execution, exported, stream)
    elif started is None or state in ("failed", "gap", "cancelled", "cleaned"):
        return found
    elif execution.request()["secrets"] and not credential:
        return dict(found, why="its credential is needed to keep it out of what is shown")
    else:
        content = running_content(execution, started["container_id"], stream, request["socket"])
        if content is not None:
            content = Redactor(secret_values(credential or None)).so_far(content)
    if content is None:
        return found
    # Whole characters: the rest of one that is cut at the beginning is dropped by the reader.
    return dict(found, why="", text=content[-limit:].decode("utf-8", "replace") if limit else "")


def exported_content(execution, exported, stream):
    """Return an exported stream; None when it was cleaned away."""
    fact = exported["files"].get(stream)
    try:
        with open(os.path.join(execution.path, "objects", fact["sha256"]), "rb") as source:
            return source.read()
    except (FileNotFoundError, TypeError, KeyError):
        return None


def running_content(execution, container, stream, socket_path):
    """Return what the supervisor has written so far; None when the container does not say."""
    with tempfile.TemporaryFile(dir=execution.root) as archive:
        try:
            path = "%s/%s" % (CONTROL, stream)
            if not Engine(socket_path).get_archive(container, path, archive):
                return None
        except EngineAwayError:
            pass  # a file that grows meanwhile ends the archive early; what has come will do
        archive.seek(0)
        try:
            with tarfile.open(fileobj=archive, mode="r:") as members:
                member = members.next()
                source = None if member is None else members.extractfile(member)
                return None if source is None else source.read()
        except (tarfile.TarError, EOFError):
            return None
