"""What a task.toml decides is frozen with its case, and what it may not is refused first."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from xgent_evolve.errors import SpecError, XgentError
from xgent_evolve.freeze.build import build_protocol, reachable
from xgent_evolve.freeze.protocol import FrozenCase, Protocol
from xgent_evolve.freeze.tasks import task_warnings
from xgent_evolve.store.memory import MemoryBlobs


def freeze(study: Any, text: str | None) -> tuple[Protocol, MemoryBlobs]:
    """Freeze the study with that task.toml in its first task."""
    if text is None:
        (study.task / "task.toml").unlink()
    else:
        (study.task / "task.toml").write_text(text)
    blobs = MemoryBlobs()
    return build_protocol(study.load(), blobs), blobs


def case(study: Any, text: str | None) -> FrozenCase:
    return freeze(study, text)[0].cases[0]


def codes(study: Any, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        freeze(study, text)
    assert caught.value.exit_code == 2
    assert all(fault.fix for fault in caught.value.faults)
    return [fault.code for fault in caught.value.faults]


@pytest.mark.parametrize("text", [None, ""])
def test_without_settings_the_job_spec_decides(study: Any, text: str | None) -> None:
    budget, frozen = study.spec["budget"], case(study, text)
    assert frozen.limits.agent_timeout_s == budget["trial_timeout_s"]
    assert frozen.limits.grade_timeout_s == 600
    assert frozen.limits.cpus == Decimal(2)
    assert frozen.limits.memory_mb == 2048
    assert (frozen.task_file is None) is (text is None)


def test_a_task_lowers_its_limits_and_never_raises_them(study: Any) -> None:
    study.spec["budget"]["trial_timeout_s"] = 100
    protocol, blobs = freeze(
        study,
        "[agent]\ntimeout_sec = 101\n[verifier]\ntimeout_sec = 30\n"
        "[environment]\ncpus = 0.5\nmemory = '8G'\n",
    )
    limits = protocol.cases[0].limits
    assert (limits.agent_timeout_s, limits.grade_timeout_s) == (100, 30)
    assert (limits.cpus, limits.memory_mb) == (Decimal("0.5"), 2048)
    assert [(item.code, item.message) for item in task_warnings(protocol, blobs)] == [
        ("W_TASK_LIMIT", "the task asks for agent.timeout_sec 101 and budget.trial_timeout_s"
         " grants 100"),
        ("W_TASK_LIMIT", "the task asks for environment.memory_mb 8192 and runtime.memory_mb"
         " grants 2048"),
    ]  # fmt: skip
    assert Protocol.from_bytes(protocol.to_bytes()) == protocol
    assert protocol.cases[0].task_file in reachable(protocol, blobs)


def test_variables_are_kept_apart(study: Any) -> None:
    text = '[environment.env]\nA = "1"\n[verifier.env]\nB = "2"\n[solution.env]\nC = "3"\n'
    variables = case(study, text).variables
    assert variables.everywhere == {"A": "1"}
    assert variables.verifier == {"B": "2"}
    assert variables.solution == {"C": "3"}


def test_all_faults_of_all_tasks_are_told_at_once(study: Any) -> None:
    second = study.root / "tasks" / "two" / "task.toml"
    second.write_text("[environment]\ngpus = 1\n")
    with pytest.raises(SpecError) as caught:
        freeze(study, "[environment]\nmemory = 'abc'\nworkdir = '/elsewhere'\n")
    places = [(fault.code, fault.where.rpartition("/")[0][-3:]) for fault in caught.value.faults]
    assert places == [
        ("E_SPEC_RESOURCE", "one"),
        ("E_SPEC_TASK_MISMATCH", "one"),
        ("E_SPEC_TASK_FEATURE", "two"),
    ]


def test_the_working_directory_must_be_the_one_of_the_case(study: Any) -> None:
    assert codes(study, "[environment]\nworkdir = '/app'\n") == ["E_SPEC_TASK_MISMATCH"]
    assert case(study, f"[environment]\nworkdir = '{study.spec['cases'][0]['repo_path']}'\n")


@pytest.mark.parametrize(
    ("image", "named", "outcome"),
    [
        (f"base@sha256:{'a' * 64}", "base:1", ""),
        (f"base@sha256:{'a' * 64}", "base", ""),
        (f"base@sha256:{'a' * 64}", "other:1", "W_TASK_IMAGE"),
        (f"base@sha256:{'a' * 64}", f"base@sha256:{'a' * 64}", ""),
        (f"base@sha256:{'a' * 64}", f"base@sha256:{'b' * 64}", "E_SPEC_TASK_MISMATCH"),
        (f"host:5000/base@sha256:{'a' * 64}", "host:5000/base:1", ""),
        (f"sha256:{'a' * 64}", "base:1", "W_TASK_IMAGE"),
        (f"sha256:{'a' * 64}", f"base@sha256:{'b' * 64}", "W_TASK_IMAGE"),
    ],
)
def test_a_disagreement_about_the_image_is_said(
    study: Any, image: str, named: str, outcome: str
) -> None:
    study.spec["cases"][0]["image"] = image
    text = f'[environment]\ndocker_image = "{named}"\n'
    if outcome.startswith("E_"):
        assert codes(study, text) == [outcome]
        return
    protocol, blobs = freeze(study, text)
    assert [item.code for item in task_warnings(protocol, blobs)] == [outcome] * bool(outcome)


@pytest.mark.parametrize(
    ("artifacts", "refused"),
    [
        ('["out.txt", "WORKDIR/a", "/logs/artifacts/b"]', False),
        ('["/etc/x.conf"]', True),
        ('["../x"]', True),
        ('[{source = "WORKDIR/a", service = "db"}]', True),
    ],
)
def test_artifacts_outside_the_working_directory_are_refused(
    study: Any, artifacts: str, refused: bool
) -> None:
    artifacts = artifacts.replace("WORKDIR", study.spec["cases"][0]["repo_path"])
    if refused:
        assert codes(study, f"artifacts = {artifacts}")[0].startswith("E_SPEC_TASK_")
    else:
        assert case(study, f"artifacts = {artifacts}")


def test_a_compose_file_is_refused_and_the_rest_of_environment_is_not(study: Any) -> None:
    (study.task / "environment").mkdir()
    (study.task / "environment" / "Dockerfile").write_text("FROM base\n")
    assert case(study, "")
    (study.task / "environment" / "docker-compose.yaml").write_text("services: {}\n")
    assert codes(study, "") == ["E_SPEC_TASK_FEATURE"]


def test_settings_behind_a_link_are_refused(study: Any) -> None:
    (study.task / "task.toml").unlink()
    (study.task / "task.toml").symlink_to("/etc/passwd")
    with pytest.raises(XgentError) as caught:
        build_protocol(study.load(), MemoryBlobs())
    assert (caught.value.code, caught.value.exit_code) == ("E_SPEC_TASK_FILE", 2)


def test_the_prompt_has_no_canary_and_the_file_keeps_it(study: Any) -> None:
    text = "<!-- canary 1 -->\n\nMake it print hello.\n"
    (study.task / "instruction.md").write_text(text)
    protocol, blobs = freeze(study, "")
    assert blobs.get(protocol.cases[0].instruction) == b"Make it print hello.\n"
    assert text.encode() in [blobs.get(digest) for digest in reachable(protocol, blobs)]
