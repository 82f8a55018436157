"""Safe relative paths, and which lies within which."""

from __future__ import annotations

import re

import pytest

from xgent_evolve.spec.paths import (
    SAFE_PATH_PATTERN,
    covered,
    last_name,
    overlaps,
    unsafe_reason,
    within,
)


@pytest.mark.parametrize(
    "path", ["a", "a/b.md", ".hidden", "...", "..a", "a..", "ä/文", "a b", "x" * 255, "%2e%2e"]
)
def test_plain_paths_are_safe(path: str) -> None:
    assert unsafe_reason(path) is None
    assert re.search(SAFE_PATH_PATTERN, path)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "empty"),
        ("/etc/passwd", "absolute"),
        ("..", "'..'"),
        ("a/../b", "'..'"),
        ("./a", "'.'"),
        (".", "'.'"),
        ("a//b", "empty part"),
        ("a/", "empty part"),
        ("a\\..\\b", "backslash"),
        ("a\0b", "U+0000"),
        ("a\nb", "U+000A"),
        ("a\x9bb", "U+009B"),
        ("~/x", "home"),
        (".git/config", "Git"),
        ("sub/.GIT/hooks", "Git"),
        ("x" * 256, "longer"),
        ("x/" * 2100 + "y", "longer"),
    ],
)
def test_tricks_are_refused_with_their_reason(path: str, reason: str) -> None:
    assert reason in (unsafe_reason(path) or "")


def test_containment_goes_by_parts_and_not_by_letters() -> None:
    assert within("a/b", "a")
    assert within("a", "a")
    assert not within("ab", "a")
    assert overlaps("a", "a/b")
    assert overlaps("a/b", "a")
    assert not overlaps("a/b", "a/c")
    assert covered("x/y", ["a", "x"])
    assert not covered("x/y", [])
    assert last_name("a/b/c.md") == "c.md"
