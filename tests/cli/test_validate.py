"""validate: the whole truth about a JobSpec, and nothing else happens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Say = Callable[..., Any]


def snapshot(directory: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in directory.rglob("*")
    }


TEMPLATES = ["public-smoke.json", "quality-calibration.json", "skill-compare.json"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_filled_template_is_valid_and_nothing_is_written(
    workshop: Any, answer: Say, template: str
) -> None:
    path = workshop.fill(template)
    before = snapshot(workshop.directory)
    said = answer("validate", "--spec", path)
    assert (said.code, said.err) == (0, "")
    assert "; nothing was run and nothing was written" in said.out
    assert snapshot(workshop.directory) == before


@pytest.mark.parametrize("name", TEMPLATES)
def test_an_unfilled_template_names_every_open_place(answer: Say, name: str) -> None:
    template = Path(__file__).parents[2] / "examples" / name
    said = answer("validate", "--spec", template)
    assert (said.code, said.out) == (2, "")
    for name in set(re.findall(r"<[A-Z_]+>", template.read_text())):
        assert name in said.err
    assert said.err.count("placeholder") == said.err.count("error[")


def test_every_placeholder_of_a_template_is_explained() -> None:
    examples = Path(__file__).parents[2] / "examples"
    readme = (examples / "README.md").read_text()
    for template in examples.glob("*.json"):
        for name in set(re.findall(r"<[A-Z_]+>", template.read_text())):
            first = re.sub(
                r"<TASK_[A-Z]+_(?=ORIGIN|PATH|REQUIREMENT|IMAGE|RUBRIC)", "<TASK_ONE_", name
            )
            assert name in readme or first in readme, name


def test_the_answer_reads_from_question_to_next_step(workshop: Any, answer: Say) -> None:
    path = workshop.fill("skill-compare.json")
    text = answer("validate", "--spec", path).out
    text = re.sub(r"[0-9a-f]{64}|(?<=sha256 )[0-9a-f]{12}|(?<=blake3:)[0-9a-f]{12}", "#", text)
    assert text.startswith(
        "study     skill-compare\n"
        "question  Does the edited skill solve more tasks than the present one?\n"
        "protocol  blake3:#\n"
        "\n"
        "configuration\n"
    )
    _, _, end = text.partition("\nmay leave this machine\n")
    assert end == (
        "  allowed by authority.export_paths: skills/review\n"
        "  from the repository: 2 files, 67 B\n"
        "    skills/review/SKILL.md  60 B, sha256 #\n"
        "    skills/review/notes.md  7 B, sha256 #\n"
        + "".join(
            f"  from the task task-{name}: public 1 file, 31 B; grader 1 file, 42 B;"
            " oracle 1 file, 41 B\n"
            for name in ("one", "two", "three")
        )
        + "\n"
        "apply may write\n"
        "  allowed by authority.write_paths: skills/review\n"
        "    skills/review/SKILL.md\n"
        "    skills/review/notes.md\n"
        "  and new files of a candidate below the target's paths\n"
        "\n"
        "conditions\n"
        "  absent: skill absent, agents fixed, content blake3:#\n"
        "    removed  skills/review/SKILL.md  +0 -5 lines, 60 B, sha256 #\n"
        "    removed  skills/review/notes.md  +0 -1 lines, 7 B, sha256 #\n"
        "  present (baseline): skill baseline, agents fixed, content blake3:#\n"
        "  edited: skill candidate, agents fixed, content blake3:#\n"
        "    changed  skills/review/SKILL.md  +1 -1 lines, 60 B, sha256 # -> 61 B, sha256 #\n"
        "\n"
        "executions at most\n"
        "  agent 12 = 3 conditions x 2 cases x 2 repeats; at most 16 with retries"
        " (budget.max_trials - 8 reserved for confirmation)\n"
        "  grade 20 = 1 for every finished agent execution + 2 checked cases x 2"
        " (untouched, solved); at most 40 with 1 retry each\n"
        "  judge 0 = no judges in version 1\n"
        "  auxiliary 0 = no auxiliary scorer in version 1\n"
        "  optimizer 0 = no search in mode compare\n"
        "  confirmation 4 = 2 conditions x 1 case x 2 repeats; at most 8 with retries"
        " (budget.confirmation_trials)\n"
        "  reference 2 = 2 checked cases x 1 run of the reference solution without a model;"
        " at most 4 with 1 retry each\n"
        "\n"
        "warnings\n"
        "  warning[W_TOO_FEW_GROUPS]: the comparison can show no gain and exclude none: too few"
        " independent source groups are measured\n"
        f"    at        {path}:61:12: $.cases\n"
        "    expected  at least 6 groups (measurement.min_groups, and never fewer"
        " than 6)\n"
        '    found     2: "origin-one", "origin-two"\n'
        "    fix       add cases from other groups, or take the run as a trial of"
        " the set-up\n"
        "\n"
        "valid, with 1 warning; nothing was run and nothing was written\n"
        f"next      xgent-evolve run --spec {path} --output DIR\n"
    )


def test_version_2_shows_what_judging_costs_and_is_not_run(workshop: Any, answer: Say) -> None:
    path = workshop.fill("quality-calibration.json")
    said = answer("validate", "--spec", path).out
    assert (
        "  agent 8 = 2 equal conditions (noise) x 2 cases x 2 repeats;"
        " at most 16 with 1 retry each\n"
        "  grade 12 = 1 for every finished agent execution + 2 checked cases x 2 (untouched,"
        " solved); at most 144 with those of the calibration's artifacts\n"
        "  judge 16 = 2 for every graded delivery, and 2 for every artifact of the calibration;"
        " at most 60 (budget.max_trials)\n"
        "  auxiliary 0 = no auxiliary scorer is declared\n"
    ) in said
    assert "evaluation.rubrics.task-one" in said
    refused = answer("run", "--spec", path, "--output", workshop.directory / "run")
    assert refused.code == 2
    assert "E_MODE" in refused.err
    assert not (workshop.directory / "run").exists()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("two.json", lambda path: path.unlink()),
        ("calibration.json", lambda path: (path.unlink(), path.mkdir())),
        ("artifacts", lambda path: path.rename(path.with_name("elsewhere"))),
    ],
)
def test_judging_material_that_is_not_there_is_named(
    workshop: Any, answer: Say, name: str, make: Callable[[Path], object]
) -> None:
    path = workshop.fill("quality-calibration.json")
    make(workshop.directory / "evaluation" / name)
    said = answer("validate", "--spec", path)
    assert said.code == 2
    assert "E_SPEC_EVALUATION" in said.err
    assert f"evaluation/{name}" in said.err


def test_judging_material_behind_a_link_that_leads_out_is_refused(
    workshop: Any, answer: Say
) -> None:
    path = workshop.fill("quality-calibration.json")
    link = workshop.directory / "evaluation/artifacts/hosts"
    link.symlink_to("/etc/hosts")
    said = answer("validate", "--spec", path)
    assert said.code == 3
    assert "E_FREEZE_LINK_ESCAPE" in said.err


def test_the_configuration_marks_what_the_job_spec_did_not_say(workshop: Any, answer: Say) -> None:
    said = answer("validate", "--spec", workshop.fill("skill-compare.json")).out
    lines = [line.split() for line in said.splitlines()]
    assert ["budget.max_trials", "24"] in lines
    assert ["budget.max_candidates", "0", "(default)"] in lines
    assert ["measurement.min_gain", "0.1"] in lines
    assert ["runtime.cpus", "2", "(default)"] in lines


def test_diff_shows_the_changed_lines(workshop: Any, answer: Say) -> None:
    path = workshop.fill("skill-compare.json")
    said = answer("validate", "--spec", path, "--diff").out
    assert "      --- baseline/skills/review/SKILL.md\n" in said
    assert "      +++ condition/skills/review/SKILL.md\n" in said
    assert "      -Look once.\n      +Look twice.\n" in said


def test_control_characters_of_a_file_never_reach_the_terminal(workshop: Any, answer: Say) -> None:
    path = workshop.fill("skill-compare.json")
    document = json.loads(path.read_text())
    document["conditions"][2]["overrides"]["skills/review/evil.md"] = "\x1b]0;owned\x07\x1b[31mred"
    said = answer("validate", "--spec", workshop.edit(path, **document), "--diff").out
    assert "      +red\n" in said
    assert "\x1b" not in said
    assert "\x07" not in said


def test_json_tells_the_same_facts(workshop: Any, answer: Say) -> None:
    path = workshop.fill("skill-compare.json")
    said = answer("validate", "--json", "--diff", "--spec", path)
    facts = json.loads(said.out)
    assert (said.code, said.err, facts["type"]) == (0, "", "validation")
    assert facts["configuration"]["measurement"]["confidence"] == 0.95
    assert [file["path"] for file in facts["export"]["files"]] == [
        "skills/review/SKILL.md",
        "skills/review/notes.md",
    ]
    assert facts["write"]["files"] == ["skills/review/SKILL.md", "skills/review/notes.md"]
    edited = facts["conditions"][2]
    (change,) = edited["changes"]
    sizes = change["before"]["size"], change["after"]["size"]
    assert (change["kind"], sizes) == ("changed", (60, 61))
    assert "+Look twice." in change["diff"]
    assert facts["bounds"] == {
        "agent": 16,
        "grade": 40,
        "judge": 0,
        "auxiliary": 0,
        "optimizer": 0,
        "confirmation": 8,
        "probe": 0,
        "reference": 4,
    }


def test_two_validations_of_one_study_agree(workshop: Any, answer: Say) -> None:
    path = workshop.fill("skill-compare.json")
    assert answer("validate", "--json", "--spec", path) == answer(
        "validate", "--json", "--spec", path
    )


def test_a_study_whose_repository_moved_is_refused_with_exit_3(workshop: Any, answer: Say) -> None:
    (workshop.directory / "repo" / "later.md").write_text("Later.\n")
    workshop.commit(workshop.directory / "repo")
    said = answer("validate", "--spec", workshop.fill("skill-compare.json"))
    assert said.code == 3
    assert "error[E_FREEZE_BASE]" in said.err


def test_the_faults_of_a_job_spec_are_listed_and_counted(workshop: Any, answer: Say) -> None:
    path = workshop.edit(workshop.fill("public-smoke.json"), modus="smoke", question="")
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "modus" in text)
    said = answer("validate", "--spec", path)
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        'error[E_SPEC_UNKNOWN_KEY]: the key "modus" is unknown\n'
        f"  at        {path}:{line}:3: $.modus\n"
        '  expected  "mode" (the nearest known key)\n'
        '  found     "modus"\n'
        '  fix       rename it to "mode", or remove it\n'
        "error[E_SPEC_VALUE]: the value is not allowed\n"
        f"  at        {path}:5:15: $.question\n"
        "  expected  text that is not blank\n"
        '  found     ""\n'
        "  fix       correct the value\n"
        "2 faults; nothing was run\n"
    )


def test_the_faults_of_a_job_spec_are_one_json_object(workshop: Any, answer: Say) -> None:
    path = workshop.edit(workshop.fill("public-smoke.json"), modus="smoke", question="")
    said = answer("validate", "--spec", path, "--json")
    error = json.loads(said.out)
    assert (said.code, said.err) == (2, "")
    assert (error["type"], error["code"], error["exit_code"]) == (
        "error",
        "E_SPEC_UNKNOWN_KEY",
        2,
    )
    assert {"message", "where", "expected", "found", "fix"} <= error.keys()
    assert [fault["code"] for fault in error["faults"]] == ["E_SPEC_UNKNOWN_KEY", "E_SPEC_VALUE"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "---\r\nname: review\r\ndescription: How to review.\r\n---\r\nLook once.\r\n",
            "line ends",
        ),
        ("---\nname: review\ndescription: How to review.\n---\nA\0B\n", "not text"),
    ],
)
def test_a_difference_that_has_no_lines_is_named(
    workshop: Any, answer: Say, text: str, shown: str
) -> None:
    path = workshop.fill("skill-compare.json")
    document = json.loads(path.read_text())
    document["conditions"][2]["overrides"] = {"skills/review/SKILL.md": text}
    said = answer("validate", "--spec", workshop.edit(path, **document), "--diff").out
    assert f"skills/review/SKILL.md: {'other ' if shown == 'line ends' else ''}{shown}" in said


def test_run_tells_the_warnings_before_it_visits_the_host(workshop: Any, answer: Say) -> None:
    skill = workshop.directory / "repo/skills/review/SKILL.md"
    skill.write_text(skill.read_text().replace("name: review", "name: other"))
    workshop.fillings["TARGET_GIT_SHA"] = workshop.commit(workshop.directory / "repo")
    path = workshop.fill("skill-compare.json")
    runtime = json.loads(path.read_text())["runtime"]
    workshop.edit(path, runtime=runtime | {"ssh": {"host": "127.0.0.1", "port": 1}})
    said = answer("run", "--spec", path, "--output", workshop.directory / "run")
    assert (said.code, "error[E_SSH_UNREACHABLE]" in said.err) == (4, True)
    assert "warning W_TOO_FEW_GROUPS: the comparison can show no gain" in said.err
    assert "warning W_SKILL_NAME: the skill's name is not its directory's name" in said.err
    assert said.err.index("W_SKILL_NAME") < said.err.index("visiting the host")
