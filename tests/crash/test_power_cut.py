"""What a power cut could take is never acknowledged.

A killed process loses nothing that it wrote; a power cut does. So the stories of the kill tests
are traced, and the trace is read with the rules of a pessimistic file system: bytes are durable
after fsync of their file, names after fsync of their directory, both after syncfs, and a rename
may reach the disk before the bytes of what it renames.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from xgent_evolve.store.rundir import RunDir

_CALLS = "openat,write,pwrite64,ftruncate,fsync,fdatasync,syncfs,rename,renameat,renameat2,mkdir"
_LINE = re.compile(r"(\w+)\((.*)\) += (-?\d+)(?:<(.*)>)?.*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_FIRST = re.compile(r"\d+<(.*?)>")


class PessimisticDisk:
    """Names and bytes that a power cut would take, going by the calls so far."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.bytes: set[str] = set()
        self.names: set[str] = set()
        self.known: set[str] = set()
        self.acknowledgements = 0

    def see(self, call: str, arguments: str, result: str) -> None:
        quoted = _QUOTED.findall(arguments)
        first = _FIRST.match(arguments)
        match call:
            case "openat" if "O_CREAT" in arguments and result not in self.known:
                self.create(result)
            case "mkdir":
                self.create(quoted[0])
            case "write" if arguments.startswith("1<"):
                self.acknowledge()
            case "write" | "pwrite64" | "ftruncate" if first:
                self.bytes.add(first[1])
            case "fsync" | "fdatasync" if first:
                self.bytes.discard(first[1])
                self.names = {name for name in self.names if str(Path(name).parent) != first[1]}
            case "syncfs":
                self.bytes, self.names = set(), set()
            case "rename" | "renameat" | "renameat2":
                self.rename(*quoted)
            case _:
                pass

    def create(self, name: str) -> None:
        self.known.add(name)
        self.names.add(name)

    def rename(self, old: str, new: str) -> None:
        lost = self.at_risk(self.bytes | self.names, below=old)
        assert lost <= {old}, f"{new} gets its name before {lost} are durable"
        assert old not in self.bytes, f"{new} gets its name before its bytes are durable"
        self.names.discard(old)
        self.create(new)

    def acknowledge(self) -> None:
        self.acknowledgements += 1
        lost = self.at_risk(self.bytes | self.names, below=self.root)
        assert not lost, f"acknowledged, but a power cut takes {lost}"

    def at_risk(self, paths: set[str], below: str) -> set[str]:
        """Return those that matter: the lock and what has a temporary name may be lost."""
        return {
            path
            for path in paths
            if path.startswith(below)
            and not path.endswith("/lock")
            and "/staging/" not in path
            and not path.endswith(".tmp")
        }


def finished_calls(trace: str) -> Iterator[str]:
    """Yield each call when it returns, without its process; threads interleave in a trace."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        process, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            begun[process] = call.removesuffix("<unfinished ...>").strip()
        elif call.startswith("<... "):
            yield begun.pop(process) + call.partition(" resumed>")[2]
        else:
            yield call


def story(name: str) -> str:
    spec = importlib.util.spec_from_file_location(
        "stories", Path(__file__).with_name("test_store_crash.py")
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.HEAD + module.STORIES[name]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("name", ["blobs", "journal", "rundir", "state"])
def test_nothing_is_named_or_acknowledged_before_it_is_durable(tmp_path, name):
    place, trace = tmp_path / "place", tmp_path / "trace"
    place.mkdir()
    if name == "state":
        RunDir.create(place / "run")
    command = ["strace", "-f", "-y", "-qq", "-s", "512", "-e", f"trace={_CALLS}", "-o", trace]
    tracing = subprocess.run(
        [*command, sys.executable, "-c", story(name), place], capture_output=True, check=False
    )
    if tracing.returncode and b"ptrace" in tracing.stderr:
        pytest.skip("tracing is not allowed here")
    assert tracing.returncode == 0, tracing.stderr
    disk = PessimisticDisk(str(place))
    for call in finished_calls(trace.read_text(errors="replace")):
        match = _LINE.match(call)
        if match and int(match[3]) >= 0:
            disk.see(match[1], match[2], match[4] or "")
    assert disk.acknowledgements >= 1


def test_the_pessimistic_disk_finds_a_rename_before_the_barrier():
    disk = PessimisticDisk("/r")
    disk.see("openat", 'AT_FDCWD</>, "/r/.a.tmp", O_WRONLY|O_CREAT', "/r/.a.tmp")
    disk.see("write", '3</r/.a.tmp>, "x", 1', "")
    with pytest.raises(AssertionError, match="bytes are durable"):
        disk.see("rename", '"/r/.a.tmp", "/r/a"', "")


def test_the_pessimistic_disk_finds_a_directory_that_was_not_synced():
    disk = PessimisticDisk("/r")
    disk.see("rename", '"/r/.a.tmp", "/r/a"', "")
    with pytest.raises(AssertionError, match="acknowledged"):
        disk.see("write", '1<pipe:[1]>, "ok", 2', "")
    disk.see("fsync", "4</r>", "")
    disk.see("write", '1<pipe:[1]>, "ok", 2', "")
