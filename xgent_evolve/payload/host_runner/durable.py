"""Durable files, canonical JSON, digests and the text form of paths."""

import hashlib
import json
import os
import tempfile

CHUNK = 1 << 20


def sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_durable(path, content, mode=0o600):
    """Write `content` so that `path` is either absent or complete, whatever happens."""
    directory = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".tmp-", dir=directory)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
    sync_directory(directory)


def canonical(document):
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8"
    )


def sha256_file(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def path_text(path):
    escaped = path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
    return "".join(
        "%%%02X" % (ord(char) - 0xDC00) if 0xDC80 <= ord(char) <= 0xDCFF else char
        for char in escaped
    )


def path_bytes(text):
    content = text.encode("utf-8")
    parts = content.split(b"%")
    return parts[0] + b"".join(bytes([int(part[:2], 16)]) + part[2:] for part in parts[1:])
