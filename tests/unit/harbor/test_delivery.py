"""A delivery that touches what it may not is the agent's failure (requirement F4)."""

from __future__ import annotations

import pytest

from xgent_evolve.harbor.artifacts import Delivery, RefusedFile
from xgent_evolve.harbor.delivery import find_hooks, find_refusal
from xgent_evolve.harbor.request import Change, FileFact
from xgent_evolve.spec.cases import Case
from xgent_evolve.spec.shape import fit

FILE = FileFact(kind="file", mode=0o644, sha256="0" * 64, size=3)


def case(*protected: str) -> Case:
    found, _ = fit(
        Case,
        {
            "id": "one",
            "source": {"kind": "local", "origin": "here"},
            "group": "g",
            "split": "search",
            "information_cutoff": "2026-01-01",
            "observable_requirements": ["It works."],
            "task_path": "task",
            "repo_path": "/app",
            "image": f"sha256:{'0' * 64}",
            "protected_paths": list(protected),
        },
    )
    assert found is not None
    return found


def delivery(*paths: str, large: str | None = None) -> Delivery:
    changes = [Change(path=path, before=None, after=FILE) for path in paths]
    refused = [] if large is None else [RefusedFile(path=large, size=1 << 30)]
    return Delivery(changes=changes, refused=refused)


@pytest.mark.parametrize(
    ("paths", "forbidden"),
    [
        (["src/a.py"], []),
        (["tests/a.py", "src/a.py"], ["tests/a.py"]),
        (["tests"], ["tests"]),
        (["testsuite", "src/tests/a.py", "tests2/a"], []),
        (["Makefile"], ["Makefile"]),
        (["100%25"], ["100%25"]),
    ],
)
def test_a_path_below_a_protected_one_is_forbidden(paths: list[str], forbidden: list[str]) -> None:
    refusal = find_refusal(delivery(*paths), case("tests", "Makefile", "100%"))
    if forbidden:
        assert refusal is not None
        assert (refusal.cause, list(refusal.paths)) == ("forbidden_path", forbidden)
    else:
        assert refusal is None


def test_removing_a_protected_file_is_touching_it() -> None:
    removed = Delivery(changes=[Change(path="tests/a", before=FILE, after=None)], refused=[])
    assert find_refusal(removed, case("tests")) is not None


def test_a_file_that_is_too_large_is_refused_by_name() -> None:
    refusal = find_refusal(delivery("a", large="huge.bin"), case())
    assert refusal is not None
    assert (refusal.cause, refusal.paths) == ("delivery_too_large", ("huge.bin",))
    protected = find_refusal(delivery(large="tests/huge.bin"), case("tests"))
    assert protected is not None
    assert protected.cause == "forbidden_path"


def test_an_empty_delivery_may_be_graded() -> None:
    assert find_refusal(delivery(), case("tests")) is None


def test_what_a_test_runner_carries_out_by_itself_is_found_wherever_it_lies() -> None:
    found = find_hooks(
        delivery("src/conftest.py", "conftest.py.txt", "my_conftest.py", "a.pth", "pytest.ini")
    )
    assert found == ("src/conftest.py", "a.pth", "pytest.ini")
    gone = Delivery(changes=[Change(path="conftest.py", before=FILE, after=None)], refused=[])
    assert find_hooks(gone) == ()
