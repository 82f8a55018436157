"""An installed skill is whole: what its links lead to outside arrives as files."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import RefusedError, SpecError
from xgent_evolve.freeze.advice import study_warnings
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs

SHARED = "---\nname: shared\ndescription: Shared.\n---\n"


def build(study):
    blobs = MemoryBlobs()
    return build_protocol(study.load(), blobs), blobs


def kinds(blobs, skill):
    return {entry.path: entry.kind for entry in load_bundle(blobs, skill.bundle)}


def background(study, *roots):
    study.spec["source"]["fixed_skill_roots"] = list(roots)
    study.commit()


def refused(study):
    with pytest.raises(RefusedError) as caught:
        build(study)
    assert caught.value.fix
    return caught.value


def test_a_linked_skill_directory_arrives_with_its_files_and_the_link_is_recorded(study):
    study.write("src/shared/SKILL.md", SHARED)
    study.write("src/shared/run.sh", "true\n").chmod(0o755)
    (study.repo / "src/shared/again").symlink_to("run.sh")
    (study.repo / "skills/linked").symlink_to("../src/shared")
    background(study, "skills/linked")
    protocol, blobs = build(study)
    (skill,) = protocol.conditions[0].fixed_skills
    assert skill.name == "linked"
    assert kinds(blobs, skill) == {"SKILL.md": "file", "again": "link", "run.sh": "file"}
    assert skill.links == {".": "../src/shared"}


def test_a_linked_directory_inside_a_skill_arrives_as_files_too(study):
    study.write("src/refs/a.md", "a\n")
    study.write("src/refs/deep/b.md", "b\n")
    (study.repo / "src/refs/other").symlink_to("a.md")
    (study.repo / "skills/demo/refs").symlink_to("../../src/refs")
    study.commit()
    protocol, blobs = build(study)
    skill = protocol.conditions[1].skill
    assert {path for path in kinds(blobs, skill) if path.startswith("refs")} == {
        "refs/a.md",
        "refs/deep/b.md",
        "refs/other",
    }
    assert set(kinds(blobs, skill).values()) == {"file"}
    assert skill.links == {"refs": "../../src/refs", "refs/other": "a.md"}


def test_a_link_over_a_link_is_followed(study):
    study.write("src/real/SKILL.md", SHARED)
    (study.repo / "src/hop").symlink_to("real")
    (study.repo / "skills/linked").symlink_to("../src/hop")
    background(study, "skills/linked")
    protocol, blobs = build(study)
    assert kinds(blobs, protocol.conditions[0].fixed_skills[0]) == {"SKILL.md": "file"}


def test_equal_files_are_equal_content_whether_they_were_linked_or_not(study):
    study.write("src/text.md", "same\n")
    study.write("skills/demo/text.md", "same\n")
    study.commit()
    plain, _ = build(study)
    (study.repo / "skills/demo/text.md").unlink()
    (study.repo / "skills/demo/text.md").symlink_to("../../src/text.md")
    study.commit()
    linked, _ = build(study)
    assert linked.conditions[1].skill.links
    assert linked.conditions[1].content == plain.conditions[1].content


def test_the_agent_gets_what_a_link_leads_to_and_the_user_is_told(study):
    study.write("src/text.md", "same\n")
    (study.repo / "skills/demo/text.md").symlink_to("../../src/text.md")
    study.commit()
    loaded, blobs = study.load(), MemoryBlobs()
    found = study_warnings(loaded, build_protocol(loaded, blobs), blobs)
    (warning,) = (item for item in found if item.code != "W_TOO_FEW_GROUPS")
    assert warning.code == "W_SKILL_LINKED"
    assert warning.found == "text.md -> ../../src/text.md"


def test_a_link_to_a_directory_that_is_not_declared_is_refused(study):
    study.write("secret/a.md", "a\n")
    (study.repo / "skills/demo/refs").symlink_to("../../secret")
    study.commit()
    error = refused(study)
    assert error.code == "E_FREEZE_LINK_ESCAPE"
    assert error.where.endswith("skills/demo/refs")


def test_a_circle_of_links_is_refused(study):
    study.write("src/refs/a.md", "a\n")
    (study.repo / "src/refs/round").symlink_to("../refs")
    (study.repo / "skills/demo/refs").symlink_to("../../src/refs")
    study.commit()
    assert refused(study).code == "E_FREEZE_LINK_ESCAPE"


def test_links_that_multiply_are_refused_and_not_followed_for_ever(study):
    study.write("src/d0/a.md", "a\n")
    for level in range(1, 18):
        (study.repo / f"src/d{level}").mkdir()
        for name in ("left", "right"):
            (study.repo / f"src/d{level}/{name}").symlink_to(f"../d{level - 1}")
    (study.repo / "skills/demo/refs").symlink_to("../../src/d17")
    study.commit()
    assert "more than" in refused(study).found


def test_all_bad_skills_are_told_in_one_run(study):
    study.write("skills/colon/SKILL.md", "---\nname: colon\ndescription: a: b\n---\n")
    study.write("skills/nameless/SKILL.md", "---\nlicense: MIT\n---\n")
    study.spec["conditions"][2]["overrides"] = {"skills/demo/SKILL.md": "no header\n"}
    study.spec["source"]["fixed_skill_roots"] = ["skills/colon", "skills/nameless", "skills/other"]
    study.commit()
    with pytest.raises(SpecError) as caught:
        build(study)
    assert [(fault.code, fault.where.split("/")[-2:]) for fault in caught.value.faults[:3]] == [
        ("E_SKILL_YAML", ["colon", "SKILL.md:3:15"]),
        ("E_SKILL_MISSING_FIELD", ["nameless", "SKILL.md:1:1"]),
        ("E_SKILL_MISSING_FIELD", ["nameless", "SKILL.md:1:1"]),
    ]
    assert caught.value.faults[3].code == "E_SKILL_YAML"
    assert "$.conditions[2].overrides" in caught.value.faults[3].where
    assert len(caught.value.faults) == 4
