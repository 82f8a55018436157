"""Reads a package from an npm registry: metadata first, then bytes that hash as announced."""

import base64
import hashlib
import http.client
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from durable import CHUNK
from errors import RunnerError

METADATA_BYTES = 8 << 20
PACKAGE_BYTES = 1 << 30
"""What a registry may answer with at most."""
TIMEOUT_S = 120


class WebRedirects(urllib.request.HTTPRedirectHandler):
    """Follows a registry to where it keeps its packages, but never to a weaker protocol."""

    max_redirections = 5

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        """Return the request for the new address; RunnerError when it may not be followed."""
        require_web(newurl)
        if req.full_url.startswith("https:") and not newurl.startswith("https:"):
            text = "%s leads from https to %s" % (bare(req.full_url), bare(newurl))
            raise RunnerError("E_REMOTE_TOOL_DOWNLOAD", text)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def package_metadata(request):
    """Return the address of a package's archive, after its metadata was checked."""
    registry = (request["registry"] or npm_registry()).rstrip("/")
    address = "%s/%s/%s" % (registry, request["package"].replace("/", "%2f"), request["version"])
    try:
        with fetch(address) as response:
            content = response.read(METADATA_BYTES)
        metadata = json.loads(content.decode("utf-8"))
        distribution = metadata["dist"]
        named = (metadata["name"], metadata["version"])
        integrity, archive = distribution["integrity"], distribution["tarball"]
    except (OSError, http.client.HTTPException) as error:
        raise download_error(address, error) from error
    except (ValueError, KeyError, TypeError) as error:
        text = "%s does not answer with a package's metadata" % bare(address)
        raise RunnerError("E_REMOTE_TOOL_METADATA", text, expected="name, version, dist") from error
    if named != (request["package"], request["version"]):
        raise RunnerError(
            "E_REMOTE_TOOL_METADATA",
            "the registry answers with another package",
            expected="%s %s" % (request["package"], request["version"]),
            found="%s %s" % named,
        )
    if integrity != request["integrity"]:
        raise RunnerError(
            "E_REMOTE_TOOL_INTEGRITY",
            "the registry announces another content for %s" % request["version"],
            expected=request["integrity"],
            found=str(integrity),
        )
    return archive


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
    require_web(address)
    try:
        return urllib.request.build_opener(WebRedirects).open(address, timeout=TIMEOUT_S)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise download_error(address, error) from error


def download(address, target, integrity, progress):
    """Download a package and check its SHA-512.

    An answer that is too short is told from one with other bytes: only the latter says something
    about the registry.
    """
    digest, size, shown = hashlib.sha512(), 0, 0
    with fetch(address) as response, open(target, "wb") as stream:
        announced = response.headers.get("Content-Length")
        while True:
            try:
                chunk = response.read(CHUNK)
            except (OSError, http.client.HTTPException) as error:
                raise download_error(address, error) from error
            if not chunk:
                break
            digest.update(chunk)
            stream.write(chunk)
            size += len(chunk)
            if size > PACKAGE_BYTES:
                raise download_error(address, "more than %d bytes" % PACKAGE_BYTES)
            if size - shown >= 32 * CHUNK:
                shown = size
                progress("downloaded %d MB" % (size // 1000000))
    if announced is not None and announced.isdigit() and int(announced) != size:
        raise download_error(address, "ended after %d of %s bytes" % (size, announced))
    found = "sha512-" + base64.b64encode(digest.digest()).decode("ascii")
    if found != integrity:
        raise RunnerError(
            "E_REMOTE_TOOL_INTEGRITY",
            "the registry sends another content than it announces",
            expected=integrity,
            found=found,
        )


def require_web(address):
    """Refuse an address that names anything but a web server."""
    parts = urllib.parse.urlsplit(address if isinstance(address, str) else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        text = "%s is not the address of a web server" % bare(str(address))
        raise RunnerError("E_REMOTE_TOOL_DOWNLOAD", text, expected="http:// or https://")


def download_error(address, reason):
    """Return the error for a download that did not come to its end."""
    return RunnerError("E_REMOTE_TOOL_DOWNLOAD", "%s: %s" % (bare(address), reason))


def bare(address):
    """Return an address without its query and without what could be a password."""
    text = address.split("?")[0]
    scheme, mark, rest = text.partition("://")
    return scheme + mark + rest.rpartition("@")[2] if mark else text
