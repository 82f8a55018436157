"""Untrusted text becomes printable, and credentials leave addresses."""

from __future__ import annotations

import pytest

from xgent_evolve.redact import printable, without_userinfo


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 文 😀\n\ttext", "plain é 文 😀\n\ttext"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jclear", "clear"),
        ("\x1bcreset", "reset"),
        ("over\rwrite\b\x00\x7f", "overwrite"),
        ("left\u202eright\u2066", "leftright"),
        ("half\ud800", "half"),
        ("\x1b", ""),
        ("\x1b[\x1b[31mx", "x"),
    ],
)
def test_only_text_newline_and_tab_are_left(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_stripping_twice_changes_nothing_more() -> None:
    text = "\x1b\x1b[0m[31mx\x1b]0;a\x1b[1m\x07"
    assert printable(printable(text)) == printable(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pass@host:1/x", "http://***@host:1/x"),
        ("http://user:p/a@ss@host", "http://***@host"),
        ("https://host/path", "https://host/path"),
        ("someone@example.org", "someone@example.org"),
    ],
)
def test_userinfo_of_an_address_is_hidden(text: str, shown: str) -> None:
    assert without_userinfo(text) == shown
