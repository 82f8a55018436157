"""All files or none: on a real disk, killed at every step, with a person who edits in between."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xgent_evolve.adopt import transaction
from xgent_evolve.adopt.plan import Change, FileState
from xgent_evolve.adopt.transaction import adopt
from xgent_evolve.adopt.worktree import WorkTree
from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import BusyError, RefusedError

OLD = {"AGENTS.md": "old agents\n", "skills/a/SKILL.md": "old skill\n", "gone.md": "to go\n"}
NEW = {
    "AGENTS.md": "new agents\n",
    "skills/a/SKILL.md": "new skill\n",
    "skills/b/ref/new.md": "made\n",
}


def state(text: str | None, *, executable: bool = False) -> FileState | None:
    return None if text is None else FileState(digest_bytes(text.encode()), executable)


def plan(old: dict[str, str], new: dict[str, str]) -> list[Change]:
    return [
        Change(path, state(old.get(path)), state(new.get(path)))
        for path in sorted({*old, *new})
        if old.get(path) != new.get(path)
    ]


TEXTS = {digest_bytes(text.encode()): text.encode() for text in (*OLD.values(), *NEW.values())}
CHANGES = plan(OLD, NEW)


def put(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def files(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def carry_out(root: Path, record: Path, changes: list[Change] = CHANGES) -> transaction.Adopted:
    return adopt(root, changes, TEXTS.__getitem__, record)


def test_every_kind_of_change_is_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    root = put(tmp_path / "repo", OLD)
    done = carry_out(root, tmp_path / "adoption.json")
    assert files(root) == NEW
    assert done.changed == ("AGENTS.md", "gone.md", "skills/a/SKILL.md", "skills/b/ref/new.md")
    assert carry_out(root, tmp_path / "adoption.json").changed == ()


def test_modes_stay_and_an_executable_bit_is_part_of_the_change(tmp_path: Path) -> None:
    root = put(tmp_path / "repo", {"a": "old agents\n", "b": "old skill\n"})
    (root / "a").chmod(0o640)
    (root / "b").chmod(0o600)
    changes = [
        Change("a", state(OLD["AGENTS.md"]), state(NEW["AGENTS.md"])),
        Change("b", state(OLD["skills/a/SKILL.md"]), state(NEW["AGENTS.md"], executable=True)),
    ]
    carry_out(root, tmp_path / "adoption.json", changes)
    assert [(root / name).stat().st_mode & 0o777 for name in "ab"] == [0o640, 0o700]


# One process imports everything once and forks for each kill: a fork of the test's own process
# would take its threads' locks along.
STORY = """
import os, shutil, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_transaction import OLD, carry_out, put
from xgent_evolve.store import crashpoints

def killed_at(root, record, number):
    child = os.fork()
    if child == 0:
        crashpoints._at = str(number)
        carry_out(root, record)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0

place, again = Path(sys.argv[2]), sys.argv[3] == "again"
for number in range(1, 100):
    here = place / ("again" if again else str(number))
    root = here / "repo"
    if not root.exists():
        put(root, OLD)
    if not killed_at(root, here / "adoption.json", number):
        if not again:
            shutil.rmtree(here)
        break
    print(number, flush=True)
"""


def kill_everywhere(place: Path, mode: str = "each") -> list[Path]:
    """Adopt once per crash point, killed there; return where (`again`: always in one place)."""
    done = subprocess.run(
        [sys.executable, "-c", STORY, Path(__file__).parent, place, mode],
        capture_output=True,
        text=True,
        check=True,
    )
    numbers = done.stdout.split()
    assert 15 < len(numbers) < 99, done.stderr
    return [place / ("again" if mode == "again" else number) for number in numbers]


def test_killed_at_every_step_it_is_old_or_new_after_the_next_apply(tmp_path: Path) -> None:
    for place in kill_everywhere(tmp_path):
        root = place / "repo"
        # While it is half done, the text of every file is somewhere, old or new.
        found = set(files(root).values())
        for path in OLD:
            assert {OLD[path], NEW.get(path)} & found or path == "gone.md"
        carry_out(root, place / "adoption.json")
        assert files(root) == NEW


def test_killed_at_every_step_a_later_edit_is_kept(tmp_path: Path) -> None:
    for place in kill_everywhere(tmp_path):
        root = place / "repo"
        (root / "AGENTS.md").write_text("a person's words\n")
        with pytest.raises(RefusedError) as caught:
            carry_out(root, place / "adoption.json")
        assert caught.value.code == "E_APPLY_CONFLICT"
        left = {path: text for path, text in files(root).items() if ".xgent-adopt-" not in path}
        assert left.pop("AGENTS.md") == "a person's words\n"
        # All the others together are old, or new where the last step had been taken.
        assert left in [{k: v for k, v in tree.items() if k != "AGENTS.md"} for tree in (OLD, NEW)]


def test_an_undo_that_is_killed_is_undone_again(tmp_path: Path) -> None:
    place = kill_everywhere(tmp_path, "again")[-1]
    assert files(place / "repo") == NEW


@pytest.mark.parametrize("fault", ["enospc", "eio", "eacces"])
def test_a_failing_disk_leaves_every_file_as_it_was(
    tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = {"enospc": 28, "eio": 5, "eacces": 13}
    for name in ("adopt.mkdir", "adopt.stage", "adopt.swap", "adopt.swapped"):
        root, record = put(tmp_path / name / "repo", OLD), tmp_path / name / "adoption.json"

        def fail(point: str, name: str = name) -> None:
            if point == name:
                raise OSError(numbers[fault], os.strerror(numbers[fault]))

        with monkeypatch.context() as patch:
            patch.setattr(transaction, "crash_point", fail)
            with pytest.raises(RefusedError) as caught:
                carry_out(root, record)
        assert caught.value.code == "E_APPLY_IO"
        assert files(root) == OLD
        assert not record.exists()


def test_an_edit_between_the_look_and_the_step_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = put(tmp_path / "repo", OLD)

    def edit(point: str) -> None:
        if point == "adopt.swap" and (root / "gone.md").exists():
            (root / "gone.md").write_text("saved in the last moment\n")

    monkeypatch.setattr(transaction, "crash_point", edit)
    with pytest.raises(RefusedError) as caught:
        carry_out(root, tmp_path / "adoption.json")
    assert caught.value.code == "E_APPLY_CONFLICT"
    assert files(root) == OLD | {"gone.md": "saved in the last moment\n"}


def test_what_is_written_into_the_old_file_through_an_open_handle_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = put(tmp_path / "repo", OLD)
    with (root / "AGENTS.md").open("a") as handle:

        def write(point: str) -> None:
            # Tidying up is about to begin: only the record is left to be written.
            if point == "adopt.tidy" and not handle.closed:
                handle.write("late\n")
                handle.close()

        monkeypatch.setattr(transaction, "crash_point", write)
        changes = [Change("gone.md", state(OLD["gone.md"]), None), *CHANGES[:1]]
        done = carry_out(root, tmp_path / "adoption.json", changes)
    assert [warning.split(":")[0] for warning in done.warnings] == ["W_APPLY_LATE_EDIT"]
    assert "old agents\nlate\n" in files(root).values()
    assert files(root)["AGENTS.md"] == NEW["AGENTS.md"]


def replace(path: Path, make) -> None:
    path.unlink()
    make(path)


def states(root: Path) -> list[tuple[str, int, int, int, int, int]]:
    """What a write would change of everything below `root`; reading changes the access time."""
    return sorted(
        (
            str(path),
            found.st_mode,
            found.st_ino,
            found.st_size,
            found.st_mtime_ns,
            found.st_ctime_ns,
        )
        for path in root.rglob("*")
        for found in [path.lstat()]
    )


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda root: (root / "AGENTS.md").write_text("old agents\r\n"), "E_APPLY_CONFLICT"),
        (lambda root: (root / "AGENTS.md").chmod(0o755), "E_APPLY_CONFLICT"),
        (lambda root: (root / "AGENTS.md").chmod(0o444), "E_APPLY_READONLY"),
        (lambda root: (root / "AGENTS.md").unlink(), "E_APPLY_CONFLICT"),
        (lambda root: replace(root / "AGENTS.md", Path.mkdir), "E_APPLY_CONFLICT"),
        (lambda root: replace(root / "AGENTS.md", os.mkfifo), "E_APPLY_CONFLICT"),
        (
            lambda root: replace(root / "AGENTS.md", lambda path: path.symlink_to("gone.md")),
            "E_APPLY_LINK",
        ),
        (lambda root: put(root, {"skills/b/ref/new.md": "mine"}), "E_APPLY_CONFLICT"),
        (lambda root: (root / "skills/b").symlink_to("/tmp"), "E_APPLY_LINK"),
        (lambda root: (root / "skills/b").write_text("a file"), "E_APPLY_LINK"),
    ],
    ids=["bytes", "mode", "read-only", "gone", "dir", "fifo", "link", "new", "dir link", "parent"],
)
def test_what_is_not_as_it_was_frozen_stands_in_the_way(tmp_path: Path, change, code) -> None:
    root = put(tmp_path / "repo", OLD)
    change(root)
    before = states(root)
    with pytest.raises(RefusedError) as caught:
        carry_out(root, tmp_path / "adoption.json")
    assert caught.value.code == code
    assert states(root) == before
    assert not (tmp_path / "adoption.json").exists()


def test_another_name_of_a_file_keeps_the_old_text_and_a_warning_says_so(tmp_path: Path) -> None:
    root = put(tmp_path / "repo", OLD)
    (tmp_path / "twin").hardlink_to(root / "AGENTS.md")
    done = carry_out(root, tmp_path / "adoption.json")
    assert done.warnings[0].startswith("W_APPLY_HARD_LINK: AGENTS.md has 2 names")
    assert (tmp_path / "twin").read_text() == OLD["AGENTS.md"]


def test_two_at_once_is_refused(tmp_path: Path) -> None:
    root = put(tmp_path / "repo", OLD)
    with transaction.lock_repository(root), pytest.raises(BusyError):
        carry_out(root, tmp_path / "adoption.json")
    assert files(root) == OLD


def test_an_adoption_that_was_interrupted_elsewhere_is_finished_there_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(30, os.strerror(30))

    first, second = put(tmp_path / "first", OLD), put(tmp_path / "second", OLD)
    monkeypatch.setattr(WorkTree, "remove", refuse)
    monkeypatch.setattr(WorkTree, "exchange", refuse)
    with pytest.raises(RefusedError) as caught:
        carry_out(first, tmp_path / "adoption.json")
    assert caught.value.code == "E_APPLY_INTERRUPTED"
    monkeypatch.undo()
    with pytest.raises(RefusedError) as caught:
        carry_out(second, tmp_path / "adoption.json")
    assert caught.value.code == "E_APPLY_INTERRUPTED"
    assert files(second) == OLD
    carry_out(first, tmp_path / "adoption.json")
    assert files(first) == NEW


NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/f", "g/h"])
TREES = st.dictionaries(NAMES, st.sampled_from(sorted({*OLD.values(), *NEW.values()})))


@settings(max_examples=60, deadline=None)
@given(old=TREES, new=TREES)
def test_any_tree_becomes_any_other(tmp_path_factory, old, new) -> None:
    place = tmp_path_factory.mktemp("any")
    root = put(place / "repo", old)
    root.mkdir(exist_ok=True)
    carry_out(root, place / "adoption.json", plan(old, new))
    assert files(root) == new
