"""What is loaded of AGENTS.md files, by the rules that Codex 0.162.1 was seen to follow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.freeze.instructions import loaded_texts, only_import


def shown(files, limit):
    contents = {path: text.encode() for path, text in files.items()}
    return {path: text.text for path, text in loaded_texts(contents, limit).items()}


# tests/codex/test_reading.py asks Codex itself for these.
MEASURED = [
    (10, {"AGENTS.md": "0123456789abc\n"}, {"AGENTS.md": "0123456789"}),
    (10, {"AGENTS.md": "01234567ééé"}, {"AGENTS.md": "01234567é"}),
    (9, {"AGENTS.md": "01234567ééé"}, {"AGENTS.md": "01234567\ufffd"}),
    (11, {"AGENTS.md": "01234567\U0001f389"}, {"AGENTS.md": "01234567\ufffd"}),
    (
        10,
        {"AGENTS.md": "01234567", "sub/AGENTS.md": "abcdefgh"},
        {"AGENTS.md": "01234567", "sub/AGENTS.md": "ab"},
    ),
    (
        8,
        {"AGENTS.md": "01234567", "sub/AGENTS.md": "abcdefgh"},
        {"AGENTS.md": "01234567", "sub/AGENTS.md": ""},
    ),
    (
        12,
        {"AGENTS.md": "    \n  \n", "sub/AGENTS.md": "abcdefgh"},
        {"AGENTS.md": "", "sub/AGENTS.md": "abcdefgh"},
    ),
    (100, {"AGENTS.md": "aaa", "AGENTS.override.md": "ov"}, {"AGENTS.override.md": "ov"}),
    (100, {"AGENTS.md": "aaa", "AGENTS.override.md": ""}, {"AGENTS.override.md": ""}),
    (0, {"AGENTS.md": "aaa"}, {"AGENTS.md": ""}),
]


@pytest.mark.parametrize(("limit", "files", "expected"), MEASURED)
def test_what_is_loaded_is_what_codex_loaded(limit, files, expected):
    assert shown(files, limit) == expected


def test_sisters_do_not_share_a_budget_and_grandparents_do():
    files = {"AGENTS.md": "aaaa", "x/y/AGENTS.md": "bbbb", "z/AGENTS.md": "cccc"}
    assert shown(files, 6) == {"AGENTS.md": "aaaa", "x/y/AGENTS.md": "bb", "z/AGENTS.md": "cc"}


def test_the_first_lost_line_and_a_broken_character_are_told():
    text = loaded_texts({"AGENTS.md": b"one\ntwo\nthree\n"}, 8)["AGENTS.md"]
    assert (text.lost, text.first_lost_line, text.cuts_character) == (6, 3, False)
    assert text.line(3) == "three"
    text = loaded_texts({"AGENTS.md": "one\ntwé\n".encode()}, 7)["AGENTS.md"]
    assert (text.first_lost_line, text.cuts_character) == (2, True)


def test_trailing_white_space_behind_the_cut_is_no_loss():
    assert loaded_texts({"AGENTS.md": b"1234567\n\n\n"}, 7)["AGENTS.md"].lost == 0


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"@CLAUDE.md\n", "@CLAUDE.md"),
        (b"\n  @docs/rules.md", "@docs/rules.md"),
        (b"@CLAUDE.md and more", None),
        (b"@", None),
        (b"text", None),
        (b"", None),
    ],
)
def test_a_file_that_only_imports_is_recognised(content, expected):
    assert only_import(content) == expected


NAMES = st.sampled_from(["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "a/AGENTS.override.md"])


@given(st.dictionaries(NAMES, st.binary(max_size=30)), st.integers(0, 60))
def test_no_directory_gets_more_than_the_limit_and_only_prefixes(files, limit):
    loaded = loaded_texts(files, limit)
    for path, text in loaded.items():
        assert text.content[: text.kept] == files[path][: text.kept]
    for directory in ("", "a", "a/b"):
        above = [
            text.kept
            for path, text in loaded.items()
            if f"{directory}/".startswith(f"{path.rpartition('/')[0]}/".lstrip("/"))
        ]
        assert sum(above) <= limit


@given(st.binary(max_size=60), st.integers(0, 60))
def test_the_lines_before_the_first_lost_one_are_whole(content, limit):
    text = loaded_texts({"AGENTS.md": content}, limit)["AGENTS.md"]
    if text.lost:
        before = content.split(b"\n")[: text.first_lost_line - 1]
        assert text.content[: text.kept].startswith(b"\n".join(before))
        assert len(b"\n".join(before)) <= text.kept
