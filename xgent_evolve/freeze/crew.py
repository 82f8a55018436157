"""A long list of files, read by a few processes at once.

Each process has a part of the list at a time. They hash, search and stage (see `reading`); names in
the store are given afterwards by the one who asked, with one barrier for all. What a process finds
wrong is looked at again here, so every refusal has one origin, and the first one in the order of
the paths is the one that is told, however the work was shared.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, cast

from xgent_evolve.canonical import path_bytes
from xgent_evolve.errors import XgentError
from xgent_evolve.freeze.disk import DiskReader, changed
from xgent_evolve.freeze.reading import Taken, take
from xgent_evolve.freeze.secrets import Finding

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging

_FEWEST_FOR_A_CREW = 1_500
_MOST_MEMBERS = 4
_PART = 128
"""Paths that a process gets at a time."""
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from xgent_evolve.freeze.crew import main; main()"
)


@dataclass(frozen=True, slots=True)
class Job:
    """What a process needs to know once."""

    root: Path
    """The directory that the paths lie below."""
    staging: Staging | None
    git_hash: str


def take_all(
    reader: DiskReader, paths: Sequence[str], staging: Staging | None, git_hash: str = ""
) -> dict[str, Taken]:
    """Read every path, sorted by its bytes; those where nothing lies are left out.

    Raises:
        DriftError, RefusedError, StoreError: as `take` does, for the first such path.

    """
    members = min(os.cpu_count() or 1, _MOST_MEMBERS)
    if len(paths) < _FEWEST_FOR_A_CREW or members == 1 or not sys.executable:
        found = [take(reader, path, staging, git_hash) for path in paths]
    else:
        found = _share(Job(reader.root, staging, git_hash), paths, members, reader)
    reader.require_still()
    return {taken.path: taken for taken in found if taken is not None}


def take_present(
    reader: DiskReader, paths: Iterable[str], staging: Staging | None
) -> dict[str, Taken]:
    """Read every path, sorted by its bytes; each was seen before, so each must be there.

    Raises:
        DriftError, RefusedError, StoreError: as for `take_all`.

    """
    listed = sorted(set(paths), key=path_bytes)
    found = take_all(reader, listed, staging)
    for path in listed:
        if path not in found:
            raise changed(reader.place(path), "a file", "nothing there any more")
    return found


def _share(job: Job, paths: Sequence[str], members: int, reader: DiskReader) -> list[Taken | None]:
    from concurrent.futures import ThreadPoolExecutor

    parts = [paths[start : start + _PART] for start in range(0, len(paths), _PART)]
    free: SimpleQueue[_Member] = SimpleQueue()
    crew = [_Member(job) for _ in range(members)]
    for member in crew:
        free.put(member)

    def work(part: Sequence[str]) -> list[Taken | str | None]:
        member = free.get()
        try:
            return member.take(part)
        finally:
            free.put(member)

    try:
        with ThreadPoolExecutor(members) as pool:
            answers = list(itertools.chain.from_iterable(pool.map(work, parts)))
        still = [member.finish() for member in crew]
    finally:
        for member in crew:
            member.end()
    for answer in answers:
        if isinstance(answer, str):
            raise _found_again(reader, answer, job)
    if not all(still):
        reader.require_still()
        raise changed(str(reader.root), "the same names from beginning to end", "a change")
    return cast("list[Taken | None]", answers)


def _found_again(reader: DiskReader, path: str, job: Job) -> XgentError:
    """Return what is wrong at a path; what is right by now has changed."""
    try:
        take(reader, path, job.staging, job.git_hash)
    except XgentError as error:
        return error
    return changed(
        reader.place(path), "one state", "it could not be read at first, and then it could"
    )


class _Member:
    """One process of the crew."""

    def __init__(self, job: Job) -> None:
        store = [] if job.staging is None else [str(job.staging.root), job.staging.mark]
        # Isolated: no file in the present directory can pass for a module.
        words = [sys.executable, "-I", "-c", _START, json.dumps(_import_paths()), str(job.root)]
        words += [job.git_hash, *store]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def take(self, paths: Sequence[str]) -> list[Taken | str | None]:
        """Return what lies at the paths; a path itself where something is wrong."""
        try:
            answer = self._ask(list(paths))
        except (OSError, ValueError):
            return list(paths)
        return [_taken(item) for item in cast("list[object]", answer)]

    def finish(self) -> bool:
        """Say whether no directory changed meanwhile."""
        try:
            return self._ask([]) is True
        except (OSError, ValueError):
            return False

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, paths: list[str]) -> object:
        requests = cast("IO[bytes]", self._process.stdin)
        answers = cast("IO[bytes]", self._process.stdout)
        requests.write(json.dumps(paths).encode() + b"\n")
        requests.flush()
        return cast("object", json.loads(answers.readline()))


def _import_paths() -> list[str]:
    """Return where this process finds its modules, without what depends on the directory."""
    package = str(Path(__file__).resolve().parents[2])
    return [package, *(path for path in sys.path if Path(path).is_absolute())]


def _taken(item: object) -> Taken | str | None:
    if item is None or isinstance(item, str):
        return item
    *fields, secrets = cast("list[object]", item)
    found = tuple(Finding(line, kind) for line, kind in cast("list[tuple[int, str]]", secrets))
    return Taken._make([*fields, found])


def main() -> None:
    """Answer requests until there are no more: the life of a crew's member."""
    from xgent_evolve.store.staging import Staging

    root, git_hash, *store = sys.argv[1:]
    staging = Staging(Path(store[0]), store[1]) if store else None
    with DiskReader(Path(root)) as reader:
        for request in sys.stdin.buffer:
            paths = cast("list[str]", json.loads(request))
            answer = [_try(reader, path, staging, git_hash) for path in paths] or _is_still(reader)
            sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
            sys.stdout.buffer.flush()


def _try(
    reader: DiskReader, path: str, staging: Staging | None, git_hash: str
) -> Taken | str | None:
    try:
        return take(reader, path, staging, git_hash)
    except XgentError:
        return path


def _is_still(reader: DiskReader) -> bool:
    try:
        reader.require_still()
    except XgentError:
        return False
    return True
