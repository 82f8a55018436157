"""Text behind the agent's size limit is warned of, and a change that lies there alone refused."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.advice import STRICT, require_no_warnings, study_warnings
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.instructions import PROJECT_DOC_MAX_BYTES
from xgent_evolve.store.memory import MemoryBlobs

LIMIT = PROJECT_DOC_MAX_BYTES
LINE = "x" * 63 + "\n"


def warnings(study):
    """Every warning but that of the two groups, too few for a decision."""
    loaded, blobs = study.load(), MemoryBlobs()
    found = study_warnings(loaded, build_protocol(loaded, blobs), blobs)
    return tuple(item for item in found if item.code != "W_TOO_FEW_GROUPS")


def study_text(study, before, after):
    """Study one AGENTS.md text against another, with no file below it."""
    study.study_agents()
    study.spec["target"]["paths"] = ["AGENTS.md"]
    (study.repo / "src/AGENTS.md").unlink()
    study.spec["conditions"] = study.spec["conditions"][:2]
    study.spec["conditions"][1]["overrides"] = {"AGENTS.md": after}
    study.write("AGENTS.md", before)
    study.commit()


def test_a_text_within_the_limit_needs_no_warning(study):
    study_text(study, LINE * (LIMIT // 64), "y" + LINE * (LIMIT // 64 - 1))
    assert warnings(study) == ()


def test_the_cut_names_the_limit_the_first_lost_line_and_the_conditions(study):
    study_text(study, LINE * 511 + "é" * 33, "changed\n" + LINE * 600)
    first, second = warnings(study)
    assert first.code == second.code == "W_AGENTS_TRUNCATED"
    assert first.where == f"{study.repo}/AGENTS.md, line 512"
    assert "condition base" in first.message
    assert f"at most {LIMIT} bytes" in first.expected
    assert f"{LIMIT} of {511 * 64 + 66} bytes" in first.found
    assert "the first lost line is 512" in first.found
    assert "$.conditions[1].overrides" in second.where
    assert "condition cand" in second.message


def test_a_character_on_the_cut_is_told(study):
    study_text(study, "a" * (LIMIT - 1) + "é", "b" * LIMIT)
    (warning,) = warnings(study)
    assert "falls into a character" in warning.found


def test_a_change_behind_the_cut_is_refused_before_anything_is_paid(study):
    study_text(study, LINE * 600, LINE * 600 + "Never push.\n")
    with pytest.raises(InvalidError) as caught:
        warnings(study)
    error = caught.value
    assert (error.code, error.exit_code) == ("E_SPEC_CHANGE_UNREACHABLE", 2)
    assert "$.conditions[1].overrides" in error.where
    assert f"{LIMIT} of {600 * 64 + 12} bytes" in error.found


def test_a_change_on_both_sides_of_the_cut_is_only_warned_of(study):
    study_text(study, LINE * 600, "Never push.\n" + LINE * 600)
    assert {warning.code for warning in warnings(study)} == {"W_AGENTS_TRUNCATED"}


def test_a_nested_change_behind_the_root_files_text_is_refused(study):
    study.study_agents()
    study.write("AGENTS.md", LINE * 600)
    study.commit()
    study.spec["conditions"][1]["overrides"] = {"src/AGENTS.md": "Write long functions.\n"}
    study.spec["cases"][0]["scope_paths"] = ["src"]
    with pytest.raises(InvalidError) as caught:
        warnings(study)
    assert caught.value.code == "E_SPEC_CHANGE_UNREACHABLE"
    assert "src/AGENTS.md (0 of" in caught.value.found


def test_a_nested_file_under_study_is_told_to_be_loaded_on_demand_alone(study):
    study.study_agents()
    study.spec["conditions"][1]["overrides"] = {"src/AGENTS.md": "Write long functions.\n"}
    study.spec["cases"][0]["scope_paths"] = ["src"]
    assert [warning.code for warning in warnings(study)] == ["W_AGENTS_NESTED"]


def test_an_import_that_nobody_follows_is_warned_of_once(study):
    study_text(study, "@CLAUDE.md\n", "Be brief.\n")
    (warning,) = warnings(study)
    assert warning.code == "W_AGENTS_IMPORT"
    assert warning.where == f"{study.repo}/AGENTS.md"


def test_a_study_without_cases_of_its_repository_delivers_no_text(study):
    study.write("AGENTS.md", LINE * 600)
    study.commit()
    for case in study.spec["cases"]:
        case["source"] = {"kind": "local", "origin": "here"}
    assert warnings(study) == ()


def test_strict_turns_every_warning_into_its_error(study):
    study_text(study, LINE * 600, "@x\n")
    found = warnings(study)
    with pytest.raises(InvalidError) as caught:
        require_no_warnings(found)
    assert [fault.code for fault in caught.value.faults] == [
        STRICT[warning.code] for warning in found
    ]
    require_no_warnings(())


def test_a_task_without_a_reference_solution_is_stated_as_unchecked(study):
    (study.task / "solution" / "solve.sh").unlink()
    study.spec["cases"][0] |= {"oracle_paths": [], "oracle_check": "unchecked"}
    (warning,) = warnings(study)
    assert warning.code == "W_TASK_UNCHECKED"
    assert "$.cases[0].oracle_check" in warning.where


@pytest.mark.parametrize(("asked", "warned"), [(0.8, True), (0.899, True), (0.9, False)])
def test_a_confidence_at_which_the_level_is_not_kept_is_warned_of(study, asked, warned):
    study.spec["measurement"]["confidence"] = asked
    told = [item for item in warnings(study) if item.code == "W_LOW_CONFIDENCE"]
    assert len(told) == warned
    if warned:
        assert "$.measurement.confidence" in told[0].where
        assert (told[0].expected, told[0].found) == ("at least 0.9", str(asked))


@pytest.mark.parametrize(("groups", "asked", "warned"), [(5, 2, True), (6, 2, False), (6, 7, True)])
def test_a_comparison_that_can_never_decide_is_warned_of(study, groups, asked, warned):
    study.spec["cases"].clear()
    for number in range(groups + 2):
        study.add_case(f"case-{number}", group=f"group-{number % groups}")
    study.add_case("held", split="confirmation")
    study.spec["measurement"]["min_groups"] = asked
    study.spec["budget"]["max_trials"] = 100
    loaded, blobs = study.load(), MemoryBlobs()
    found = study_warnings(loaded, build_protocol(loaded, blobs), blobs)
    told = [item for item in found if item.code == "W_TOO_FEW_GROUPS"]
    assert len(told) == warned
    if warned:
        assert told[0].found.startswith(f'{groups}: "group-0", "group-1"')
        assert f"at least {max(6, asked)} groups" in told[0].expected
        assert "$.cases" in told[0].where
