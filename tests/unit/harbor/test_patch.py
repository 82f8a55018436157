"""A delivery as text: the lines lead from what was there to what is there now."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.harbor import patch as module
from xgent_evolve.harbor.artifacts import Delivery, RefusedFile
from xgent_evolve.harbor.patch import PatchLine, PathPatch, read_patch
from xgent_evolve.harbor.request import Change, FileFact

NO_END = "\\ no newline at the end of the file"


def fact(content: bytes, mode: int = 0o644) -> FileFact:
    return FileFact(
        kind="file", mode=mode, sha256=hashlib.sha256(content).hexdigest(), size=len(content)
    )


def patch_of(
    before: bytes | None, after: bytes | None, *, modes: tuple[int, int] = (0o644, 0o644)
) -> PathPatch:
    change = Change(
        path="a/b",
        before=None if before is None else fact(before, modes[0]),
        after=None if after is None else fact(after, modes[1]),
    )
    delivery = Delivery(changes=[change], refused=[])
    (found,) = read_patch(delivery, lambda _path, _fact: before, lambda _fact: after or b"")
    return found


def numbered(text: str) -> tuple[int, int]:
    start, count = (int(part) for part in text[1:].split(","))
    return (start - 1 if count else start), count


def applied(old: list[str], lines: tuple[PatchLine, ...]) -> list[str]:
    """Apply marked lines to the old ones, by the rules of a unified diff."""
    new: list[str] = []
    at = 0
    for line in lines:
        if line.mark == "@":
            start, _ = numbered(line.text.split(" ")[0])
            new += old[at:start]
            at = start
        elif line.mark == "+":
            new.append(line.text)
        else:
            assert old[at] == line.text
            new += [line.text] if line.mark == " " else []
            at += 1
    return new + old[at:]


def lines_of(content: bytes) -> list[str]:
    parts = content.decode().split("\n")
    if parts == [""]:
        return []
    return parts[:-1] if parts[-1] == "" else [*parts, NO_END]


TEXTS = st.lists(st.sampled_from("abcde\n"), max_size=60).map("".join).map(str.encode)


@given(before=TEXTS, after=TEXTS)
def test_the_lines_lead_from_the_old_to_the_new_text(before: bytes, after: bytes) -> None:
    found = patch_of(before, after)
    assert applied(lines_of(before), found.lines) == lines_of(after)
    assert found.added - found.removed == len(lines_of(after)) - len(lines_of(before))


def test_only_what_is_near_a_change_is_shown() -> None:
    old = b"".join(b"%d\n" % n for n in range(1000))
    found = patch_of(old, old.replace(b"500\n", b"five hundred\n"))
    assert [(line.mark, line.text) for line in found.lines] == [
        ("@", "-498,7 +498,7"),
        *((" ", str(n)) for n in (497, 498, 499)),
        ("-", "500"),
        ("+", "five hundred"),
        *((" ", str(n)) for n in (501, 502, 503)),
    ]


def test_a_text_that_is_wholly_different_is_compared_in_little_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_COMPARED_LINES", 4)
    found = patch_of(b"a\nb\nc\n", b"x\ny\nz\n")
    assert [line.mark for line in found.lines] == ["@", "-", "-", "-", "+", "+", "+"]


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (b"a\x00", b"b", "not UTF-8 text: 2 bytes before, 1 now"),
        (b"a", b"\xff\xfe", "not UTF-8 text: 1 bytes before, 2 now"),
        (
            None,
            b"x" * (600 * 1024),
            "too large to be compared by lines: 0 bytes before, 614,400 now",
        ),
    ],
)
def test_what_is_no_text_is_described(before: bytes | None, after: bytes, note: str) -> None:
    found = patch_of(before, after)
    assert found.lines == ()
    assert note in found.notes


def test_modes_links_and_directories_are_told() -> None:
    assert patch_of(b"a\n", b"a\n", modes=(0o644, 0o755)).notes == ("mode 644 became 755",)
    assert patch_of(None, b"a\n", modes=(0, 0o755)).notes == ("mode 755: executable",)
    link = FileFact(kind="link", mode=0o777, target="../x")
    directory = FileFact(kind="dir", mode=0o755)
    delivery = Delivery(
        changes=[
            Change(path="l", before=None, after=link),
            Change(path="d", before=directory, after=None),
            Change(path="m", before=fact(b"a\n"), after=link),
        ],
        refused=[RefusedFile(path="big", size=70_000_000)],
    )
    found = read_patch(delivery, lambda _path, _fact: b"a\n", lambda _fact: b"")
    assert [(item.path, item.action) for item in found] == [
        ("l", "added"),
        ("d", "deleted"),
        ("m", "changed"),
        ("big", "refused"),
    ]
    assert found[0].notes == ("now a link to ../x",)
    assert found[1].notes == ("before a directory",)
    assert found[2].lines == (PatchLine("@", "-1,1 +0,0"), PatchLine("-", "a"))
    assert "70,000,000 bytes" in found[3].notes[0]


def test_a_file_of_the_image_whose_bytes_were_not_kept_says_so() -> None:
    change = Change(path="a", before=fact(b"old\n"), after=fact(b"new\n"))
    delivery = Delivery(changes=[change], refused=[])
    (found,) = read_patch(delivery, lambda _path, _fact: None, lambda _fact: b"new\n")
    assert found.notes == ("the 4 bytes before are part of the image and were not captured",)
    assert [line.mark for line in found.lines] == ["@", "+"]
