"""A task's views are disjoint, complete, and never leak into each other."""

from __future__ import annotations

import os

import pytest

from xgent_evolve.errors import DriftError, InvalidError, RefusedError, TaskError
from xgent_evolve.freeze.views import freeze_views
from xgent_evolve.store.memory import MemoryBlobs


def freeze(study, number=0):
    blobs = MemoryBlobs()
    return freeze_views(study.load(), number, blobs), blobs


def refused(study, kind=TaskError, number=0):
    with pytest.raises(kind) as caught:
        freeze(study, number)
    assert caught.value.fix
    return caught.value


def paths(tree):
    return [entry.path for entry in tree]


def test_each_view_has_its_files_and_unlisted_files_are_in_none(study):
    views, blobs = freeze(study)
    assert paths(views.public) == ["instruction.md"]
    assert paths(views.grader) == ["tests/data/answer.txt", "tests/test.sh"]
    assert paths(views.oracle) == ["solution/solve.sh"]
    assert blobs.get(views.prompt) == b"Make it print hello.\n"


def test_single_files_may_be_listed(study):
    (study.task / "data.csv").write_text("1,2\n")
    study.spec["cases"][0]["public_paths"] = ["instruction.md", "data.csv"]
    study.spec["cases"][0]["grader_paths"] = ["tests/test.sh"]
    views, _ = freeze(study)
    assert paths(views.public) == ["data.csv", "instruction.md"]
    assert paths(views.grader) == ["tests/test.sh"]


def test_modes_are_kept(study):
    (study.task / "tests/test.sh").chmod(0o755)
    views, _ = freeze(study)
    assert {entry.path: entry.mode for entry in views.grader} == {
        "tests/data/answer.txt": 0o644,
        "tests/test.sh": 0o755,
    }


def test_a_missing_listed_file_names_the_case_and_the_place_in_the_spec(study):
    study.spec["cases"][1]["grader_paths"] = ["tests/test.sh", "tests/absent.py"]
    error = refused(study, number=1)
    assert error.code == "E_SPEC_TASK_FILE"
    assert error.exit_code == 2
    assert "$.cases[1].grader_paths[1]" in error.where
    assert "case two" in error.where
    assert "tests/absent.py" in error.expected


@pytest.mark.parametrize(
    ("path", "view"),
    [
        ("instruction.md", "public"),
        ("tests/test.sh", "grader"),
        ("solution/solve.sh", "oracle"),
    ],
)
def test_a_view_without_its_main_file_is_refused(study, path, view):
    file = study.task / path
    file.rename(file.with_name("other"))
    if view == "public":
        study.spec["cases"][0]["public_paths"] = ["other"]
        with pytest.raises(InvalidError):
            freeze(study)
        return
    error = refused(study)
    assert error.code == "E_SPEC_TASK_FILE"
    assert f"{view}_paths" in error.where
    assert path in error.expected


def test_a_missing_task_directory_is_named(study):
    study.spec["cases"][0]["task_path"] = "tasks/absent"
    error = refused(study)
    assert error.code == "E_SPEC_TASK_FILE"
    assert "$.cases[0].task_path" in error.where


@pytest.mark.parametrize("content", [b"", b" \n\t", b"\xff\xfe"])
def test_an_instruction_that_is_no_text_is_refused(study, content):
    (study.task / "instruction.md").write_bytes(content)
    assert refused(study).code == "E_SPEC_TASK_FILE"


@pytest.mark.parametrize(
    "target", ["../tests/test.sh", "../../two/tests/test.sh", "/etc/passwd", "nowhere"]
)
def test_a_public_link_to_something_that_is_not_public_is_refused(study, target):
    (study.task / "docs").mkdir()
    (study.task / "docs/link").symlink_to(target)
    study.spec["cases"][0]["public_paths"] = ["instruction.md", "docs"]
    error = refused(study)
    assert error.code == "E_SPEC_TASK_VIEWS"
    assert "docs/link" in error.where


def test_a_link_inside_a_view_is_kept(study):
    (study.task / "tests/link").symlink_to("data/answer.txt")
    (study.task / "tests/folder").symlink_to("data")
    views, _ = freeze(study)
    assert {entry.path: entry.target for entry in views.grader if entry.kind == "link"} == {
        "tests/folder": "data",
        "tests/link": "data/answer.txt",
    }


def test_a_pipe_in_a_task_is_refused(study):
    os.mkfifo(study.task / "tests/pipe")
    assert refused(study, RefusedError).code == "E_FREEZE_SPECIAL_FILE"


def test_a_repository_in_a_task_is_refused(study, git_in):
    git_in(study.task / "tests", "init", "-q")
    assert refused(study, RefusedError).code == "E_FREEZE_NESTED_REPO"


def test_one_file_in_two_views_is_refused_even_through_directories(study):
    loaded = study.load()
    case = loaded.spec.cases[0].replaced(oracle_paths=["solution", "tests/data/answer.txt"])
    spec = loaded.spec.replaced(cases=[case])
    with pytest.raises(TaskError) as caught:
        freeze_views(type(loaded)(spec, loaded.path, loaded.content), 0, MemoryBlobs())
    assert caught.value.code == "E_SPEC_TASK_VIEWS"
    assert "tests/data/answer.txt in grader_paths and oracle_paths" in caught.value.found


@pytest.fixture
def public(study, git_in):
    """Turn the first case into a public one whose checkout is committed."""
    checkout = study.root / "tasks"
    git_in(checkout, "init", "-q")
    (checkout / "one/tests/test.sh").chmod(0o755)
    (checkout / "one/tests/link").symlink_to("data/answer.txt")
    git_in(checkout, "add", "-A")
    git_in(checkout, "commit", "-q", "-m", "tasks")
    study.spec["cases"][0]["source"] = {
        "kind": "public",
        "repo": "tasks",
        "commit": git_in(checkout, "rev-parse", "HEAD").strip(),
    }
    return study


def test_a_public_task_equal_to_its_commit_is_frozen(public):
    views, _ = freeze(public)
    assert len(views.grader) == 3


def test_a_public_task_may_be_the_top_of_its_checkout(study, git_in):
    git_in(study.task, "init", "-q")
    git_in(study.task, "add", "-A")
    git_in(study.task, "commit", "-q", "-m", "task")
    commit = git_in(study.task, "rev-parse", "HEAD").strip()
    study.spec["cases"][0]["source"] = {"kind": "public", "repo": "tasks/one", "commit": commit}
    freeze(study)
    (study.task / "tests/test.sh").write_text("exit 0\n")
    assert refused(study, DriftError).code == "E_FREEZE_PUBLIC"


def test_the_commit_counts_and_not_the_index_or_the_head(public, git_in):
    checkout = public.root / "tasks"
    (checkout / "one/tests/test.sh").write_text("changed\n")
    git_in(checkout, "commit", "-q", "-a", "-m", "later")
    error = refused(public, DriftError)
    assert error.code == "E_FREEZE_PUBLIC"
    assert error.where.endswith("one/tests/test.sh")


@pytest.mark.parametrize(
    "change", ["byte", "line ends", "mode", "added", "deleted", "link", "link to file"]
)
def test_any_difference_from_the_pinned_commit_is_refused_by_name(public, change):
    tests = public.task / "tests"
    answer, link = tests / "data/answer.txt", tests / "link"
    changed = answer
    match change:
        case "byte":
            answer.write_text("hellO\n")
        case "line ends":
            answer.write_text("hello\r\n")
        case "mode":
            answer.chmod(0o755)
        case "added":
            changed = tests / "data/more.txt"
            changed.write_text("x")
        case "deleted":
            answer.unlink()
        case "link":
            changed = link
            link.unlink()
            link.symlink_to("./data/answer.txt")
        case _:
            changed = link
            link.unlink()
            link.write_text("data/answer.txt")
    error = refused(public, DriftError)
    assert error.code == "E_FREEZE_PUBLIC"
    assert error.where == str(changed)
    assert error.expected != error.found


def test_a_public_task_outside_its_checkout_is_refused(public):
    public.spec["cases"][0]["task_path"] = "elsewhere"
    (public.root / "tasks/one").rename(public.root / "elsewhere")
    error = refused(public, InvalidError)
    assert error.code == "E_SPEC_PATH"


def test_an_unknown_pinned_commit_is_refused_with_its_place(public):
    public.spec["cases"][0]["source"]["commit"] = "2" * 40
    error = refused(public, InvalidError)
    assert error.code == "E_SPEC_COMMIT"
    assert "$.cases[0].source.commit" in error.where


@pytest.mark.parametrize("task", ["hello-world-task", "acp_smoke", "nanofirm-task"])
def test_collected_tasks_are_frozen_whole(study, inputs, task):
    study.spec["cases"][0]["task_path"] = str(inputs / "tasks" / task)
    views, blobs = freeze(study)
    for tree in (views.public, views.grader, views.oracle):
        for entry in tree:
            content = (inputs / "tasks" / task / entry.path).read_bytes()
            assert blobs.get(entry.blob) == content
