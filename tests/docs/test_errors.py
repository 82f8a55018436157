"""docs/errors.md lists every error code of the package with the exit status that it ends in."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from xgent_evolve import errors

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "xgent_evolve"
TEXT = (ROOT / "docs" / "errors.md").read_text()

_CODE = re.compile(r"E_[A-Z]+(?:_[A-Z]+)*")
_WARNING = re.compile(r"W_[A-Z]+(?:_[A-Z]+)*")
_ROW = re.compile(r"^\| `(E_[A-Z_]+)` \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {code: (status.strip(), meaning, cure) for code, status, meaning, cure in _ROW.findall(TEXT)}
_WARNING_ROW = re.compile(r"^\| `(W_[A-Z_]+)` \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
WARNINGS = {code: (meaning, cure) for code, meaning, cure in _WARNING_ROW.findall(TEXT)}
CLASSES = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.XgentError)
}


def trees() -> Iterator[ast.Module]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield ast.parse(path.read_text(), str(path))


def codes(pattern: re.Pattern[str] = _CODE) -> set[str]:
    """Every code of the package: a text that is a code and nothing else."""
    return {
        node.value
        for tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and pattern.fullmatch(node.value)
    }


def raised() -> dict[str, set[int]]:
    """The exit status of every code that stands in the making of an error."""
    found: dict[str, set[int]] = defaultdict(set)
    for kind in CLASSES.values():
        if kind not in (errors.Interrupted, errors.XgentError):
            found[kind.code].add(kind.exit_code)
    for tree in trees():
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
                continue
            kind = CLASSES.get(call.func.id)
            for keyword in call.keywords:
                if kind and keyword.arg == "code":
                    for node in ast.walk(keyword.value):
                        if isinstance(node, ast.Constant) and node.value in ROWS:
                            found[str(node.value)].add(kind.exit_code)
    return found


def test_every_code_of_the_package_is_listed() -> None:
    assert codes() - set(ROWS) == set(), "add them to docs/errors.md"


def test_nothing_is_listed_that_the_package_does_not_have() -> None:
    assert set(ROWS) - codes() == set(), "remove them from docs/errors.md"


def test_the_listed_exit_status_is_the_one_of_the_code() -> None:
    wrong = {
        code: (sorted(statuses), ROWS[code][0])
        for code, statuses in raised().items()
        if code in ROWS
        and not statuses <= {int(status) for status in re.findall(r"\d+", ROWS[code][0])}
    }
    assert wrong == {}


def test_every_listed_code_has_a_meaning_and_a_cure() -> None:
    assert len(ROWS) == len(re.findall(r"^\| `E_", TEXT, re.MULTILINE)), "a row is malformed"
    for code, (_, meaning, cure) in ROWS.items():
        assert meaning.strip().endswith("."), code
        assert cure.strip().endswith("."), code


def test_every_warning_of_the_package_is_listed_and_no_other() -> None:
    assert set(WARNINGS) == codes(_WARNING), "docs/errors.md, section Warnings"
    assert len(WARNINGS) == len(re.findall(r"^\| `W_", TEXT, re.MULTILINE)), "a row is malformed"
    for code, (meaning, cure) in WARNINGS.items():
        assert meaning.strip().endswith("."), code
        assert cure.strip().endswith("."), code
