"""The tool cache holds the published package and nothing else, or it is not used (E2)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.engine

PACKAGE, VERSION, NAME = "@agents/agent", "1.2.3-linux-x64", "agent-1.2.3-x86_64"
PREFIX = "package/vendor/target"
FILES: Mapping[str, tuple[bytes, int]] = {
    "bin/agent": (b"#!/bin/sh\necho agent\n", 0o755),
    "share/deep/words.txt": (b"words\n" * 1000, 0o644),
    "about.json": (b"{}\n", 0o644),
}


def member(name: str, content: bytes = b"x", **facts: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in facts.items():
        setattr(info, key, value)
    return info, content


def package(*further: tuple[tarfile.TarInfo, bytes]) -> bytes:
    """Return an npm archive with the published files, and further members."""
    members = [member("package/package.json", b"{}")]
    for name, (content, mode) in FILES.items():
        members.append(member(f"{PREFIX}/{name}", content, mode=mode))
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for info, content in [*members, *further]:
            archive.addfile(info, io.BytesIO(content) if info.type == tarfile.REGTYPE else None)
    return buffer.getvalue()


def integrity(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


class Registry:
    """An npm registry on the loopback address whose answers a test chooses."""

    def __init__(self) -> None:
        self.archive = package()
        self.integrity: str | None = None
        self.metadata: Callable[[dict[str, Any]], object] = lambda document: document
        self.tarball: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.asked: list[str] = []
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.asked.append(handler.path)
        if handler.path == f"/{PACKAGE.replace('/', '%2f')}/{VERSION}":
            document = {
                "name": PACKAGE,
                "version": VERSION,
                "dist": {
                    "integrity": self.integrity or integrity(self.archive),
                    "tarball": f"{self.address}/archive.tgz",
                },
            }
            found = self.metadata(document)
            send(handler, found if isinstance(found, bytes) else json.dumps(found).encode())
        elif handler.path == "/archive.tgz" and self.tarball is not None:
            self.tarball(handler)
        elif handler.path in ("/archive.tgz", "/elsewhere.tgz"):
            send(handler, self.archive)
        else:
            handler.send_error(404)


def send(handler: BaseHTTPRequestHandler, content: bytes, length: int | None = None) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content) if length is None else length))
    handler.end_headers()
    handler.wfile.write(content)


def redirect(to: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", to)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


@pytest.fixture
def registry() -> Generator[Registry]:
    found = Registry()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


@pytest.fixture
def runner(kit: Any) -> Generator[Any]:
    found = kit.runner()
    yield found
    found.stop()


def install(runner: Any, registry: Registry, **changes: Any) -> Any:
    request = {
        "name": NAME,
        "package": PACKAGE,
        "version": VERSION,
        "integrity": integrity(registry.archive),
        "member_prefix": PREFIX,
        "registry": registry.address,
        **changes,
    }
    return runner.ask("install", **request)


def refusal(call: Callable[[], object]) -> tuple[str, str]:
    """Return the code, and everything that is said."""
    with pytest.raises(Exception, match="E_") as caught:
        call()
    code, message, facts = caught.value.args
    return code, f"{message}: {facts}"


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def tree(runner: Any) -> Path:
    return runner.root / "tools" / NAME / "tree"


def test_an_install_is_the_published_files_with_safe_modes_and_is_checked_when_reused(
    runner: Any, registry: Registry
) -> None:
    first = install(runner, registry)
    found = {
        str(path.relative_to(tree(runner))): (path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in tree(runner).rglob("*")
        if path.is_file()
    }
    assert found == {
        name: (content, 0o555 if mode & 0o111 else 0o444) for name, (content, mode) in FILES.items()
    }
    # No login, configuration, session or half-finished download beside it.
    assert names(runner.root / "tools") == [NAME, f"{NAME}.lock"]
    assert names(runner.root / "tools" / NAME) == ["manifest.json", "tree"]
    asked = len(registry.asked)
    assert install(runner, registry) == first
    assert install(runner, registry, manifest_sha256=first["manifest_sha256"]) == first
    assert len(registry.asked) == asked, "a reuse asks nobody"


def edit_byte(path: Path) -> None:
    target = path / "bin/agent"
    content = target.read_bytes()
    target.chmod(0o755)
    target.write_bytes(content[:-2] + b"X\n")
    target.chmod(0o555)


def edit_with_manifest(path: Path) -> None:
    edit_byte(path)
    manifest = path.parent / "manifest.json"
    document = json.loads(manifest.read_bytes())
    content = (path / "bin/agent").read_bytes()
    document["bin/agent"]["sha256"] = hashlib.sha256(content).hexdigest()
    manifest.write_text(json.dumps(document, sort_keys=True, separators=(",", ":")))


def link_file(path: Path) -> None:
    shutil.copy(path / "bin/agent", path.parent.parent / "copy")
    (path / "bin/agent").unlink()
    (path / "bin/agent").symlink_to(path.parent.parent / "copy")


def replace_directory(path: Path) -> None:
    (path / "bin").rename(path.parent.parent / "moved")
    (path / "bin").symlink_to(path.parent.parent / "moved")


def replace_install(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to(path.parent.with_name("moved"))


TAMPERING: Mapping[str, tuple[Callable[[Path], object], str]] = {
    "a byte": (edit_byte, "other bytes: bin/agent"),
    "a byte and the manifest": (edit_with_manifest, "not the published package's"),
    "a mode": (lambda path: (path / "bin/agent").chmod(0o755), "mode 755, not 555: bin/agent"),
    "a directory's mode": (lambda path: (path / "bin").chmod(0o777), "its mode is 777"),
    "an extra file": (lambda path: (path / "bin/more").touch(), "extra: bin/more"),
    "a session beside it": (lambda path: (path.parent / "auth.json").touch(), "extra: auth.json"),
    "a missing file": (lambda path: (path / "about.json").unlink(), "missing: about.json"),
    "a file that is a link": (link_file, "bin/agent is a link"),
    "a pipe": (lambda path: os.mkfifo(path / "bin/pipe"), "bin/pipe is no regular file"),
    "a replaced directory": (replace_directory, "bin is a link"),
    "a replaced install": (replace_install, "not a directory"),
    "no tree": (shutil.rmtree, "No such file"),
    "no manifest": (lambda path: (path.parent / "manifest.json").unlink(), "No such file"),
    "a damaged manifest": (lambda path: (path.parent / "manifest.json").write_text("{"), ""),
}


@pytest.mark.parametrize("name", TAMPERING)
def test_an_install_that_was_changed_is_refused_and_named(
    runner: Any, registry: Registry, name: str
) -> None:
    pinned = install(runner, registry)["manifest_sha256"]
    change, said = TAMPERING[name]
    change(tree(runner))
    code, text = refusal(lambda: install(runner, registry, manifest_sha256=pinned))
    assert code == "E_REMOTE_TOOL_TAMPERED"
    assert said in text
    assert str(runner.root) in text, "the path says what to look at"


UNSAFE: Mapping[str, tuple[tarfile.TarInfo, bytes]] = {
    "a link": member(f"{PREFIX}/link", b"", type=tarfile.SYMTYPE, linkname="bin/agent"),
    "a hard link": member(f"{PREFIX}/hard", b"", type=tarfile.LNKTYPE, linkname="bin/agent"),
    "a device": member(f"{PREFIX}/device", b"", type=tarfile.CHRTYPE),
    "a pipe": member(f"{PREFIX}/pipe", b"", type=tarfile.FIFOTYPE),
    "a directory": member(f"{PREFIX}/empty", b"", type=tarfile.DIRTYPE),
    "an absolute name": member("/etc/passwd"),
    "a name that leaves": member(f"{PREFIX}/../../../../escaped"),
    "a name beside package": member("other/file"),
    "a name with a dot": member(f"{PREFIX}/./bin/again"),
    "a name twice": member(f"{PREFIX}/bin/agent"),
    "a file below a file": member(f"{PREFIX}/bin/agent/below"),
    "a set-user file, unsafe name": member("package\\file", mode=0o4755),
}


@pytest.mark.parametrize("name", UNSAFE)
def test_a_package_with_anything_but_plain_files_is_not_unpacked(
    runner: Any, registry: Registry, name: str
) -> None:
    registry.archive = package(UNSAFE[name])
    code, _ = refusal(lambda: install(runner, registry))
    assert code == "E_REMOTE_TOOL_UNSAFE"
    assert names(runner.root / "tools") == [f"{NAME}.lock"]
    assert not (runner.root.parent / "escaped").exists()


def test_what_is_no_archive_or_holds_nothing_of_ours_is_refused(
    runner: Any, registry: Registry
) -> None:
    good = registry.archive
    for content in (b"no archive", gzip.compress(b"no tar"), good[: len(good) // 2]):
        registry.archive = content
        assert refusal(lambda: install(runner, registry))[0] == "E_REMOTE_TOOL_UNSAFE"
    registry.archive = good
    code, _ = refusal(lambda: install(runner, registry, member_prefix="package/vendor/other"))
    assert code == "E_REMOTE_TOOL_UNSAFE"


def wrong_metadata(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda document: {**document, **changes}


METADATA: Mapping[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a page": (lambda _: b"<html>sign in</html>", "E_REMOTE_TOOL_METADATA"),
    "a list": (lambda _: [], "E_REMOTE_TOOL_METADATA"),
    "no archive": (wrong_metadata(dist={"integrity": "sha512-x"}), "E_REMOTE_TOOL_METADATA"),
    "another name": (wrong_metadata(name="@agents/other"), "E_REMOTE_TOOL_METADATA"),
    "another version": (wrong_metadata(version="9.9.9"), "E_REMOTE_TOOL_METADATA"),
    "a file of the host": (
        lambda document: {**document, "dist": {**document["dist"], "tarball": "file:///etc/hosts"}},
        "E_REMOTE_TOOL_DOWNLOAD",
    ),
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_of_something_else_is_refused(runner: Any, registry: Registry, name: str) -> None:
    registry.metadata, code = METADATA[name]
    assert refusal(lambda: install(runner, registry))[0] == code


def test_a_registry_that_announces_or_sends_other_bytes_is_told_from_one_that_stops(
    runner: Any, registry: Registry
) -> None:
    pinned = integrity(registry.archive)
    registry.integrity = integrity(b"another")
    code, text = refusal(lambda: install(runner, registry))
    assert (code, "announces" in text) == ("E_REMOTE_TOOL_INTEGRITY", True)
    registry.integrity = pinned
    registry.tarball = lambda handler: send(handler, package(member("package/more")))
    code, text = refusal(lambda: install(runner, registry))
    assert (code, "sends" in text) == ("E_REMOTE_TOOL_INTEGRITY", True)

    def stop_early(handler: BaseHTTPRequestHandler) -> None:
        send(handler, registry.archive[:100], len(registry.archive))
        handler.close_connection = True

    registry.tarball = stop_early
    assert refusal(lambda: install(runner, registry))[0] == "E_REMOTE_TOOL_DOWNLOAD"
    registry.tarball = lambda handler: handler.send_error(503)
    assert refusal(lambda: install(runner, registry))[0] == "E_REMOTE_TOOL_DOWNLOAD"
    assert names(runner.root / "tools") == [f"{NAME}.lock"]
    registry.tarball = None
    assert install(runner, registry)


def test_a_redirect_is_followed_on_the_web_and_nowhere_else(
    runner: Any, registry: Registry
) -> None:
    registry.tarball = redirect("file:///etc/hosts")
    assert refusal(lambda: install(runner, registry))[0] == "E_REMOTE_TOOL_DOWNLOAD"
    registry.tarball = redirect(f"{registry.address}/archive.tgz")  # for ever
    assert refusal(lambda: install(runner, registry))[0] == "E_REMOTE_TOOL_DOWNLOAD"
    registry.tarball = redirect(f"{registry.address}/elsewhere.tgz")
    assert install(runner, registry)


def test_installs_at_once_download_once(kit: Any, registry: Registry) -> None:
    runners = [kit.runner(kit.directory / "shared") for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda number: install(runners[number % 3], registry), range(6)))
    assert all(item == found[0] for item in found)
    assert registry.asked.count("/archive.tgz") == 1


def test_a_killed_install_leaves_nothing_that_counts(kit: Any, registry: Registry) -> None:
    runner = kit.runner()
    held = threading.Event()

    def hang(handler: BaseHTTPRequestHandler) -> None:
        send(handler, registry.archive[:100], len(registry.archive))
        handler.wfile.flush()
        held.wait(30)

    registry.tarball = hang
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(is_answered, runner, registry)
        end = time.monotonic() + 20
        while not list(runner.root.glob("tools/.new-*/package.tgz")):
            assert time.monotonic() < end
            time.sleep(0.02)
        runner.process.kill()
        assert not going.result(timeout=20)
    held.set()
    assert list(runner.root.glob("tools/.new-*"))
    registry.tarball = None
    again = kit.runner(runner.root)
    assert install(again, registry)
    assert names(runner.root / "tools") == [NAME, f"{NAME}.lock"]


def is_answered(runner: Any, registry: Registry) -> bool:
    try:
        install(runner, registry)
    except Exception as error:  # noqa: BLE001
        assert type(error).__name__ == "RunnerGoneError"  # noqa: PT017
        return False
    return True


def test_a_container_cannot_write_the_install_though_it_is_root_and_asked_to(
    runner: Any, kit: Any, registry: Registry
) -> None:
    before = install(runner, registry)
    work = kit.work(
        "/opt/agent/bin/agent || exit 9\n"
        "for name in bin/agent new; do (echo bad > /opt/agent/$name) 2>/dev/null && exit 8; done\n"
        "chmod 777 /opt/agent/bin/agent 2>/dev/null && exit 7\n"
        "rm /opt/agent/about.json 2>/dev/null && exit 6\n"
        "exit 0"
    )
    work.request["container"]["HostConfig"]["Mounts"].append(
        {
            "Type": "bind",
            "Source": f"tools/{NAME}/tree",
            "Target": "/opt/agent",
            "ReadOnly": False,
        }
    )
    result = runner.execute(work)
    assert result.record is not None
    assert result.record["exit_code"] == 0
    assert install(runner, registry) == before
