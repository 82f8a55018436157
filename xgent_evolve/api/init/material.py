"""The text to study: the skills and AGENTS.md files of a repository, and what the edit changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.init.request import InitRequest, missing
from xgent_evolve.errors import Fault, InvalidError
from xgent_evolve.freeze.git import IndexEntry, Repository
from xgent_evolve.freeze.skill_trees import SKILL_FILE
from xgent_evolve.spec.paths import last_name, within
from xgent_evolve.spec.surfaces import AGENTS_FILE

_GITLINK = 0o160000
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Material:
    """What is studied, and what of the repository goes along."""

    surface: str
    """skill or agents."""
    target: list[str]
    """target.paths."""
    source: list[str]
    """source.paths."""
    overrides: dict[str, str | None]
    """The candidate's text by path; empty when there is no candidate."""

    @property
    def name(self) -> str:
        """The studied text in words."""
        return f"the skill {self.target[0]}" if self.surface == "skill" else AGENTS_FILE


def find_repository(path: Path) -> Repository:
    """Return the working tree that `path` lies in.

    Raises:
        InvalidError: E_SPEC_REPO: it lies in none.

    """
    start = path.resolve()
    for directory in (start, *start.parents):
        if (directory / ".git").exists():
            return Repository.open(directory, "--repo")
    return Repository.open(start, "--repo")


def find_material(
    request: InitRequest, repository: Repository, apart: Sequence[str], faults: list[Fault]
) -> Material | None:
    """Return the text to study; None, with the fault added, when only the caller can say.

    `apart` are paths of the repository that hold tasks: never text to study, and never exported.
    """
    index = [entry for entry in repository.index() if not _below(entry.path, apart)]
    skills = sorted(
        entry.path.rpartition("/")[0]
        for entry in index
        if last_name(entry.path) == SKILL_FILE and "/" in entry.path
    )
    agents = sorted(entry.path for entry in index if last_name(entry.path) == AGENTS_FILE)
    if request.skill is not None:
        return _named_skill(request, repository, skills, faults)
    if request.agents or (not skills and agents):
        return _agents(request, index, apart, agents, faults)
    if len(skills) == 1:
        return _skill(request, repository, skills[0], faults)
    known = ", ".join(skills[:_SHOWN]) + (" and more" if len(skills) > _SHOWN else "")
    fault = (
        missing("which skill is studied", flag="--skill DIRECTORY, or --agents", found=known)
        if skills
        else missing(
            "what is studied",
            flag="--repo with a tracked SKILL.md or AGENTS.md",
            found=f"neither in {repository.root}",
        )
    )
    faults.append(fault)
    return None


def _named_skill(
    request: InitRequest, repository: Repository, skills: list[str], faults: list[Fault]
) -> Material | None:
    wanted = (request.skill or "").strip("/").removeprefix("./")
    chosen = [root for root in skills if wanted in {root, last_name(root)}]
    if len(chosen) == 1:
        return _skill(request, repository, chosen[0], faults)
    found = f"{wanted}; there are {', '.join(skills[:_SHOWN]) or 'none'}"
    faults.append(missing("the skill", flag="--skill with one of these directories", found=found))
    return None


def _skill(
    request: InitRequest, repository: Repository, root: str, faults: list[Fault]
) -> Material:
    overrides: dict[str, str | None] = {}
    candidate = request.candidate
    if candidate is not None and candidate.is_dir():
        overrides = _directory_overrides(candidate, repository.root, root, faults)
    elif candidate is not None:
        overrides = _file_override(candidate, f"{root}/{SKILL_FILE}", faults)
    return Material("skill", [root], [root], overrides)


def _agents(
    request: InitRequest,
    index: list[IndexEntry],
    apart: Sequence[str],
    agents: list[str],
    faults: list[Fault],
) -> Material | None:
    if not agents:
        faults.append(missing("the AGENTS.md to study", flag="--repo with a tracked AGENTS.md"))
        return None
    path = min(agents, key=lambda item: (item.count("/"), item))
    overrides: dict[str, str | None] = {}
    if request.candidate is not None:
        overrides = _file_override(request.candidate, path, faults)
    links = [entry.path for entry in index if entry.mode == _GITLINK]
    return Material("agents", [path], _around([*apart, *links], index), overrides)


def _around(avoided: Sequence[str], index: Iterable[IndexEntry]) -> list[str]:
    """Return the fewest paths that cover every entry of the index and none of `avoided`."""
    chosen: set[str] = set()
    for entry in index:
        parts = entry.path.split("/")
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            if not any(within(item, path) for item in avoided):
                chosen.add(path)
                break
    return sorted(chosen)


def _below(path: str, roots: Iterable[str]) -> bool:
    return any(within(path, root) for root in roots)


def _file_override(candidate: Path, path: str, faults: list[Fault]) -> dict[str, str | None]:
    text = _read_text(candidate, faults)
    return {} if text is None else {path: text}


def _directory_overrides(
    candidate: Path, top: Path, root: str, faults: list[Fault]
) -> dict[str, str | None]:
    """Return every file of an edited copy of the skill that differs from the present one."""
    overrides: dict[str, str | None] = {}
    present = top / root
    new = {item.relative_to(candidate).as_posix() for item in _files(candidate)}
    old = {item.relative_to(present).as_posix() for item in _files(present)}
    for name in sorted(new):
        before = (present / name).read_bytes() if name in old else None
        if before == (candidate / name).read_bytes():
            continue
        text = _read_text(candidate / name, faults)
        if text is not None:
            overrides[f"{root}/{name}"] = text
    return overrides | {f"{root}/{name}": None for name in sorted(old - new)}


def _files(directory: Path) -> list[Path]:
    return [item for item in directory.rglob("*") if item.is_file() and ".git" not in item.parts]


def _read_text(path: Path, faults: list[Fault]) -> str | None:
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        found = error.strerror or str(error)
    except UnicodeDecodeError:
        found = "bytes that are not UTF-8"
    faults.append(
        Fault(
            code="E_INIT_MISSING",
            message="the candidate's text cannot be read",
            where=str(path),
            expected="a text file, or for a skill a directory of them",
            found=found,
            fix="correct --candidate",
        )
    )
    return None


def require_head(repository: Repository) -> str:
    """Return the commit that the working tree stands on.

    Raises:
        InvalidError: E_SPEC_COMMIT: there is none yet.

    """
    head = repository.find_head()
    if head is None:
        raise InvalidError(
            "the repository has no commit yet",
            code="E_SPEC_COMMIT",
            where=str(repository.root),
            expected="a commit that the study can stand on",
            fix="commit the text, then repeat",
        )
    return head
