"""What the junior colleague does, conversation by conversation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xgent_evolve.demo.conversation import Conversation, ListedSkill, Step
from xgent_evolve.demo.junior import Finish, Run, find_section, fits, next_move, sections

SKILL = ListedSkill("house-style", "House style for release notes.", "/app/skills/SKILL.md")
READING = "cat /app/skills/SKILL.md"
RECIPE = "echo one\necho two > notes"
TEXT = f"# House\n\n## Release notes\n\nWhy so.\n\n```sh\n{RECIPE}\n```\n"
PROMPT = "Start the release notes in the house style.\n\nTopic: release-notes\n"


def talk(prompt: str = PROMPT, *steps: Step, skills: tuple[ListedSkill, ...] = ()) -> Conversation:
    return Conversation(
        prompt=prompt,
        skills=skills,
        steps=steps,
        steps_of_prompt=steps,
        guidance=(),
        items=5,
        code_mode=True,
    )


def test_a_fitting_skill_is_read_before_anything_else() -> None:
    move = next_move(talk(skills=(SKILL,)))

    assert isinstance(move, Run)
    assert move.command == READING


def test_a_skill_that_does_not_fit_is_left_alone() -> None:
    other = ListedSkill("brewing", "How to make tea.", "/x/SKILL.md")

    move = next_move(talk(skills=(other,)))

    assert isinstance(move, Run)
    assert "cat" not in move.command.split()


def test_one_shared_word_is_not_a_fit() -> None:
    assert fits(SKILL, "Describe your style of release notes")
    assert not fits(SKILL, "Describe your style")
    assert not fits(SKILL, "Create a file called `hello.txt` containing exactly:")


def test_the_recipe_of_the_topic_is_run_as_it_stands() -> None:
    move = next_move(talk(PROMPT, Step(READING, TEXT), skills=(SKILL,)))

    assert isinstance(move, Run)
    assert move.command == RECIPE


def test_after_the_attempt_the_colleague_reports_and_stops() -> None:
    steps = (Step(READING, TEXT), Step(RECIPE, ""))

    assert isinstance(next_move(talk(PROMPT, *steps, skills=(SKILL,))), Finish)


def test_a_failed_reading_is_not_repeated() -> None:
    move = next_move(talk(PROMPT, Step(READING, "cat: no such file"), skills=(SKILL,)))

    assert isinstance(move, Run)
    assert move.command != READING


def test_a_new_prompt_asks_for_a_new_attempt() -> None:
    steps = (Step(READING, TEXT), Step(RECIPE, ""))
    later = replace(talk(PROMPT, *steps, skills=(SKILL,)), steps_of_prompt=())

    move = next_move(later)

    assert isinstance(move, Run)
    assert move.command == RECIPE


def test_agents_md_instructs_too_and_a_read_skill_outranks_it() -> None:
    agents = TEXT.replace("echo one", "echo agents")
    only_agents = replace(talk(), guidance=(agents,))
    both = replace(talk(PROMPT, Step(READING, TEXT), skills=(SKILL,)), guidance=(agents,))

    assert "echo agents" in next_move(only_agents).command
    assert next_move(both).command == RECIPE


def test_a_dictated_file_is_written_word_by_word() -> None:
    prompt = "Create a file called `a/b c.txt` here containing exactly:\n\n```\nit's\n  two\n```\n"

    move = next_move(talk(prompt))

    assert isinstance(move, Run)
    assert move.command == "mkdir -p a && printf '%s\\n' 'it'\"'\"'s\n  two' > 'a/b c.txt'"


def test_without_a_convention_something_plausible_is_tried() -> None:
    move = next_move(talk("Add `etc/app.ini` please.\n\nTopic: settings"))

    assert isinstance(move, Run)
    assert move.command.startswith("mkdir -p etc && printf ")
    assert move.command.endswith(" > etc/app.ini")


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "dir/", "a b"])
def test_a_guess_never_leaves_the_working_directory(name: str) -> None:
    move = next_move(talk(f"Look at `{name}`.\n\nTopic: settings"))

    assert isinstance(move, Run)
    assert move.command.endswith(" > settings.md")


def test_headings_inside_a_block_are_not_headings() -> None:
    text = "## Real\n```text\n## Not real\n```\n~~~sh\n# a comment\n```\ntrue\n~~~\n"

    assert [(section.heading, section.recipe) for section in sections(text)] == [
        ("Real", "# a comment\n```\ntrue")
    ]


def test_only_the_first_recipe_of_a_section_counts_and_a_late_section_wins() -> None:
    text = "## Tea\n```sh\none\n```\n```sh\ntwo\n```\n## Tea again\n```sh\nthree\n```\n"

    assert [section.recipe for section in sections(text)] == ["one", "three"]
    assert find_section((text,), "tea").recipe == "three"
    assert find_section((text,), "tea-again").recipe == "three"
    assert find_section((text,), "coffee") is None


def test_an_unclosed_block_is_no_recipe() -> None:
    assert sections("## Tea\n```sh\nrm -r tea\n") == []
