"""The text under study, and the background skills, as they lie in the frozen source."""

from __future__ import annotations

from dataclasses import dataclass

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.instructions import OVERRIDE_FILE
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import InstalledSkill
from xgent_evolve.freeze.skill_trees import SKILL_FILE, SkillFiles, skill_files
from xgent_evolve.freeze.skills import read_skill_header
from xgent_evolve.freeze.snapshot import Snapshot
from xgent_evolve.spec.check_tasks import uncovered_directories
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered, last_name
from xgent_evolve.spec.surfaces import AGENTS_FILE, agents_paths, skill_root
from xgent_evolve.store.bundles import Blobs, Entry, Tree, make_tree, put_bundle


@dataclass(frozen=True, slots=True)
class Surface:
    """What conditions start from, and what is the same in all of them."""

    origin: str
    """Where the source was frozen, for messages."""
    skill_root: str | None
    """Directory of the skill under test; None when only AGENTS.md files are under study."""
    fixed_roots: tuple[str, ...]
    """Directories of the background skills."""
    skill: tuple[Entry, ...]
    """Files of the skill under test, paths relative to its directory."""
    skill_links: dict[str, str]
    """Links of that skill that were replaced by what they lead to."""
    agents: tuple[Entry, ...]
    """AGENTS.md files outside all skills, paths relative to the repository."""
    background: dict[str, Entry]
    """Every other frozen file, by path in the repository."""

    @property
    def skill_roots(self) -> tuple[str, ...]:
        """Every skill directory of the study, the one under test first."""
        return (*filter(None, (self.skill_root,)), *self.fixed_roots)


def find_surface(loaded: LoadedSpec, snapshot: Snapshot) -> Surface:
    """Find the text under study in the frozen source.

    Raises:
        InvalidError: E_SPEC_TARGET: a target path or skill root names no text of that kind.
        RefusedError: E_FREEZE_LINK_ESCAPE: a link of the text leads to no frozen file.

    """
    target = loaded.spec.target
    fixed = tuple(spec_path(root) for root in loaded.spec.source.fixed_skill_roots)
    for number, root in enumerate(fixed):
        _require_directory(loaded, snapshot, root, "source", "fixed_skill_roots", number)
    named = skill_root(target)
    root = None if named is None else spec_path(named)
    _require_agents_text(loaded, snapshot)
    if named is not None and root is not None:
        _require_directory(loaded, snapshot, root, "target", "paths", target.paths.index(named))
    roots = (*filter(None, (root,)), *fixed)
    agents = tuple(
        snapshot.followed(entry)
        for entry in snapshot.without(roots)
        if last_name(entry.path) == AGENTS_FILE
    )
    own = {entry.path for entry in agents}
    skill = skill_files(snapshot, root) if root else SkillFiles([], {})
    outside = snapshot.without([root] if root else [])
    return Surface(
        origin=snapshot.origin,
        skill_root=root,
        fixed_roots=fixed,
        skill=tuple(skill.entries),
        skill_links=skill.links,
        agents=agents,
        background={entry.path: entry for entry in outside if entry.path not in own},
    )


def freeze_fixed_skills(
    loaded: LoadedSpec, surface: Surface, snapshot: Snapshot, blobs: Blobs
) -> list[InstalledSkill]:
    """Freeze the background skills, sorted by name.

    Raises:
        InvalidError: E_SPEC_SKILL_NAME: two skills would have one name; E_SKILL_YAML or
            E_SKILL_MISSING_FIELD: the agent would not see a skill.

    """
    _require_distinct_skills(loaded, surface)
    installed: list[InstalledSkill] = []
    for root in surface.fixed_roots:
        files = skill_files(snapshot, root)
        tree = make_tree(files.entries)
        require_skill(tree, f"{surface.origin}/{root}/{SKILL_FILE}", blobs)
        bundle = put_bundle(blobs, tree)
        installed.append(InstalledSkill(name=last_name(root), bundle=bundle, links=files.links))
    return sorted(installed, key=lambda skill: skill.name)


def require_skill(tree: Tree, where: str, blobs: Blobs) -> None:
    """Check that the agent would see the skill; `where` names its SKILL.md.

    Raises:
        InvalidError: E_SKILL_YAML or E_SKILL_MISSING_FIELD.

    """
    main = next((entry for entry in tree if entry.path == SKILL_FILE), None)
    if main is None or main.blob is None:
        raise InvalidError(
            f"the skill has no {SKILL_FILE}, so the agent would not see it",
            code="E_SKILL_MISSING_FIELD",
            where=where,
            expected=f"{SKILL_FILE} at the top of the skill",
            found=", ".join(entry.path for entry in tree[:5]) or "no file",
            fix=f"add {SKILL_FILE}; for a condition without the skill use level absent",
        )
    read_skill_header(blobs.get(main.blob), where)


def _require_distinct_skills(loaded: LoadedSpec, surface: Surface) -> None:
    names: dict[str, str] = {}
    if surface.skill_root is not None:
        names[last_name(surface.skill_root).casefold()] = surface.skill_root
    for number, root in enumerate(surface.fixed_roots):
        first = names.setdefault(last_name(root).casefold(), root)
        if first != root:
            raise InvalidError(
                "two skills would be installed under one name",
                code="E_SPEC_SKILL_NAME",
                where=place(loaded, "source", "fixed_skill_roots", number),
                expected="skill roots whose last parts differ",
                found=f"{first} and {root}",
                fix="rename one of the directories, or leave one out",
            )


def _require_directory(
    loaded: LoadedSpec, snapshot: Snapshot, root: str, *field: str | int
) -> None:
    entry = snapshot.entries.get(root)
    # Apply writes files, and never through a link.
    written = field[0] == "target" and loaded.spec.authority.allow_apply
    if not skill_files(snapshot, root).entries or (entry is not None and written):
        raise InvalidError(
            "a skill root is not a directory of frozen files",
            code="E_SPEC_TARGET",
            where=place(loaded, *field),
            expected=f"a directory with {SKILL_FILE}, listed in source.paths or source.new_paths",
            found="nothing frozen there" if entry is None else f"a {entry.kind}",
            fix="name the real directory, and list it in source.paths",
        )


def _require_agents_text(loaded: LoadedSpec, snapshot: Snapshot) -> None:
    """Refuse a target without text, and one whose text the agent would not read."""
    target = loaded.spec.target
    studied = agents_paths(target)
    names = {name: _directories(snapshot, name) for name in (AGENTS_FILE, OVERRIDE_FILE)}
    for number, name in enumerate(target.paths):
        if name not in studied:
            continue
        path = spec_path(name)
        is_file = last_name(path) == AGENTS_FILE
        directory = path.removesuffix(AGENTS_FILE).rstrip("/") if is_file else path
        below = [found for found in names[AGENTS_FILE] if _is_in(found, directory)]
        hiding = [
            found
            for found in names[OVERRIDE_FILE]
            if (found == directory if is_file else _is_in(found, directory))
        ]
        if hiding or not (is_file or below):
            raise InvalidError(
                f"{OVERRIDE_FILE} hides the text under study"
                if hiding
                else f"a target path names no {AGENTS_FILE}",
                code="E_SPEC_TARGET",
                where=place(loaded, "target", "paths", number),
                expected=f"an {AGENTS_FILE} that the agent reads, or a directory with one",
                found=f"{hiding[0]}/{OVERRIDE_FILE}".lstrip("/") if hiding else path,
                fix=f"leave {OVERRIDE_FILE} out of source.paths"
                if hiding
                else f"name an {AGENTS_FILE} file",
            )
        if not is_file and loaded.spec.mode == "search":
            _require_tasks_there(loaded, number, below)


def _require_tasks_there(loaded: LoadedSpec, number: int, directories: list[str]) -> None:
    """Refuse a search that may change nested text which no measured task is subject to."""
    if uncovered := uncovered_directories(loaded.spec, directories):
        raise InvalidError(
            "no measured task works where these nested instructions apply",
            code="E_SPEC_TARGET",
            where=place(loaded, "target", "paths", number),
            expected="a case of kind repo with scope_paths in every such directory",
            found=f"none in {uncovered[0]}, which has an {AGENTS_FILE}",
            fix="say in cases[].scope_paths where the tasks work, or name the files to change",
        )


def _directories(snapshot: Snapshot, name: str) -> list[str]:
    """Return the directories that hold a file of that name; the top is the empty path."""
    return [path.rpartition("/")[0] for path in snapshot.entries if last_name(path) == name]


def _is_in(directory: str, top: str) -> bool:
    return not top or covered(directory, [top])
