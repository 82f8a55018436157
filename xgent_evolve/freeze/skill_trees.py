"""The files of a skill as they are installed: whole, and without links that lead out of it.

The rule (docs/job-spec.md): a link that stays within the skill is kept. One that leaves it, the
skill's SKILL.md if it is a link (Codex does not follow that one), and a skill directory that is a
link itself become the frozen files that they lead to; the protocol records which. Only frozen
files can be reached: a link to anything else is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from xgent_evolve.errors import Fault, RefusedError, SpecError
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.skills import read_skill
from xgent_evolve.freeze.snapshot import Snapshot
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import within
from xgent_evolve.spec.surfaces import skill_root
from xgent_evolve.store.bundles import Blobs, Entry, link_destination

SKILL_FILE = "SKILL.md"
_MOST_LINKS = 40
_MOST_FILES = 50_000


@dataclass(frozen=True, slots=True)
class SkillFiles:
    """A skill's files, able to stand alone."""

    entries: list[Entry]
    """With paths relative to the skill's directory."""
    links: dict[str, str]
    """Target of every link that was replaced, by its relative path; the directory is `.`."""


def skill_files(snapshot: Snapshot, root: str) -> SkillFiles:
    """Return the files of the skill at `root`; none when nothing is frozen there.

    Raises:
        RefusedError: E_FREEZE_LINK_ESCAPE: a link leads to nothing frozen, in a circle, or to
            more files than a skill can have.

    """
    links: dict[str, str] = {}
    top = snapshot.entries.get(root)
    real = root
    if top is not None and top.kind == "link":
        real = _destination(snapshot, top)
        links["."] = top.target or ""
    entries = list(islice(_below(snapshot, (real,), "", links), _MOST_FILES + 1))
    if len(entries) > _MOST_FILES:
        raise _no_files(snapshot, root, f"links to more than {_MOST_FILES} files")
    return SkillFiles(entries, links)


def skill_faults(loaded: LoadedSpec, snapshot: Snapshot, blobs: Blobs) -> list[Fault]:
    """Return every fault of every SKILL.md of a study: background, under test, each override."""
    faults: list[Fault] = []
    root = skill_root(loaded.spec.target)
    studied = [] if root is None else [spec_path(root)]
    for root in [*studied, *map(spec_path, loaded.spec.source.fixed_skill_roots)]:
        files = {entry.path: entry for entry in skill_files(snapshot, root).entries}
        main = files.get(SKILL_FILE)
        if main is not None and main.blob is not None:
            where = f"{snapshot.origin}/{root}/{SKILL_FILE}"
            faults.extend(read_skill(blobs.get(main.blob), where).faults)
    for number, condition in enumerate(loaded.spec.conditions):
        for name, text in condition.overrides.items():
            if studied and text is not None and spec_path(name) == f"{studied[0]}/{SKILL_FILE}":
                where = place(loaded, "conditions", number, "overrides", name)
                content = text.encode("utf-8", "surrogatepass")
                faults.extend(read_skill(content, where).faults)
    return faults


def require_readable_skills(loaded: LoadedSpec, snapshot: Snapshot, blobs: Blobs) -> None:
    """Raise SpecError with the faults of all skills at once, so that none hides another."""
    if faults := skill_faults(loaded, snapshot, blobs):
        raise SpecError(tuple(faults))


def _below(
    snapshot: Snapshot, opened: tuple[str, ...], prefix: str, links: dict[str, str]
) -> Iterator[Entry]:
    """Yield what lies in the last of the `opened` directories, as `prefix`...

    The first of them is the skill's own, within which links stay what they are.
    """
    start = opened[-1]
    for entry in snapshot.below(start):
        if entry.path == start:
            continue
        path = prefix + entry.path.removeprefix(f"{start}/")
        destination = link_destination(entry.path, entry.target or "")
        stays = not prefix and path != SKILL_FILE and within(destination, start)
        if entry.kind != "link" or stays:
            yield replace(entry, path=path)
            continue
        links[path] = entry.target or ""
        reached = _destination(snapshot, entry)
        file = snapshot.entries.get(reached)
        if file is not None:
            yield replace(file, path=path)
        elif any(within(directory, reached) for directory in opened):
            raise _no_files(snapshot, entry.path, f"-> {entry.target}, a circle")
        else:
            yield from _below(snapshot, (*opened, reached), f"{path}/", links)


def _destination(snapshot: Snapshot, entry: Entry) -> str:
    """Return the frozen file or directory that a link leads to, over other links too."""
    path = entry.path
    for _ in range(_MOST_LINKS):
        link = _link_on_the_way(snapshot, path)
        if link is None:
            if snapshot.below(path):
                return path
            break
        path = link_destination(link.path, link.target or "") + path.removeprefix(link.path)
    raise _no_files(snapshot, entry.path, f"-> {entry.target}")


def _no_files(snapshot: Snapshot, path: str, found: str) -> RefusedError:
    return RefusedError(
        "a link leads to something that is not frozen",
        code="E_FREEZE_LINK_ESCAPE",
        where=f"{snapshot.origin}/{path}",
        expected="frozen files at the other end, which lie in source.paths",
        found=found,
        fix="list what it leads to in source.paths, or replace the link by a copy",
    )


def _link_on_the_way(snapshot: Snapshot, path: str) -> Entry | None:
    """Return the link that `path` is, or that one of the directories above it is."""
    parts = path.split("/")
    for length in range(1, len(parts) + 1):
        entry = snapshot.entries.get("/".join(parts[:length]))
        if entry is not None and entry.kind == "link":
            return entry
    return None
