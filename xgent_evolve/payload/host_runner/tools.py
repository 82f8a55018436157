"""Installs and verifies the agent program from its npm platform package."""

import errno
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import stat
import tarfile
import tempfile
import zlib

from durable import CHUNK, canonical, sync_directory, write_durable
from errors import RunnerError
from registry import download, package_metadata

MOST_FILES = 10000
MOST_BYTES = 4 << 30
"""What an unpacked package may hold at most."""
DIRECTORY_MODE = 0o755
NAMED_DIFFERENCES = 5
BROKEN = (
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    ValueError,
    FileExistsError,
    NotADirectoryError,
    IsADirectoryError,
)
"""What unpacking raises when the archive is at fault, and not the disk."""


def install_tool(root, request, progress):
    """Install or verify a tool from an npm platform package; return its manifest digest.

    The package is checked against the SHA-512 of the request and of the registry's metadata,
    unpacked member by member (regular files only), and every byte, mode and name is checked again
    on each reuse. Two installs at once are one: the second waits, and verifies.
    """
    directory = os.path.join(root, "tools", request["name"])
    os.makedirs(os.path.dirname(directory), mode=0o755, exist_ok=True)
    with open(directory + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.lexists(directory):
            fetch_tool(directory, request, progress)
        progress("checking %s" % request["name"])
        return verify_tool(directory, request.get("manifest_sha256"))


def fetch_tool(directory, request, progress):
    """Download, check and unpack a tool, and give it its name when all is done."""
    parent, prefix = os.path.dirname(directory), ".new-%s-" % request["name"]
    for name in os.listdir(parent):
        if name.startswith(prefix):  # left by a crash; this tool's lock is held
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    progress("reading metadata of %s %s" % (request["package"], request["version"]))
    address = package_metadata(request)
    staging = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        archive = os.path.join(staging, "package.tgz")
        download(address, archive, request["integrity"], progress)
        progress("unpacking %s" % request["name"])
        tree = os.path.join(staging, "tree")
        unpack(archive, tree, request["member_prefix"])
        os.unlink(archive)
        content = canonical(tool_manifest(tree))
        write_durable(os.path.join(staging, "manifest.json"), content, 0o644)
        for below, _directories, _names in os.walk(tree):
            sync_directory(below)
        os.chmod(staging, DIRECTORY_MODE)
        os.rename(staging, directory)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = "no space for %s" % request["name"]
            raise RunnerError("E_REMOTE_DISK", text, path=parent) from error
        raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    sync_directory(parent)


def unpack(archive_path, tree, prefix):
    """Unpack the regular files below `prefix`.

    A member that is not a regular file below package/, or that could leave the tree, is refused,
    wherever it lies: a published package holds none.
    """
    os.makedirs(tree, mode=DIRECTORY_MODE)
    seen, total = set(), 0
    try:
        with tarfile.open(archive_path, "r:gz") as archive:
            for member in archive:
                total += member.size
                require_safe(member, seen, total)
                if member.name.startswith(prefix + "/"):
                    target = os.path.join(tree, member.name[len(prefix) + 1 :])
                    place(archive.extractfile(member), target, bool(member.mode & 0o111))
    except BROKEN as error:
        raise unsafe("the package cannot be unpacked: %s" % error) from error
    if not os.listdir(tree):
        raise unsafe("the package has no file below %s" % prefix)


def require_safe(member, seen, total):
    """Refuse a member that is anything but one more regular file below package/."""
    parts = member.name.split("/")
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise unsafe("member %r is not a regular file" % member.name)
    if parts[0] != "package" or len(parts) < 2 or set(parts) & {"", ".", ".."}:
        raise unsafe("member %r does not lie below package/" % member.name)
    if "\\" in member.name or "\0" in member.name:
        raise unsafe("member %r has no portable name" % member.name)
    if member.name in seen:
        raise unsafe("member %r comes twice" % member.name)
    seen.add(member.name)
    if len(seen) > MOST_FILES or total > MOST_BYTES:
        raise unsafe("the package is larger than %d files or %d bytes" % (MOST_FILES, MOST_BYTES))


def place(source, target, executable):
    """Write one file durably; what is there already is never written over."""
    os.makedirs(os.path.dirname(target), mode=DIRECTORY_MODE, exist_ok=True)
    with open(target, "xb") as stream:
        shutil.copyfileobj(source, stream, CHUNK)
        os.fchmod(stream.fileno(), 0o555 if executable else 0o444)
        stream.flush()
        os.fsync(stream.fileno())


def unsafe(text):
    """Return the error for a package that must not be unpacked."""
    return RunnerError("E_REMOTE_TOOL_UNSAFE", text)


def tool_manifest(tree):
    """Return mode, size and hash of every file of a tree; nothing else may lie there."""
    files, waiting = {}, [""]
    while waiting:
        below = waiting.pop()
        directory = os.path.join(tree, below)
        require_directory(directory)
        for name in os.listdir(directory):
            path = os.path.join(below, name)
            status = os.lstat(os.path.join(tree, path))
            if stat.S_ISDIR(status.st_mode):
                waiting.append(path)
            elif stat.S_ISREG(status.st_mode):
                files[path] = file_fact(os.path.join(tree, path))
            else:
                kind = "a link" if stat.S_ISLNK(status.st_mode) else "no regular file"
                raise tampered(tree, "%s is %s" % (path, kind))
    return files


def require_directory(path):
    """Refuse a directory that was replaced, or opened to others."""
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise tampered(path, "it is not a directory")
    if stat.S_IMODE(status.st_mode) != DIRECTORY_MODE:
        raise tampered(path, "its mode is %o" % stat.S_IMODE(status.st_mode))


def file_fact(path):
    """Return what a manifest says about a file, read without following a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as stream:
        status, digest = os.fstat(descriptor), hashlib.sha256()
        for chunk in iter(lambda: stream.read(CHUNK), b""):
            digest.update(chunk)
    return {
        "mode": stat.S_IMODE(status.st_mode),
        "sha256": digest.hexdigest(),
        "size": status.st_size,
    }


def verify_tool(directory, pinned=None):
    """Compare a tool with its manifest, byte for byte, and return the manifest's digests.

    `pinned` is what the manifest of the published package hashes to, where that is known: it tells
    an install whose manifest was changed along with it.
    """
    try:
        require_directory(directory)
        extra = sorted(set(os.listdir(directory)) - {"manifest.json", "tree"})
        if extra:
            raise tampered(directory, "extra: %s" % ", ".join(extra[:NAMED_DIFFERENCES]))
        content = read_manifest(os.path.join(directory, "manifest.json"))
        expected = json.loads(content.decode("utf-8"))
        found = tool_manifest(os.path.join(directory, "tree"))
    except (OSError, ValueError) as error:
        raise tampered(directory, str(error)) from error
    if found != expected:
        raise tampered(directory, differences(expected, found))
    digest = hashlib.sha256(content).hexdigest()
    if pinned is not None and digest != pinned:
        raise tampered(directory, "its manifest is not the published package's")
    return {
        "manifest_sha256": digest,
        "files": {name: item["sha256"] for name, item in expected.items()},
    }


def read_manifest(path):
    """Return the manifest's bytes; a link is not followed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as stream:
        return stream.read()


def differences(expected, found):
    """Return in words how a tree differs from its manifest."""
    words = ["missing: " + name for name in sorted(set(expected) - set(found))]
    words += ["extra: " + name for name in sorted(set(found) - set(expected))]
    for name in sorted(set(found) & set(expected)):
        old, new = expected[name], found[name]
        if old["sha256"] != new["sha256"]:
            words.append("other bytes: " + name)
        elif old != new:
            words.append("mode %o, not %o: %s" % (new["mode"], old["mode"], name))
    more = len(words) - NAMED_DIFFERENCES
    return ", ".join(words[:NAMED_DIFFERENCES]) + (" and %d more" % more if more > 0 else "")


def tampered(path, text):
    """Return the error for an install that is not what was installed."""
    return RunnerError(
        "E_REMOTE_TOOL_TAMPERED",
        "an installed tool was changed",
        path=path,
        expected="exactly what its manifest names",
        found=text,
    )
