"""A run directory appears whole or not at all, and knows where everything lies."""

from __future__ import annotations

import json
import uuid

import pytest

from xgent_evolve.errors import BusyError, InvalidError, RefusedError, StoreError
from xgent_evolve.ids import ExecutionId
from xgent_evolve.store.rundir import RunDir


@pytest.fixture
def run(tmp_path):
    return RunDir.create(tmp_path / "run")


def test_a_new_run_has_an_id_an_empty_journal_and_no_facts(run):
    uuid.UUID(run.run_id)
    assert RunDir.open(run.path).run_id == run.run_id
    with run.open_journal() as journal:
        assert journal.facts == []


def test_two_runs_have_two_ids(tmp_path):
    assert RunDir.create(tmp_path / "a").run_id != RunDir.create(tmp_path / "b").run_id


@pytest.mark.parametrize("kind", ["directory", "file", "dead link", "run"])
def test_an_existing_output_is_refused_and_left_alone(tmp_path, kind):
    path = tmp_path / "out"
    match kind:
        case "directory":
            path.mkdir()
        case "file":
            path.write_text("mine")
        case "dead link":
            path.symlink_to("nowhere")
        case _:
            RunDir.create(path)
    with pytest.raises(InvalidError) as caught:
        RunDir.create(path)
    assert caught.value.code == "E_OUTPUT_EXISTS"
    assert caught.value.exit_code == 2
    assert [item.name for item in tmp_path.iterdir()] == ["out"]


def test_an_output_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "out"
    with pytest.raises(InvalidError) as caught, RunDir.draft(path):
        path.mkdir()
    assert caught.value.code == "E_OUTPUT_EXISTS"
    assert list(tmp_path.iterdir()) == [path]
    assert list(path.iterdir()) == []


def test_a_draft_appears_with_its_content_or_not_at_all(tmp_path):
    path = tmp_path / "parent" / "run"
    with RunDir.draft(path) as draft:
        draft.write_protocol(b"{}")
        digest = draft.blobs.put(b"frozen")
        assert not path.exists()
    run = RunDir.open(path)
    assert run.run_id == draft.run_id
    assert run.protocol_path.read_bytes() == b"{}"
    assert run.blobs.get(digest) == b"frozen"
    assert [item.name for item in path.parent.iterdir()] == ["run"]


def test_a_failing_draft_leaves_nothing_and_its_error_is_not_changed(tmp_path):
    with pytest.raises(FileNotFoundError), RunDir.draft(tmp_path / "run"):
        (tmp_path / "absent").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_a_dead_makers_draft_is_removed_and_a_living_makers_is_not(tmp_path):
    dead = tmp_path / ".run.draft-dead"
    (dead / "blobs").mkdir(parents=True)
    with RunDir.draft(tmp_path / "run") as draft:
        assert not dead.exists()
        with pytest.raises(InvalidError), RunDir.draft(tmp_path / "run"):
            (tmp_path / "run").mkdir()
        assert draft.path.exists()
        (tmp_path / "run").rmdir()
    RunDir.open(tmp_path / "run")


@pytest.mark.parametrize("kind", ["nothing", "file", "directory", "other mark"])
def test_what_is_no_run_directory_is_refused(tmp_path, kind):
    path = tmp_path / "x"
    match kind:
        case "file":
            path.write_text("x")
        case "directory":
            path.mkdir()
        case "other mark":
            path.mkdir()
            (path / "run.json").write_text('{"type": "other"}')
        case _:
            pass
    with pytest.raises(RefusedError) as caught:
        RunDir.open(path)
    assert caught.value.code == "E_NOT_A_RUN"
    assert caught.value.exit_code == 3


def test_the_lock_is_for_one_and_sweeps_what_was_left(run):
    left = run.path / ".state.json.1-2-3.tmp"
    left.write_text("half")
    run.blobs.put(b"x")
    (run.path / "blobs" / "staging" / "left").write_text("half")
    with run.lock():
        assert not left.exists()
        assert list((run.path / "blobs" / "staging").iterdir()) == []
        with pytest.raises(BusyError):
            run.lock()
    with run.lock():
        pass


def test_a_frozen_protocol_never_changes(run):
    run.write_protocol(b"{}")
    run.write_protocol(b"{}")
    with pytest.raises(StoreError, match="never changes"):
        run.write_protocol(b"[]")
    assert run.protocol_path.read_bytes() == b"{}"


def test_the_state_is_replaced_whole(run):
    run.write_state({"phase": "a", "n": 1})
    run.write_state({"phase": "b"})
    assert json.loads(run.state_path.read_bytes()) == {"phase": "b"}
    with pytest.raises(TypeError):
        run.write_state({"share": 0.5})
    assert json.loads(run.state_path.read_bytes()) == {"phase": "b"}


def test_results_are_only_ever_added(run):
    run.append_results([{"attempt": 1, "status": "failed"}])
    run.append_results([{"attempt": 2}, {"attempt": 3}])
    rows = [json.loads(line) for line in run.results_path.read_bytes().splitlines()]
    assert [row["attempt"] for row in rows] == [1, 2, 3]
    assert rows[0]["status"] == "failed"


@pytest.mark.parametrize("torn", [b'{"attempt":', b"x" * 200_000])
def test_a_torn_last_row_is_cut_off_before_the_next(run, torn):
    run.append_results([{"attempt": 1}])
    with run.results_path.open("ab") as file:
        file.write(torn)
    run.append_results([{"attempt": 2}])
    assert run.results_path.read_bytes() == b'{"attempt":1}\n{"attempt":2}\n'


def test_the_files_of_an_execution_lie_below_its_uuid(run):
    name = ExecutionId(str(uuid.uuid4()))
    execution = run.execution(name)
    execution.write("intent.json", b"{}")
    assert execution.intent == run.path / "executions" / name / "intent.json"
    assert execution.intent.read_bytes() == b"{}"
    assert not execution.remote.exists()
    assert execution.artifacts.parent == execution.path


@pytest.mark.parametrize("name", ["../../x", "", "/etc", "a"])
def test_a_name_that_is_no_uuid_is_no_execution(run, name):
    with pytest.raises(ValueError, match=r"."):
        run.execution(ExecutionId(name))
