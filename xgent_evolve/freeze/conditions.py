"""What each condition puts in front of the agent: the skill, the background, the AGENTS.md files.

A condition's text is the frozen text, plus its overrides where its level says `candidate`.
Protected rules are looked for in the finished content, so no level and no override can drop one
(requirements B3, B4, B10, B11).
"""

from __future__ import annotations

from typing import NamedTuple

from xgent_evolve.canonical import Json, digest_json
from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.protocol import FrozenCondition, InstalledSkill
from xgent_evolve.freeze.rules import minimal_text, require_rules
from xgent_evolve.freeze.skill_trees import SKILL_FILE
from xgent_evolve.freeze.snapshot import Snapshot, require_distinct_names
from xgent_evolve.freeze.surface import Surface, freeze_fixed_skills, require_skill
from xgent_evolve.ids import Digest
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.paths import covered, last_name, within
from xgent_evolve.spec.surfaces import AGENTS_FILE
from xgent_evolve.store.bundles import Blobs, Entry, Tree, file_entry, make_tree, put_bundle

type Changes = dict[str, bytes | None]
"""New content by path; None removes the file."""


class _Overrides(NamedTuple):
    """A condition's overrides, by the tree that they change."""

    skill: Changes
    """Paths relative to the skill's directory."""
    agents: Changes
    """Paths relative to the repository."""


def freeze_conditions(
    loaded: LoadedSpec, surface: Surface, snapshot: Snapshot, blobs: Blobs
) -> list[FrozenCondition]:
    """Freeze every condition of the JobSpec, in its order.

    Raises:
        InvalidError: E_SPEC_OVERRIDE, E_SPEC_PROTECTED_RULE, E_SPEC_NO_DIFFERENCE,
            E_SPEC_SKILL_NAME, E_SKILL_YAML, E_SKILL_MISSING_FIELD or E_BUNDLE_PATH.

    """
    fixed = freeze_fixed_skills(loaded, surface, snapshot, blobs)
    frozen = [
        _freeze_condition(loaded, number, surface, fixed, blobs)
        for number in range(len(loaded.spec.conditions))
    ]
    _require_difference(loaded, frozen)
    return frozen


def condition_content(
    skill: InstalledSkill | None, fixed_skills: list[InstalledSkill], agents: Digest
) -> Digest:
    """Return the digest of what a condition shows: equal text, equal digest."""
    document: Json = {
        "type": "xgent-evolve/condition/1",
        "skill": None if skill is None else _what_is_shown(skill),
        "fixed_skills": [_what_is_shown(item) for item in fixed_skills],
        "agents": agents,
    }
    return digest_json(document)


def _what_is_shown(skill: InstalledSkill) -> Json:
    """Return a skill without the links that its files were before: the agent sees files."""
    return skill.document(without={"links"})


def changed_tree(entries: tuple[Entry, ...], changes: Changes, blobs: Blobs) -> Tree:
    """Return the tree after replacing, adding and removing files; the modes of files stay.

    Raises:
        InvalidError: E_BUNDLE_PATH: a new file lies below another file.
        RefusedError: E_FREEZE_NAME_COLLISION: two names differ in case or Unicode form alone.

    """
    files = {entry.path: entry for entry in entries}
    for path, content in changes.items():
        before = files.pop(path, None)
        if content is not None:
            blobs.put(content)
            executable = before is not None and before.kind == "file" and before.mode == 0o755
            files[path] = file_entry(path, content, executable=executable)
    require_distinct_names(sorted(files), "the changed text")
    return make_tree(files.values())


def _freeze_condition(
    loaded: LoadedSpec, number: int, surface: Surface, fixed: list[InstalledSkill], blobs: Blobs
) -> FrozenCondition:
    overrides = _checked_overrides(loaded, number, surface)
    skill = _skill_tree(loaded, number, surface, overrides.skill, blobs)
    agents = _agents_tree(loaded, number, surface, overrides.agents, blobs)
    root = surface.skill_root
    shown = surface.background | {entry.path: entry for entry in agents}
    absent: list[str] = []
    installed = None
    if root is not None and skill is None:
        absent.append(root)
    elif root is not None and skill is not None:
        shown |= {f"{root}/{entry.path}": entry for entry in skill}
        links = {
            path: target
            for path, target in surface.skill_links.items()
            if path not in overrides.skill
        }
        bundle = put_bundle(blobs, skill)
        installed = InstalledSkill(name=last_name(root), bundle=bundle, links=links)
    require_rules(loaded, number, Snapshot(surface.origin, shown), absent, blobs)
    bundle = put_bundle(blobs, agents)
    return FrozenCondition(
        id=loaded.spec.conditions[number].id,
        skill=installed,
        fixed_skills=fixed,
        agents=bundle,
        content=condition_content(installed, fixed, bundle),
    )


def _skill_tree(
    loaded: LoadedSpec, number: int, surface: Surface, changes: Changes, blobs: Blobs
) -> Tree | None:
    """Return the skill under test in one condition; None when it is absent or not studied."""
    root = surface.skill_root
    if root is None or loaded.spec.conditions[number].skill == "absent":
        return None
    tree = changed_tree(surface.skill, changes, blobs)
    where = f"{surface.origin}/{root}/{SKILL_FILE}"
    if SKILL_FILE in changes:
        where = place(loaded, "conditions", number, "overrides", f"{root}/{SKILL_FILE}")
    require_skill(tree, where, blobs)
    return tree


def _agents_tree(
    loaded: LoadedSpec, number: int, surface: Surface, changes: Changes, blobs: Blobs
) -> Tree:
    if loaded.spec.conditions[number].agents != "minimal":
        return changed_tree(surface.agents, changes, blobs)
    rules = loaded.spec.target.protected_rules
    texts = {entry.path: minimal_text(rules, entry.path) for entry in surface.agents}
    kept = {path: text for path, text in texts.items() if text}
    blobs.put_many(list(kept.values()))
    return make_tree(file_entry(path, text) for path, text in kept.items())


def _checked_overrides(loaded: LoadedSpec, number: int, surface: Surface) -> _Overrides:
    condition = loaded.spec.conditions[number]
    checked = _Overrides({}, {})
    for name, text in condition.overrides.items():
        path = spec_path(name)
        root = surface.skill_root
        in_skill = root is not None and within(path, root)
        level = condition.skill if in_skill else condition.agents
        relative = path.removeprefix(f"{root}/") if in_skill else path
        existing = {entry.path for entry in (surface.skill if in_skill else surface.agents)}
        problem = None
        if not covered(name, loaded.spec.target.paths):
            problem = "it is not at or below one of target.paths"
        elif not in_skill and last_name(path) != AGENTS_FILE:
            problem = f"it is not an {AGENTS_FILE}"
        elif level != "candidate":
            problem = f"the {'skill' if in_skill else 'agents'} level of the condition is {level}"
        elif text is None and relative not in existing:
            problem = "it removes a file that is not frozen"
        elif text is not None and not _is_unicode(text):
            problem = "its text holds half of a surrogate pair"
        if problem is not None:
            raise InvalidError(
                f"an override cannot be made: {problem}",
                code="E_SPEC_OVERRIDE",
                where=place(loaded, "conditions", number, "overrides", name),
                expected="a file of the text under study, in a condition of level candidate",
                found=name,
                fix="correct the path or the level, or drop the override",
            )
        tree = checked.skill if in_skill else checked.agents
        tree[relative] = None if text is None else text.encode()
    return checked


def _require_difference(loaded: LoadedSpec, frozen: list[FrozenCondition]) -> None:
    """Refuse two conditions that put the same text in front of the agent (a smoke may)."""
    if loaded.spec.mode == "smoke":
        return
    first: dict[Digest, str] = {}
    compared = {loaded.spec.baseline_condition, loaded.spec.candidate_condition}
    for number, condition in enumerate(frozen):
        twin = first.setdefault(condition.content, condition.id)
        if twin != condition.id:
            is_compared = {twin, condition.id} == compared
            where = ("candidate_condition",) if is_compared else ("conditions", number)
            raise InvalidError(
                f"{condition.id} puts the same text in front of the agent as {twin}",
                code="E_SPEC_NO_DIFFERENCE",
                where=place(loaded, *where),
                expected=f"other content than that of {twin}",
                found=condition.content,
                fix="give it overrides that change something, or remove one of the two",
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
