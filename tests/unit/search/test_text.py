"""The text under study as files of the repository, and what a proposal may change of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.freeze.protocol import FrozenCondition, InstalledSkill
from xgent_evolve.search.text import (
    NewFile,
    change_problems,
    changed_text,
    studied_text,
    text_diff,
    with_text,
)
from xgent_evolve.spec.parts import ProtectedRule, Target
from xgent_evolve.store.bundles import file_entry, make_tree, put_bundle
from xgent_evolve.store.memory import MemoryBlobs

SKILL = "skills/team-conventions/SKILL.md"
AGENTS_TARGET = Target(
    repo="repo",
    base_commit="a" * 40,
    surface="agents",
    paths=["AGENTS.md", "src"],
    protected_rules=[ProtectedRule(path="AGENTS.md", text="Never push.")],
)


def text_of(searched: Any) -> str:
    (entry,) = studied_text(searched.protocol.spec.target, searched.baseline, searched.blobs)
    assert entry.path == SKILL
    return searched.blobs.get(entry.blob).decode()


def problems(searched: Any, changes: dict[str, NewFile | None]) -> list[str]:
    return change_problems(searched.protocol, searched.baseline, changes, searched.blobs)


def plain(text: str) -> NewFile:
    return NewFile(text.encode("utf-8", "surrogateescape"), executable=False)


def test_a_sound_change_has_no_problem(searched: Any) -> None:
    text = text_of(searched).replace("Conventions of the teams", "All conventions")
    assert problems(searched, {SKILL: plain(text)}) == []
    assert problems(searched, {SKILL: plain(text), f"{SKILL[:-8]}more.md": plain("More.\n")}) == []


REFUSED = {
    "a path outside": ({"AGENTS.md": plain("x")}, "not at or below one of target.paths"),
    "a path beside": ({"skills/team-conventions-2/SKILL.md": plain("x")}, "not at or below"),
    "the skill gone": ({SKILL: None}, "no SKILL.md"),
    "no header": ({SKILL: plain("# Conventions\n\nWork in the current directory only.\n")}, ""),
    "the rule gone": ({SKILL: plain("---\nname: a\ndescription: b\n---\n")}, "protected rule"),
    "the rule reworded": (
        {SKILL: plain("---\nname: a\ndescription: b\n---\nWork in the current directory.\n")},
        "protected rule",
    ),
    "a secret": (
        {f"{SKILL[:-8]}key": plain("token: ghp_" + "a1B2c3D4e5F6" * 3 + "\n")},
        "looks like a secret",
    ),
    "too much": ({f"{SKILL[:-8]}big.md": NewFile(b"x" * 1_048_577, False)}, "more than 1048576"),
    "a file below a file": ({f"{SKILL}/more.md": plain("x")}, "not a directory"),
    "two names that fold together": (
        {f"{SKILL[:-8]}A.md": plain("x"), f"{SKILL[:-8]}a.md": plain("y")},
        "one on file systems",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_is_refused_with(searched: Any, name: str) -> None:
    changes, words = REFUSED[name]
    found = problems(searched, changes)
    assert found
    assert any(words in problem for problem in found), found


def test_the_same_text_changes_nothing(searched: Any) -> None:
    assert problems(searched, {SKILL: plain(text_of(searched))}) == ["nothing is changed"]
    assert problems(searched, {}) == ["nothing is changed"]


def test_every_reason_is_told_at_once(searched: Any) -> None:
    found = problems(searched, {"AGENTS.md": plain("x"), "README.md": None})
    assert len(found) == 2


def test_what_is_a_link_in_the_repository_is_not_changed(searched: Any) -> None:
    skill = searched.baseline.skill.replaced(links={"SKILL.md": "../other/SKILL.md"})
    linked = searched.baseline.replaced(skill=skill)
    found = change_problems(searched.protocol, linked, {SKILL: plain("x")}, searched.blobs)
    assert "is a link in the repository" in found[0]


def test_a_condition_of_the_same_text_is_the_same_condition(searched: Any) -> None:
    target = searched.protocol.spec.target
    text = studied_text(target, searched.baseline, searched.blobs)
    again = with_text(target, searched.baseline, "candidate-1", text, searched.blobs)
    assert again.content == searched.baseline.content
    assert again.replaced(id="baseline") == searched.baseline


def agents_condition(blobs: MemoryBlobs, files: dict[str, bytes]) -> FrozenCondition:
    for content in files.values():
        blobs.put(content)
    bundle = put_bundle(blobs, make_tree(file_entry(path, text) for path, text in files.items()))
    skill = InstalledSkill(name="other", bundle=put_bundle(blobs, ()))
    return FrozenCondition(id="base", skill=None, fixed_skills=[skill], agents=bundle, content="x")


def test_other_instructions_stay_beside_the_changed_ones() -> None:
    blobs = MemoryBlobs()
    files = {"AGENTS.md": b"Top.\n", "src/AGENTS.md": b"Deep.\n", "doc/AGENTS.md": b"Other.\n"}
    condition = agents_condition(blobs, files)
    text = studied_text(AGENTS_TARGET, condition, blobs)
    assert [entry.path for entry in text] == ["AGENTS.md", "src/AGENTS.md"]
    changed = changed_text(text, {"AGENTS.md": plain("New.\n"), "src/AGENTS.md": None})
    blobs.put(b"New.\n")
    after = with_text(AGENTS_TARGET, condition, "candidate-1", changed, blobs)
    whole = studied_text(AGENTS_TARGET.replaced(paths=["AGENTS.md", "src", "doc"]), after, blobs)
    assert {entry.path: blobs.get(entry.blob) for entry in whole} == {
        "AGENTS.md": b"New.\n",
        "doc/AGENTS.md": b"Other.\n",
    }
    assert after.fixed_skills == condition.fixed_skills
    assert after.content != condition.content


def test_a_diff_names_new_removed_and_binary_files() -> None:
    blobs = MemoryBlobs()
    contents = {"a.md": b"one\ntwo\n", "b.md": b"gone\n", "c.bin": b"\xff\x00"}
    for content in (*contents.values(), b"one\n2\n", b"\xfe", b"new\n"):
        blobs.put(content)
    before = make_tree(file_entry(path, text) for path, text in contents.items())
    after = changed_text(
        before,
        {
            "a.md": NewFile(b"one\n2\n", executable=True),
            "b.md": None,
            "c.bin": NewFile(b"\xfe", executable=False),
            "d.md": NewFile(b"new\n", executable=False),
        },
    )
    assert text_diff(before, after, blobs.get).splitlines() == [
        "mode of a.md: 0644 to 0755",
        "--- a/a.md",
        "+++ b/a.md",
        "@@ -1,2 +1,2 @@",
        " one",
        "-two",
        "+2",
        "--- a/b.md",
        "+++ /dev/null",
        "@@ -1 +0,0 @@",
        "-gone",
        "binary file c.bin differs",
        "--- /dev/null",
        "+++ b/d.md",
        "@@ -0,0 +1 @@",
        "+new",
    ]


PATHS = st.one_of(
    st.sampled_from([SKILL, "AGENTS.md", f"{SKILL[:-8]}x", f"{SKILL[:-8]}x/y", "skills", ".."]),
    st.text(min_size=1, max_size=12).map(lambda name: f"{SKILL[:-8]}{name}"),
)


@given(
    st.dictionaries(
        PATHS,
        st.none() | st.builds(NewFile, st.binary(max_size=40), st.booleans()),
        max_size=4,
    )
)
def test_no_change_is_too_strange_to_be_judged(changes: dict[str, NewFile | None]) -> None:
    blobs = MemoryBlobs()
    skill = b"---\nname: a\ndescription: b\n---\n"
    blobs.put(skill)
    bundle = put_bundle(blobs, make_tree([file_entry("SKILL.md", skill)]))
    condition = FrozenCondition(
        id="base",
        skill=InstalledSkill(name="team-conventions", bundle=bundle),
        fixed_skills=[],
        agents=put_bundle(blobs, ()),
        content="x",
    )
    target = Target(
        repo="repo", base_commit="a" * 40, surface="skill", paths=["skills/team-conventions"]
    )

    class Spec:
        pass

    spec, protocol = Spec(), Spec()
    spec.target, protocol.spec = target, spec
    found = change_problems(protocol, condition, changes, blobs)
    if not found:
        changed_text(studied_text(target, condition, blobs), changes)
