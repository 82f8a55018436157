"""Installs and verifies the agent program from its npm platform package."""

import base64
import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request

from durable import CHUNK, canonical, sha256_file, sync_directory, write_durable
from errors import RunnerError


def install_tool(root, request, progress):
    """Install or verify a tool from an npm platform package; return its manifest digest.

    The package is checked against the SHA-512 of the request and of the registry's metadata,
    unpacked member by member (regular files and directories only), and every byte and mode is
    checked again on each reuse.
    """
    directory = os.path.join(root, "tools", request["name"])
    os.makedirs(os.path.dirname(directory), mode=0o755, exist_ok=True)
    with open(directory + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.isdir(directory):
            progress("checking %s" % request["name"])
            return verify_tool(directory)
        return fetch_tool(directory, request, progress)


def fetch_tool(directory, request, progress):
    """Download, check and unpack a tool, and give it its name when all is done."""
    registry = (request["registry"] or npm_registry()).rstrip("/")
    address = "%s/%s/%s" % (registry, request["package"].replace("/", "%2f"), request["version"])
    progress("reading metadata of %s %s" % (request["package"], request["version"]))
    with fetch(address) as response:
        metadata = json.loads(response.read(CHUNK * 8).decode("utf-8"))
    distribution = metadata.get("dist") or {}
    if distribution.get("integrity") != request["integrity"]:
        raise RunnerError(
            "E_REMOTE_TOOL_INTEGRITY",
            "the registry announces another content for %s" % request["version"],
            expected=request["integrity"],
            found=str(distribution.get("integrity")),
        )
    parent, prefix = os.path.dirname(directory), ".new-%s-" % request["name"]
    for name in os.listdir(parent):
        if name.startswith(prefix):  # left by a crash; this tool's lock is held
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    staging = tempfile.mkdtemp(prefix=prefix, dir=parent)
    try:
        archive = os.path.join(staging, "package.tgz")
        download(distribution["tarball"], archive, request["integrity"], progress)
        progress("unpacking %s" % request["name"])
        tree = os.path.join(staging, "tree")
        unpack(archive, tree, request["member_prefix"])
        os.unlink(archive)
        write_durable(os.path.join(staging, "manifest.json"), canonical(tool_manifest(tree)), 0o644)
        os.chmod(staging, 0o755)
        os.rename(staging, directory)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    sync_directory(os.path.dirname(directory))
    return verify_tool(directory)


def npm_registry():
    """Return the registry of the host's npm configuration."""
    configured = os.environ.get("NPM_CONFIG_REGISTRY") or os.environ.get(
        "npm_config_registry"  # noqa: SIM112 - npm reads this spelling, too
    )
    if configured:
        return configured
    npm = shutil.which("npm", path=os.environ.get("PATH", "") + ":/usr/local/bin:/usr/bin")
    if npm:
        done = subprocess.run(
            [npm, "config", "get", "registry"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        found = done.stdout.decode("utf-8", "replace").strip()
        if found.startswith("http"):
            return found
    for path in ("~/.npmrc", "/etc/npmrc"):
        try:
            with open(os.path.expanduser(path)) as stream:
                lines = stream.read().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, value = line.partition("=")
            if key.strip() == "registry":
                return value.strip()
    raise RunnerError("E_REMOTE_TOOL_REGISTRY", "no npm registry is configured on the host")


def fetch(address):
    """Return the open response of an address."""
    try:
        return urllib.request.urlopen(address, timeout=120)
    except (urllib.error.URLError, OSError) as error:
        raise RunnerError(
            "E_REMOTE_TOOL_DOWNLOAD", "%s: %s" % (address.split("?")[0], error)
        ) from error


def download(address, target, integrity, progress):
    """Download a package and check its SHA-512."""
    digest, size, shown = hashlib.sha512(), 0, 0
    with fetch(address) as response, open(target, "wb") as stream:
        for chunk in iter(lambda: response.read(CHUNK), b""):
            digest.update(chunk)
            stream.write(chunk)
            size += len(chunk)
            if size - shown >= 32 * CHUNK:
                shown = size
                progress("downloaded %d MB" % (size // 1000000))
    found = "sha512-" + base64.b64encode(digest.digest()).decode("ascii")
    if found != integrity:
        raise RunnerError(
            "E_REMOTE_TOOL_INTEGRITY", "the download is damaged", expected=integrity, found=found
        )


def unpack(archive_path, tree, prefix):
    """Unpack regular files below `prefix`; anything that could leave the tree is refused."""
    os.makedirs(tree, mode=0o755)
    with tarfile.open(archive_path, "r:gz") as archive:
        for member in archive:
            parts = member.name.split("/")
            if (
                member.name.startswith("/")
                or ".." in parts
                or not (member.isreg() or member.isdir())
            ):
                raise RunnerError("E_REMOTE_TOOL_UNSAFE", "unsafe member %r" % member.name)
            if not member.isreg() or not member.name.startswith(prefix + "/"):
                continue
            target = os.path.join(tree, member.name[len(prefix) + 1 :])
            os.makedirs(os.path.dirname(target), mode=0o755, exist_ok=True)
            with open(target, "xb") as stream:
                shutil.copyfileobj(archive.extractfile(member), stream, CHUNK)
                os.fchmod(stream.fileno(), 0o555 if member.mode & 0o111 else 0o444)
                stream.flush()
                os.fsync(stream.fileno())


def tool_manifest(tree):
    """Return mode, size and hash of every file of a tree."""
    files = {}
    for parent, _directories, names in os.walk(tree):
        for name in names:
            path = os.path.join(parent, name)
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode):
                raise RunnerError("E_REMOTE_TOOL_TAMPERED", "%s is not a regular file" % path)
            files[os.path.relpath(path, tree)] = {
                "mode": stat.S_IMODE(status.st_mode),
                "sha256": sha256_file(path),
                "size": status.st_size,
            }
    return files


def verify_tool(directory):
    """Compare a tool with its manifest, byte for byte, and return the manifest's digests."""
    with open(os.path.join(directory, "manifest.json"), "rb") as stream:
        content = stream.read()
    expected = json.loads(content.decode("utf-8"))
    found = tool_manifest(os.path.join(directory, "tree"))
    if found != expected:
        differing = sorted(
            name for name in set(found) | set(expected) if found.get(name) != expected.get(name)
        )
        raise RunnerError(
            "E_REMOTE_TOOL_TAMPERED",
            "%s differs from its manifest: %s" % (directory, ", ".join(differing[:5])),
            path=directory,
        )
    return {
        "manifest_sha256": hashlib.sha256(content).hexdigest(),
        "files": {name: item["sha256"] for name, item in expected.items()},
    }
