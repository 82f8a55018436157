"""What the host, its engine and its images are."""

import json
import os
import platform
import subprocess
import time

from credentials import read_credential
from engine import Engine, message_of, quote
from errors import RunnerError
from reaching import reach

COUNTED = ("executions", "images", "tools")


def probe(root, request):
    """Return what the host, its engine and the images are; nothing is changed."""
    socket_path = request["socket"] or engine_socket(request["docker_path"])
    engine = Engine(socket_path)
    status, version = engine.call("GET", "/version")
    if status != 200:
        raise RunnerError("E_REMOTE_ENGINE", "version: %s" % message_of(version))
    _, information = engine.call("GET", "/info")
    return {
        "python": platform.python_version(),
        "architecture": platform.machine(),
        "socket": socket_path,
        "engine": {
            "version": version["Version"],
            "api": version["ApiVersion"],
            "architecture": information.get("Architecture", ""),
            "security": information.get("SecurityOptions") or [],
            "storage": information.get("Driver", ""),
            "id": information.get("ID", ""),
        },
        "cpus": information.get("NCPU", 0),
        "memory_bytes": information.get("MemTotal", 0),
        "clock_ms": int(time.time() * 1000),
        "kernel": kernel_facts(),
        "networks": {name: network_facts(engine, name) for name in request.get("networks", [])},
        "model": reach(request["endpoint"]) if request.get("endpoint") else None,
        "refreshable_login": is_refreshable(request.get("credential_file")),
        "stats": stats(root),
        "images": {name: image_facts(engine, name) for name in request["images"]},
    }


def kernel_facts():
    """Return what the kernel allows; None where it does not say."""
    lists = "/proc/sys/fs/binfmt_misc"
    emulated = [
        name[len("qemu-") :]
        for name in (sorted(os.listdir(lists)) if os.path.isdir(lists) else [])
        if name.startswith("qemu-")
    ]
    return {
        "release": platform.release(),
        "apparmor": first_line("/sys/module/apparmor/parameters/enabled") == "Y",
        "apparmor_profiles": apparmor_profiles(),
        "apparmor_restricts_namespaces": number(
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"
        ),
        "max_user_namespaces": number("/proc/sys/user/max_user_namespaces"),
        "unprivileged_namespaces": number("/proc/sys/kernel/unprivileged_userns_clone"),
        "emulated": emulated,
    }


def apparmor_profiles():
    """Return the names of the loaded profiles, or None: only root may ask on most hosts."""
    try:
        with open("/sys/kernel/security/apparmor/profiles", encoding="utf-8") as stream:
            return sorted(line.rsplit(" (", 1)[0] for line in stream if line.strip())
    except (OSError, ValueError):
        return None


def number(path):
    """Return the number that a file of the kernel holds, or None."""
    try:
        return int(first_line(path))
    except ValueError:
        return None


def first_line(path):
    """Return the first line of a small file; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.readline().strip()
    except (OSError, ValueError):
        return ""


def network_facts(engine, name):
    """Return what an engine network is, or None when the engine has none of that name."""
    status, document = engine.call("GET", "/networks/%s" % quote(name))
    if status != 200:
        return None
    return {
        "driver": document.get("Driver", ""),
        "internal": bool(document.get("Internal", False)),
    }


def is_refreshable(path):
    """Say whether a credential file is a login that its user renews; nothing of it is returned.

    Such a login has a refresh token, which works once: copies that renew it log each other out.
    """
    if not path:
        return False
    try:
        document = json.loads(read_credential(path).decode("utf-8"))
    except ValueError:
        return False
    if not isinstance(document, dict):
        return False
    tokens = document.get("tokens")
    nested = isinstance(tokens, dict) and bool(tokens.get("refresh_token"))
    return nested or bool(document.get("refresh_token")) or document.get("auth_mode") == "chatgpt"


def stats(root):
    """Return how full the root's disk is, and how much of ours lies there."""
    disk = os.statvfs(root)
    counts = {name: count_entries(os.path.join(root, name)) for name in COUNTED}
    counts["blobs"] = sum(
        count_entries(entry.path)
        for entry in os.scandir(os.path.join(root, "blobs"))
        if entry.is_dir() and len(entry.name) == 2
    )
    return {
        "disk_total_bytes": disk.f_frsize * disk.f_blocks,
        "disk_free_bytes": disk.f_frsize * disk.f_bavail,
        "inodes_total": disk.f_files,
        "inodes_free": disk.f_favail,
        "counts": counts,
    }


def count_entries(path):
    """Return how many entries a directory has; none when it is not there."""
    try:
        return len(os.listdir(path))
    except FileNotFoundError:
        return 0


def engine_socket(docker_path):
    """Return the socket that the host's docker command uses by itself."""
    if not os.access(docker_path, os.X_OK):
        raise RunnerError(
            "E_REMOTE_NO_DOCKER", "%s is not an executable file on the host" % docker_path
        )
    endpoint = os.environ.get("DOCKER_HOST", "")
    if not endpoint:
        done = subprocess.run(
            [docker_path, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
        endpoint = done.stdout.decode("utf-8", "replace").strip()
    if not endpoint.startswith("unix://"):
        endpoint = "unix:///var/run/docker.sock"
    return endpoint[len("unix://") :]


def image_facts(engine, name):
    """Return what an image is, or None when it is not on the host."""
    status, document = engine.call("GET", "/images/%s/json" % quote(name))
    if status != 200:
        return None
    config = document.get("Config") or {}
    return {
        "id": document["Id"],
        "digests": document.get("RepoDigests") or [],
        "architecture": document.get("Architecture", ""),
        "os": document.get("Os", ""),
        "env": config.get("Env") or [],
    }
