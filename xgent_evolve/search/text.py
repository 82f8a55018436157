"""The text under study as files by their path in the repository, and a condition made of it.

A condition holds the text in the places where an agent finds it. A search changes files of the
repository. These functions lead from one to the other; a changed text is checked as strictly as
one that a JobSpec brings (requirements B3, B11, B14).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from xgent_evolve.adopt.diff import file_diff
from xgent_evolve.errors import XgentError
from xgent_evolve.freeze.conditions import condition_content
from xgent_evolve.freeze.places import spec_path
from xgent_evolve.freeze.protocol import FrozenCondition, Protocol
from xgent_evolve.freeze.reading import take_content
from xgent_evolve.freeze.rules import holds_rule
from xgent_evolve.freeze.skill_trees import SKILL_FILE
from xgent_evolve.freeze.snapshot import require_distinct_names
from xgent_evolve.freeze.surface import require_skill
from xgent_evolve.ids import Digest
from xgent_evolve.spec.parts import ProtectedRule, Target
from xgent_evolve.spec.paths import covered, last_name, within
from xgent_evolve.spec.surfaces import AGENTS_FILE, agents_paths, skill_root
from xgent_evolve.store.bundles import (
    Blobs,
    Entry,
    Tree,
    file_entry,
    load_bundle,
    make_tree,
    put_bundle,
)

MAX_TEXT_BYTES = 1024 * 1024
"""Largest file of a proposal: instructions are read by a model."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a proposal puts at a path."""

    content: bytes
    executable: bool


type Changes = Mapping[str, NewFile | None]
"""New state by path in the repository; None removes the file."""


def studied_text(target: Target, condition: FrozenCondition, blobs: Blobs) -> Tree:
    """Return the files that a candidate may change, as a condition shows them."""
    root = _root(target)
    if root is not None:
        skill = condition.skill
        inside = () if skill is None else load_bundle(blobs, skill.bundle)
        return make_tree(replace(entry, path=f"{root}/{entry.path}") for entry in inside)
    studied = _studied_agents(target)
    return make_tree(
        entry for entry in load_bundle(blobs, condition.agents) if covered(entry.path, studied)
    )


def changed_text(text: Tree, changes: Changes) -> Tree:
    """Return the text after a proposal's changes; the contents themselves are not kept."""
    files = {entry.path: entry for entry in text}
    for path, new in changes.items():
        if new is None:
            files.pop(path, None)
        else:
            files[path] = file_entry(path, new.content, executable=new.executable)
    return make_tree(files.values())


def with_text(
    target: Target, condition: FrozenCondition, name: str, text: Tree, blobs: Blobs
) -> FrozenCondition:
    """Return the condition `name` that shows `text` where `condition` shows another version."""
    skill, agents = condition.skill, condition.agents
    root = _root(target)
    if root is not None and skill is not None:
        inside = [replace(entry, path=entry.path.removeprefix(f"{root}/")) for entry in text]
        skill = skill.replaced(bundle=put_bundle(blobs, make_tree(inside)))
    elif root is None:
        studied = _studied_agents(target)
        others = [entry for entry in load_bundle(blobs, agents) if not covered(entry.path, studied)]
        agents = put_bundle(blobs, make_tree([*others, *text]))
    return FrozenCondition(
        id=name,
        skill=skill,
        fixed_skills=condition.fixed_skills,
        agents=agents,
        content=condition_content(skill, condition.fixed_skills, agents),
    )


def text_diff(before: Tree, after: Tree, read: Callable[[Digest], bytes]) -> str:
    """Return two versions of the text as a unified diff; modes and binary files by a line."""
    left, right = ({entry.path: entry for entry in tree} for tree in (before, after))
    lines: list[str] = []
    for path in sorted(left.keys() | right.keys()):
        old, new = left.get(path), right.get(path)
        if old == new:
            continue
        if old is not None and new is not None and old.mode != new.mode:
            lines.append(f"mode of {path}: {old.mode:04o} to {new.mode:04o}\n")
        contents = [
            None if entry is None or entry.blob is None else read(entry.blob)
            for entry in (old, new)
        ]
        lines += file_diff(path, *contents)
    return "".join(lines)


def change_problems(
    protocol: Protocol, parent: FrozenCondition, changes: Changes, blobs: Blobs
) -> list[str]:
    """Return every reason why a proposal's changes may not be measured; nothing for a sound one."""
    target = protocol.spec.target
    text = studied_text(target, parent, blobs)
    before = {entry.path: entry for entry in text}
    problems = [
        problem for path in sorted(changes) for problem in _path_problems(target, parent, path)
    ]
    problems += [
        problem
        for path, new in sorted(changes.items())
        if new is not None
        for problem in _content_problems(path, new.content)
    ]
    if problems:
        return problems
    try:
        after = changed_text(text, changes)
    except XgentError as error:
        return [_sentence(error)]
    if {entry.path: entry for entry in after} == before:
        return ["nothing is changed"]
    return [
        *_tree_problems(target, after, changes, blobs),
        *_rule_problems(target, after, changes, blobs),
    ]


def _path_problems(target: Target, parent: FrozenCondition, path: str) -> Iterator[str]:
    root = _root(target)
    allowed = [root] if root is not None else _studied_agents(target)
    if not covered(path, allowed):
        yield f"{path} is not at or below one of target.paths"
    elif root is None and last_name(path) != AGENTS_FILE:
        yield f"{path} is not an {AGENTS_FILE}"
    elif root is not None and parent.skill is not None:
        inside = path.removeprefix(f"{root}/")
        linked = [name for name in parent.skill.links if name == "." or within(inside, name)]
        if linked:
            yield f"{path} is a link in the repository, and a link is never written through"


def _content_problems(path: str, content: bytes) -> Iterator[str]:
    if len(content) > MAX_TEXT_BYTES:
        yield f"{path} has {len(content)} bytes, more than {MAX_TEXT_BYTES}"
    elif secrets := take_content(path, content).secrets:
        yield f"{path}:{secrets[0].line} holds what looks like a secret ({secrets[0].kind})"


def _tree_problems(target: Target, after: Tree, changes: Changes, blobs: Blobs) -> Iterator[str]:
    """Yield why the changed text could not be installed."""
    root = _root(target)
    try:
        require_distinct_names([entry.path for entry in after], "the proposal")
        if root is not None:
            inside = make_tree(
                replace(entry, path=entry.path.removeprefix(f"{root}/")) for entry in after
            )
            main = changes.get(f"{root}/{SKILL_FILE}")
            if main is not None:
                blobs.put(main.content)
            require_skill(inside, f"{root}/{SKILL_FILE}", blobs)
    except XgentError as error:
        yield _sentence(error)


def lost_rules(target: Target, text: Tree, read: Callable[[Entry], bytes]) -> list[ProtectedRule]:
    """Return every protected rule of the studied text that a version of it has not (B11)."""
    root = _root(target)
    studied = _studied_agents(target) if root is None else [root]
    files = {entry.path: entry for entry in text}
    return [
        rule
        for rule in target.protected_rules
        if covered(path := spec_path(rule.path), studied)
        and (path not in files or not holds_rule(read(files[path]), rule))
    ]


def _rule_problems(target: Target, after: Tree, changes: Changes, blobs: Blobs) -> Iterator[str]:
    def read(entry: Entry) -> bytes:
        new = changes.get(entry.path)
        if new is not None:
            return new.content
        return b"" if entry.blob is None else blobs.get(entry.blob)

    for rule in lost_rules(target, after, read):
        first = rule.text.strip().partition("\n")[0]
        yield f"{rule.path} no longer has the protected rule {first[:60]!r}"


def _sentence(error: XgentError) -> str:
    return f"{error.message}: {error.found}" if error.found else error.message


def _root(target: Target) -> str | None:
    named = skill_root(target)
    return None if named is None else spec_path(named)


def _studied_agents(target: Target) -> list[str]:
    return [spec_path(path) for path in agents_paths(target)]
