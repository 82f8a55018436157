"""Durable files, canonical JSON, digests and the text form of paths."""

import contextlib
import hashlib
import json
import os
import tempfile

CHUNK = 1 << 20
TEMPORARY = ".tmp-"
"""How the names of unfinished files begin, so that they are recognised after a crash."""


def sync_directory(path):
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durable(path, content, mode=0o600):
    """Write `content` so that `path` is either absent or complete, whatever happens."""
    with open_durable(path, mode) as stream:
        stream.write(content)


@contextlib.contextmanager
def open_durable(path, mode):
    """Give a stream whose content gets the name `path` when it is complete and durable."""
    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=TEMPORARY, dir=directory)
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            os.fchmod(stream.fileno(), mode)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        remove_if_there(temporary)
        raise
    sync_directory(directory)


def remove_if_there(path):
    """Remove a file that may be gone already."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def remove_leftovers(directory):
    """Remove unfinished files; only for a directory that nobody else writes to now."""
    for name in os.listdir(directory):
        if name.startswith(TEMPORARY):
            remove_if_there(os.path.join(directory, name))


def write_all(descriptor, content):
    """Write every byte."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def canonical(document):
    """Return the one JSON form of a document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8"
    )


def sha256_file(path):
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def path_text(path):
    """Return the text form of a path: UTF-8, with `%` and every other byte escaped."""
    escaped = path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
    return "".join(
        "%%%02X" % (ord(char) - 0xDC00) if 0xDC80 <= ord(char) <= 0xDCFF else char
        for char in escaped
    )


def path_bytes(text):
    """Return the path whose text form is `text`."""
    content = text.encode("utf-8")
    parts = content.split(b"%")
    return parts[0] + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in parts[1:])
