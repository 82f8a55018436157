"""A skill's header is read the way the agent reads it."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.skills import (
    SkillHeader,
    read_skill,
    read_skill_header,
    skill_warnings,
)

GOOD = b"---\nname: demo\ndescription: Does it.\n---\nbody\n"


def refusal(content):
    with pytest.raises(InvalidError) as caught:
        read_skill_header(content, "SKILL.md")
    assert caught.value.exit_code == 2
    assert caught.value.fix
    return caught.value.code, caught.value.where


def test_name_and_description_are_returned():
    assert read_skill_header(GOOD, "x") == SkillHeader("demo", "Does it.")


@pytest.mark.parametrize(
    ("header", "description"),
    [
        ("description: 'a: b # c'", "a: b # c"),
        ("description: |-\n  two\n  lines", "two\nlines"),
        ("description:\n  on the next line", "on the next line"),
        ("description: no", "no"),
        ("description: 2026-01-01", "2026-01-01"),
        ("description: 1:30", "1:30"),
        ("description: '~'", "~"),
        ("description: x\nallowed-tools: [a, b]\nmetadata: {a: {b: 1}}", "x"),
        ("description: x\nfirst: &a [1]\nsecond: *a", "x"),
    ],
)
def test_ordinary_yaml_is_understood(header, description):
    content = f"---\nname: demo\n{header}\n---\n".encode()
    assert read_skill_header(content, "x").description == description


def test_rules_and_sample_headers_in_the_body_do_not_matter():
    assert read_skill_header(GOOD + b"---\nname: [\n---\n", "x").name == "demo"


def test_windows_line_ends_and_a_missing_last_newline_are_fine():
    content = GOOD.replace(b"\n", b"\r\n").removesuffix(b"body\r\n").removesuffix(b"\r\n")
    assert read_skill_header(content, "x") == SkillHeader("demo", "Does it.")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "1:1"),
        (b"# Title\n", "1:1"),
        (b"\xef\xbb\xbf" + GOOD, "1:1"),
        (b"\n" + GOOD, "1:1"),
        (b"---\nname: demo\n", "1:1"),
        (b"---\n---\n", "2:1"),
        (b"---\njust text\n---\n", "2:1"),
        (b"---\n- a\n- b\n---\n", "2:1"),
        (b"---\nname: demo\ndescription: a: b\n---\n", "3:15"),
        (b"---\nname: demo\nname: other\ndescription: x\n---\n", "3:1"),
        (b"---\nname: demo\ndescription: x\nmeta: {a: 1, a: 2}\n---\n", "4:14"),
        (b"---\nname: [a]\ndescription: x\n---\n", "2:7"),
        (b"---\nname: *nowhere\n---\n", "2:7"),
        (b"---\nname: \xff\n---\n", "2:1"),
        (b"---\nname: a\x00b\n---\n", "2:1"),
        (b"---\nname: " + b"[" * 50_000 + b"\n---\n", "2:1"),
        (b"---\nname: " + b"x" * 70_000 + b"\n---\n", "1:1"),
    ],
)
def test_what_the_agent_could_not_read_is_an_error_with_its_place(content, place):
    assert refusal(content) == ("E_SKILL_YAML", f"SKILL.md:{place}")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"---\ndescription: x\n---\n", "1:1"),
        (b"---\nname:\ndescription: x\n---\n", "2:6"),
        (b"---\nname: ''\ndescription: x\n---\n", "2:7"),
        (b"---\nname: demo\n---\n", "1:1"),
        (b"---\nname: demo\ndescription: ~\n---\n", "3:14"),
        (b"---\nname: demo\ndescription: '  '\n---\n", "3:14"),
    ],
)
def test_a_skill_that_the_agent_would_drop_is_an_error_with_its_place(content, place):
    assert refusal(content) == ("E_SKILL_MISSING_FIELD", f"SKILL.md:{place}")


def test_every_collected_valid_skill_is_read(inputs):
    skills = sorted((inputs / "skills").glob("*/SKILL.md"))
    assert len(skills) >= 11
    for skill in skills:
        header = read_skill_header(skill.read_bytes(), str(skill))
        assert header.name
        assert header.description


@pytest.mark.parametrize(
    ("name", "code", "place"),
    [
        ("autoresearch", "E_SKILL_YAML", "3:204"),
        ("completion-check", "E_SKILL_YAML", "3:30"),
        ("hello", "E_SKILL_YAML", "1:1"),
        ("recall", "E_SKILL_YAML", "1:1"),
        ("commit", "E_SKILL_MISSING_FIELD", "1:1"),
    ],
)
def test_every_collected_skill_that_agents_drop_is_refused(inputs, name, code, place):
    content = (inputs / "skills_invalid" / name / "SKILL.md").read_bytes()
    assert refusal(content) == (code, f"SKILL.md:{place}")


@pytest.mark.parametrize("name", ["artifact_demo", "skill_find"])
def test_a_name_that_only_breaks_the_written_rules_is_not_refused(inputs, name):
    content = (inputs / "skills_invalid" / name / "SKILL.md").read_bytes()
    assert read_skill_header(content, name).description


@pytest.mark.parametrize(
    ("content", "code", "place"),
    [
        (b"---\nname: " + b"n" * 65 + b"\ndescription: x\n---\n", "E_SKILL_NAME", "2:7"),
        (b"---\nname: a\ndescription: x\nmetadata: text\n---\n", "E_SKILL_YAML", "4:11"),
        (b"---\nname: a\ndescription: x\nmetadata: [a]\n---\n", "E_SKILL_YAML", "4:11"),
        (
            b"---\nname: a\ndescription: x\nmetadata:\n  short-description: [a]\n---\n",
            "E_SKILL_YAML",
            "5:22",
        ),
        (b"---\nname: a\ndescription: x\n? [a, b]\n: c\n---\n", "E_SKILL_YAML", "4:3"),
    ],
)
def test_what_codex_was_seen_to_drop_is_an_error_with_its_place(content, code, place):
    assert refusal(content) == (code, f"SKILL.md:{place}")


@pytest.mark.parametrize("name", ["n" * 64, "é" * 64])
def test_lengths_are_counted_in_characters(name):
    content = f"---\nname: {name}\ndescription: {'é' * 1024}\n---\n".encode()
    assert read_skill(content, "x").faults == ()
    codes = [warning.code for warning in skill_warnings(content, "x", name)]
    assert codes == ([] if name.isascii() else ["W_SKILL_NAME"])
    longer = content.replace(b"description: ", b"description: x")
    codes = [warning.code for warning in skill_warnings(longer, "x", name)]
    assert codes[-1] == "W_SKILL_DESCRIPTION_LENGTH"


def test_both_missing_fields_are_told_at_once():
    faults = read_skill(b"---\nlicense: MIT\n---\n", "x").faults
    assert ["no name" in fault.message for fault in faults] == [True, False]


@pytest.mark.parametrize("name", ["Review", "a_b", "a--b", "-a", "a b"])
def test_a_name_that_breaks_the_written_rule_is_a_warning(name):
    content = f"---\nname: {name}\ndescription: x\n---\n".encode()
    (warning,) = skill_warnings(content, "SKILL.md", name)
    assert (warning.code, warning.where) == ("W_SKILL_NAME", "SKILL.md")


def test_the_collected_skills_break_just_these_written_rules(inputs):
    found = {
        (kind, path.parent.name): sorted({item.code for item in warnings})
        for kind in ("skills", "skills_invalid")
        for path in sorted((inputs / kind).glob("*/SKILL.md"))
        if (warnings := skill_warnings(path.read_bytes(), str(path), path.parent.name))
    }
    assert found == {
        ("skills", "claude-api"): ["W_SKILL_DESCRIPTION_LENGTH"],
        ("skills", "composition-patterns"): ["W_SKILL_NAME"],
        ("skills_invalid", "artifact_demo"): ["W_SKILL_NAME"],
        ("skills_invalid", "skill_find"): ["W_SKILL_NAME"],
    }
