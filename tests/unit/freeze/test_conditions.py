"""Conditions show exactly what they declare, and no condition drops a protected rule."""

from __future__ import annotations

import shutil

import pytest

from xgent_evolve.errors import InvalidError, RefusedError, XgentError
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.rules import holds_rule, minimal_text
from xgent_evolve.spec.models_v1 import ProtectedRule
from xgent_evolve.store.bundles import load_bundle
from xgent_evolve.store.memory import MemoryBlobs


def build(study):
    blobs = MemoryBlobs()
    return build_protocol(study.load(), blobs), blobs


def files(blobs, digest):
    return {
        entry.path: blobs.get(entry.blob).decode() if entry.blob else f"-> {entry.target}"
        for entry in load_bundle(blobs, digest)
    }


def refused(study, kind=InvalidError):
    with pytest.raises(kind) as caught:
        build(study)
    assert caught.value.where
    assert caught.value.fix
    return caught.value


def override(study, path, text):
    study.spec["conditions"][2]["overrides"][path] = text


def test_an_override_adds_replaces_and_removes_files_and_keeps_modes(study):
    override(study, "skills/demo/scripts/go.sh", "echo gone\n")
    override(study, "skills/demo/new/file.md", "new\n")
    study.write("skills/demo/old.md", "old\n")
    study.commit()
    override(study, "skills/demo/old.md", None)
    protocol, blobs = build(study)
    base, cand = protocol.conditions[1:]
    assert "old.md" in files(blobs, base.skill.bundle)
    tree = load_bundle(blobs, cand.skill.bundle)
    assert {entry.path: entry.mode for entry in tree} == {
        "SKILL.md": 0o644,
        "new/file.md": 0o644,
        "scripts/go.sh": 0o755,
    }
    assert files(blobs, cand.skill.bundle)["scripts/go.sh"] == "echo gone\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/AGENTS.md", "x"),
        ("skills/other/SKILL.md", "x"),
        ("skills/demo/absent.md", None),
        ("skills/demo/x.md", "\ud800"),
        ("skills/demo/SKILL.md/below", "x"),
        ("skills/demo/scripts", "x"),
        ("skills/demo/skill.md", "x"),
    ],
)
def test_an_override_that_cannot_be_made_is_refused_with_its_place(study, path, text):
    override(study, path, text)
    error = refused(study, XgentError)
    assert error.exit_code in {2, 3}


def test_a_condition_without_the_level_candidate_takes_no_overrides(study):
    loaded = study.load()
    base = loaded.spec.conditions[1].replaced(overrides={"skills/demo/a.md": "x"})
    conditions = [loaded.spec.conditions[0], base, loaded.spec.conditions[2]]
    spec = loaded.spec.replaced(conditions=conditions)
    with pytest.raises(InvalidError) as caught:
        build_protocol(type(loaded)(spec, loaded.path, loaded.content), MemoryBlobs())
    assert caught.value.code == "E_SPEC_OVERRIDE"
    assert "$.conditions[1].overrides" in caught.value.where


def test_a_candidate_with_the_baselines_bytes_is_refused(study):
    study.spec["conditions"][2]["overrides"] = {
        "skills/demo/SKILL.md": (study.repo / "skills/demo/SKILL.md").read_text()
    }
    error = refused(study)
    assert error.code == "E_SPEC_NO_DIFFERENCE"
    assert "$.candidate_condition" in error.where


def test_conditions_of_equal_content_have_one_digest_whatever_their_names(study):
    study.spec["conditions"].append({"id": "again", "skill": "baseline", "agents": "fixed"})
    study.spec["mode"] = "smoke"
    protocol, _ = build(study)
    assert protocol.condition("again").content == protocol.condition("base").content


def test_a_candidate_that_the_agent_would_not_see_is_refused(study):
    study.spec["conditions"][2]["overrides"] = {"skills/demo/SKILL.md": "no header\n"}
    error = refused(study)
    assert error.code == "E_SKILL_YAML"
    assert "$.conditions[2].overrides" in error.where


def test_a_candidate_without_its_skill_file_is_refused(study):
    study.spec["conditions"][2]["overrides"] = {"skills/demo/SKILL.md": None}
    assert refused(study).code == "E_SKILL_MISSING_FIELD"


def test_a_fixed_skill_that_the_agent_would_not_see_is_refused(study):
    study.write("skills/other/SKILL.md", "---\nname: other\n---\n")
    study.commit()
    study.spec["source"]["fixed_skill_roots"] = ["skills/other"]
    error = refused(study)
    assert error.code == "E_SKILL_MISSING_FIELD"
    assert "skills/other/SKILL.md" in error.where


def test_an_agents_file_inside_a_skill_belongs_to_the_skill(study):
    study.write("skills/demo/AGENTS.md", "about the skill\n")
    study.commit()
    protocol, blobs = build(study)
    none, base, _ = protocol.conditions
    assert "skills/demo/AGENTS.md" not in files(blobs, none.agents)
    assert "AGENTS.md" in files(blobs, base.skill.bundle)


def test_a_linked_skill_file_arrives_as_a_file(study):
    study.write("src/shared.md", (study.repo / "skills/demo/SKILL.md").read_text())
    (study.repo / "skills/demo/SKILL.md").unlink()
    (study.repo / "skills/demo/SKILL.md").symlink_to("../../src/shared.md")
    (study.repo / "skills/demo/inner").symlink_to("scripts/go.sh")
    study.commit()
    protocol, blobs = build(study)
    shown = files(blobs, protocol.condition("base").skill.bundle)
    assert shown["SKILL.md"].startswith("---\nname: demo")
    assert shown["inner"] == "-> scripts/go.sh"


def test_a_skill_link_to_something_that_is_not_frozen_is_refused(study):
    (study.repo / "skills/demo/notes").symlink_to("../../private.txt")
    study.commit()
    assert refused(study, RefusedError).code == "E_FREEZE_LINK_ESCAPE"


def test_a_linked_skill_root_that_apply_may_write_is_refused(study):
    study.spec["authority"] |= {"allow_apply": True, "write_paths": ["skills/demo"]}
    (study.repo / "skills/demo").rename(study.repo / "skills/real")
    (study.repo / "skills/demo").symlink_to("real")
    study.commit()
    error = refused(study)
    assert error.code == "E_SPEC_TARGET"
    assert "$.target.paths[0]" in error.where


def test_agents_levels_show_the_frozen_the_changed_and_the_minimal_text(study):
    study.study_agents()
    study.spec["target"]["protected_rules"] = [
        {"path": "AGENTS.md", "text": "Never touch secrets."},
        {"path": "src/AGENTS.md", "text": "small functions", "match": "contains"},
    ]
    protocol, blobs = build(study)
    base, cand, small = (files(blobs, item.agents) for item in protocol.conditions)
    assert all(item.skill is None for item in protocol.conditions)
    assert base["AGENTS.md"] + "Be brief.\n" == cand["AGENTS.md"]
    assert base["src/AGENTS.md"] == cand["src/AGENTS.md"] == "Write small functions.\n"
    assert small == {"AGENTS.md": "Never touch secrets.\n", "src/AGENTS.md": "small functions\n"}


def test_minimal_has_no_file_without_a_protected_rule(study):
    study.study_agents()
    protocol, blobs = build(study)
    assert files(blobs, protocol.condition("small").agents) == {}


def test_an_agents_file_that_is_a_link_arrives_as_a_file(study):
    study.write("src/CLAUDE.md", "Be brief.\n")
    (study.repo / "src/AGENTS.md").unlink()
    (study.repo / "src/AGENTS.md").symlink_to("CLAUDE.md")
    study.commit()
    protocol, blobs = build(study)
    assert files(blobs, protocol.condition("base").agents)["src/AGENTS.md"] == "Be brief.\n"
    assert "src/CLAUDE.md" in files(blobs, protocol.case("one").workspace)


@pytest.mark.parametrize("path", ["AGENTS.override.md", "src/AGENTS.override.md"])
def test_text_that_the_agent_would_not_read_is_refused(study, path):
    study.study_agents()
    study.write(path, "shadow\n")
    study.commit()
    study.spec["source"]["paths"].append("AGENTS.override.md")
    study.spec["authority"]["export_paths"].append("AGENTS.override.md")
    if not path.startswith("src"):
        study.spec["target"]["paths"] = ["AGENTS.md"]
    else:
        study.spec["source"]["paths"].pop()
    error = refused(study)
    assert error.code == "E_SPEC_TARGET"
    assert path in error.found


def test_a_target_without_agents_text_is_refused(study):
    study.study_agents()
    study.write("src/lib/code.py", "x")
    study.commit()
    study.spec["target"]["paths"] = ["AGENTS.md", "src/lib"]
    error = refused(study)
    assert error.code == "E_SPEC_TARGET"
    assert "$.target.paths[1]" in error.where


def test_a_candidate_that_drops_a_protected_rule_is_refused_by_name(study):
    study.study_agents()
    study.spec["target"]["protected_rules"] = [
        {"path": "AGENTS.md", "text": "Run the tests first."}
    ]
    study.spec["conditions"][1]["overrides"] = {"AGENTS.md": "Run the tests first. Sometimes.\n"}
    error = refused(study)
    assert error.code == "E_SPEC_PROTECTED_RULE"
    assert "condition cand" in error.found
    assert "$.target.protected_rules[0]" in error.where


def test_a_candidate_that_removes_the_file_of_a_rule_is_refused(study):
    study.study_agents()
    study.spec["target"]["protected_rules"] = [
        {"path": "AGENTS.md", "text": "Run the tests first."}
    ]
    study.spec["conditions"][1]["overrides"] = {"AGENTS.md": None}
    error = refused(study)
    assert error.code == "E_SPEC_PROTECTED_RULE"
    assert "no AGENTS.md" in error.found


def test_a_rule_read_through_a_link_follows_the_conditions_text(study):
    study.study_agents()
    (study.repo / "src/RULES.md").symlink_to("AGENTS.md")
    study.commit()
    study.spec["target"]["protected_rules"] = [
        {"path": "src/RULES.md", "text": "Write small functions."}
    ]
    study.spec["conditions"] = study.spec["conditions"][:2]
    study.spec["conditions"][1]["overrides"] = {"src/AGENTS.md": "Write large functions.\n"}
    study.spec["cases"][0]["scope_paths"] = ["src"]
    error = refused(study)
    assert error.code == "E_SPEC_PROTECTED_RULE"


def test_a_rule_of_the_skill_is_not_asked_of_the_condition_without_it(study):
    study.spec["target"]["protected_rules"] = [
        {"path": "skills/demo/SKILL.md", "text": "Never push."}
    ]
    build(study)
    study.spec["conditions"][2]["overrides"] = {
        "skills/demo/SKILL.md": "---\nname: demo\ndescription: x\n---\nAlways push.\n"
    }
    assert refused(study).code == "E_SPEC_PROTECTED_RULE"


def test_a_rule_that_the_frozen_text_does_not_have_is_refused(study):
    study.spec["target"]["protected_rules"] = [{"path": "src/AGENTS.md", "text": "Not there."}]
    assert refused(study).code == "E_SPEC_PROTECTED_RULE"


@pytest.mark.parametrize(
    ("text", "match", "content", "holds"),
    [
        ("a b", "exact", b"x\na b\ny\n", True),
        ("a b", "exact", b"a b", True),
        ("a b", "exact", b"x a b\n", False),
        ("a b", "exact", b"a b \n", False),
        ("a\nb", "exact", b"x\r\na\r\nb\r\ny", True),
        ("a\nb", "exact", b"a\nx\nb\n", False),
        ("\na\n", "exact", b"a\n", True),
        ("a b", "contains", b"x a b y", True),
        ("a b", "contains", b"a  b", False),
        ("a\r\nb", "contains", b"xa\nby", True),
    ],
)
def test_a_rule_is_kept_as_whole_lines_or_anywhere(text, match, content, holds):
    rule = ProtectedRule(path="AGENTS.md", text=text, match=match)
    assert holds_rule(content, rule) is holds


def test_the_minimal_text_keeps_every_rule_of_its_file():
    rules = [
        ProtectedRule(path="AGENTS.md", text="one\ntwo\n"),
        ProtectedRule(path="other/AGENTS.md", text="not here"),
        ProtectedRule(path="AGENTS.md", text="three", match="contains"),
    ]
    text = minimal_text(rules, "AGENTS.md")
    assert text == b"one\ntwo\nthree\n"
    assert holds_rule(text, rules[0])
    assert holds_rule(text, rules[2])
    assert minimal_text(rules, "absent/AGENTS.md") == b""


def test_collected_skills_are_frozen_whole(study, inputs):
    for skill in sorted((inputs / "skills").iterdir()):
        if skill.is_dir():
            shutil.copytree(skill, study.repo / "skills" / skill.name)
            study.spec["source"].setdefault("fixed_skill_roots", []).append(f"skills/{skill.name}")
    study.commit()
    protocol, blobs = build(study)
    installed = {item.name: item.bundle for item in protocol.condition("none").fixed_skills}
    assert len(installed) >= 11
    for name, bundle in installed.items():
        origin = inputs / "skills" / name
        tree = load_bundle(blobs, bundle)
        assert [entry.path for entry in tree] == sorted(
            str(path.relative_to(origin)) for path in origin.rglob("*") if path.is_file()
        )
        for entry in tree:
            assert blobs.get(entry.blob) == (origin / entry.path).read_bytes()
            executable = bool((origin / entry.path).stat().st_mode & 0o100)
            assert entry.mode == (0o755 if executable else 0o644)
