"""What attempts left, on the page: readable, bounded, and unable to act."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files

import pytest

from tests.unit.report import studies
from tests.unit.report.exhibits import contents, exhibits
from tests.unit.report.test_html import HOSTILE, Page
from xgent_evolve.harbor.patch import PatchLine, PathPatch
from xgent_evolve.harbor.transcript import Command, Message, Transcript
from xgent_evolve.report.causes import cause_sentence
from xgent_evolve.report.evidence import Contents, Stream
from xgent_evolve.report.evidence_html import evidence_html
from xgent_evolve.report.excerpt import excerpt
from xgent_evolve.report.html import report_html
from xgent_evolve.report.inputs import Report
from xgent_evolve.report.model import report_document
from xgent_evolve.report.patch_html import MOST_LINES, MOST_PATHS, patch_html
from xgent_evolve.report.transcript_html import MOST_CHARACTERS, MOST_ENTRIES, transcript_html

MORE_HOSTILE = [
    "</pre></details></body></html>",
    "</title><script>document.title='x'</script>",
    "<svg/onload=alert(1)>",
    "<img src=http://hostile.invalid/a.png>",
    "\x00\x1b]8;;http://hostile.invalid\x07link\x1b]8;;\x07",
    "\u202egnp.exe\u2066",
    "\ud800 lone",
    "x" * 400_000,
    "&#60;script&#62;",
    "\n\n\nfirst lines are empty",
]


HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def few(report: Report) -> Report:
    """The first attempts of a report."""
    return replace(report, attempts=list(report.attempts)[:4])


def page_with(text: str) -> Page:
    report = few(studies.kept())
    shown = exhibits(report, lambda _attempt: contents(text), detail=text)
    html = report_html(report_document(report), shown)
    page = Page(html.encode("utf-8").decode())
    assert page.open == []
    return page


@pytest.mark.parametrize("text", [*HOSTILE, *MORE_HOSTILE])
def test_hostile_text_adds_no_element_and_no_attribute(text: str) -> None:
    honest, hostile = page_with("words"), page_with(text)

    def shape(page: Page) -> list[tuple[str, tuple[str, ...]]]:
        # A long text is cut, which adds the statement that it is and a second block.
        return [
            (name, tuple(sorted(attributes)))
            for name, attributes in page.elements
            if name not in ("pre", "p")
        ]

    assert shape(hostile) == shape(honest)
    said = "".join(hostile.texts)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", said
    )


def test_what_cannot_be_seen_is_spelled_out() -> None:
    said = "".join(page_with("a\u202eb\u200bc\ufeff").texts)
    assert "a⟨U+202E⟩b⟨U+200B⟩c⟨U+FEFF⟩" in said


def test_everything_that_was_left_is_on_the_page() -> None:
    said = "".join(page_with("words").texts)
    for expected in (
        "Agent",
        "Command, exit code 0",
        "Command, exit code 1",
        "Command, its end was not told",
        "Edit, completed",
        "[x] words",
        "5 bytes of the stream were not captured",
        "2 lines of the stream are no events",
        "Delivered patch",
        "+words",
        "-words",
        "blobs/ab/words",
        "3 bytes in the middle were not captured",
        "Execution execution-0",
    ):
        assert expected in said, expected


def test_every_row_leads_to_what_its_attempt_left() -> None:
    report = few(studies.kept())
    page = page_with("words")
    links = [
        attributes["href"]
        for name, attributes in page.elements
        if name == "a" and "aria-label" in attributes
    ]
    names = {attributes.get("id") for _, attributes in page.elements}
    assert len(links) == len(set(links)) == len(report.attempts)
    assert all((link or "")[1:] in names for link in links)


def test_the_order_in_which_attempts_are_handed_in_does_not_matter() -> None:
    report = studies.undecided()
    shown = exhibits(report, lambda attempt: contents(f"{attempt.case} {attempt.kind}"))
    shuffled = shown[:]
    random.Random(3).shuffle(shuffled)
    document = report_document(report)
    assert report_html(document, shuffled) == report_html(document, shown)


def test_a_page_is_bounded_and_shows_first_what_went_wrong() -> None:
    report = studies.undecided()
    read: list[str] = []

    def large(attempt: object) -> Contents:
        read.append("one")
        return Contents(streams=(Stream("stdout", "x" * 5000),))

    shown = exhibits(report, large)
    whole = evidence_html(shown)
    read.clear()
    html = evidence_html(shown, most_bytes=40_000)
    assert len(html) < 40_000 + 700 * len(shown)
    assert len(read) < len(shown), "what is not shown is not read"
    assert f"What {len(shown) - 7} of {len(shown)} attempts left is not shown" in html
    page = Page(html)
    attempt = r'<span class="(\w+)">[^\n]*</summary>\n<div .*?\n(.*?)\n<p class="quiet">Exec'
    states = re.findall(attempt, html, re.DOTALL)
    kept = {status for status, body in states if "Not shown" not in body}
    assert "invalid" in kept
    assert "valid" not in kept
    assert page.count("details") == Page(whole).count("details")
    assert html.count("Not shown") == len(shown) - 7
    assert "xgent-evolve logs --run DIR --execution execution-" in html


def test_a_long_transcript_keeps_its_ends_and_says_what_is_left_out() -> None:
    entries = tuple(Message(f"message {n}.") for n in range(1000))
    html = transcript_html(Transcript(entries))
    assert f"{1000 - MOST_ENTRIES} of 1,000 entries are left out here" in html
    assert "message 0." in html
    assert "message 999." in html
    assert "message 500." not in html
    assert html.count('<li class="message">') == MOST_ENTRIES


def test_the_texts_of_a_transcript_share_its_limit() -> None:
    entries = tuple(Command("c" * 10_000, "o" * 50_000, 0, "completed") for _ in range(150))
    html = transcript_html(Transcript(entries))
    assert len(html) < 4 * MOST_CHARACTERS
    assert html.count("characters are left out here") == 300


def test_a_long_patch_keeps_the_ends_of_its_files() -> None:
    lines = tuple(PatchLine("+", f"line {n}." + "y" * 1000) for n in range(5000))
    html = patch_html([PathPatch("big", "added", (), lines, 5000, 0)])
    assert f"{5000 - MOST_LINES:,} lines are left out here" in html
    assert "line 0." in html
    assert "line 4999." in html
    assert "characters more" in html
    many = patch_html([PathPatch(f"file-{n}", "added") for n in range(MOST_PATHS + 5)])
    assert f"5 of {MOST_PATHS + 5} changed paths are left out" in many


def test_marks_and_not_only_colours_tell_added_from_removed_lines() -> None:
    lines = (PatchLine("-", "old"), PatchLine("+", "new"), PatchLine(" ", "same"))
    html = patch_html([PathPatch("a", "changed", (), lines, 1, 1)])
    assert '<span class="removed">-old\n</span>' in html
    assert '<span class="added">+new\n</span>' in html
    assert '<span class="same"> same\n</span>' in html


@pytest.mark.parametrize("limit", [10, 99, 1000])
def test_an_excerpt_and_what_it_leaves_out_are_the_whole(limit: int) -> None:
    text = "".join(f"line {n}\n" for n in range(400))
    head, left_out, tail = excerpt(text, limit)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + left_out + len(tail) == len(text)
    assert len(head) + len(tail) <= limit


def test_a_cause_without_a_sentence_has_none() -> None:
    assert cause_sentence("reward_0")
    assert cause_sentence("something_new") == ""


def colours(theme: str) -> dict[str, str]:
    css = files("xgent_evolve.report").joinpath("report.css").read_text()
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    assert len(blocks) == 3, "light, dark, print"
    return dict(
        re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[("light", "dark", "print").index(theme)])
    )


def luminance(colour: str) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = (linear(int(colour[n : n + 2], 16)) for n in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def pairs() -> Iterator[tuple[str, str]]:
    for ground in ("paper", "shade"):
        for ink in ("ink", "soft", "good", "bad", "open", "link"):
            yield ink, ground
    yield "ink", "added"
    yield "ink", "removed"


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_every_text_can_be_told_from_its_ground(theme: str) -> None:
    """At least 4.5 to 1: level AA of the Web Content Accessibility Guidelines for small text."""
    known = colours(theme)
    for ink, ground in pairs():
        bright, dark = sorted((luminance(known[ink]), luminance(known[ground])), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (theme, ink, ground)
