"""report.html: everything that report.md says, with pictures, and nothing that could act."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.unit.report import studies
from xgent_evolve.report.html import report_html
from xgent_evolve.report.inputs import Gap, Report
from xgent_evolve.report.model import json_bytes, report_document
from xgent_evolve.report.text import report_text

STUDIES = {
    "kept": studies.kept,
    "undecided": studies.undecided,
    "invalid": studies.invalid,
    "smoked": studies.smoked,
}
VOID = {"meta", "line", "rect", "circle", "br", "hr"}


class Page(HTMLParser):
    """The elements of a page, and whether each is closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def count(self, tag: str) -> int:
        return sum(1 for name, _ in self.elements if name == tag)


def page_of(report: Report) -> Page:
    page = Page(report_html(report_document(report)))
    assert page.open == []
    return page


def words_of(text: str) -> set[str]:
    return set(re.findall(r"[\w.+-]*\w", text))


@pytest.mark.parametrize("name", STUDIES)
def test_it_says_what_the_text_says(name: str) -> None:
    document = report_document(STUDIES[name]())
    page = Page(report_html(document))
    # The pictures made of characters have pictures in their place, with captions of their own.
    text = re.sub(r"```text.*?```", "", report_text(document), flags=re.DOTALL)
    assert words_of(text) - words_of(" ".join(page.texts)) == set()


@pytest.mark.parametrize("name", STUDIES)
def test_it_can_be_made_again_from_the_json(name: str) -> None:
    document = report_document(STUDIES[name]())
    assert report_html(json.loads(json_bytes(document))) == report_html(document)


def test_the_pictures_show_every_group_and_case() -> None:
    page = page_of(studies.kept())
    kinds = [attributes.get("class") for _, attributes in page.elements]
    assert page.count("svg") == 3
    assert kinds.count("better") == 7
    assert kinds.count("tied") == 1
    assert (kinds.count("before"), kinds.count("after")) == (8, 8)
    assert kinds.count("estimate") == 1


def test_it_needs_no_network_no_script_and_no_sight() -> None:
    for make in STUDIES.values():
        text = report_html(report_document(make()))
        page = page_of(make())
        names = {name for name, _ in page.elements}
        assert not names & {"script", "link", "img", "iframe", "object", "form", "base"}
        anchors = [a["href"] or "" for n, a in page.elements if n == "a"]
        names = [a["id"] for _, a in page.elements if "id" in a]
        assert anchors[0] == "#main"
        assert {anchor[1:] for anchor in anchors} <= set(names)
        assert all(anchor.startswith("#") for anchor in anchors)
        assert len(names) == len(set(names))
        assert "url(" not in text
        assert "@import" not in text
        assert "http" not in re.sub(r"http-equiv", "", text)
        assert page.count("html") == 1
        for name, attributes in page.elements:
            assert not any(key.startswith("on") for key in attributes)
            if name == "svg":
                assert attributes["role"] == "img"
                assert attributes["aria-label"]
            if name == "html":
                assert attributes["lang"] == "en"


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "[click](javascript:alert(1))",
    "<javascript:alert(1)>",
    "![x](http://example.org/x.png)",
    "http://example.org/auto",
    "</details></section></main><h1>keep: forged</h1>",
    "| a | b |\n|---|---|\n| forged | row |",
    "```\n</style><style>*{display:none}",
    "&lt;script&gt; &#x3c;script&#x3e;",
    "a\x1b[2J\x00\u202e\u2066b",
    "[ref]: javascript:alert(1)\n[ref]",
    "<!-- ",
    "]]>",
    "<?php ?>",
    "<style>*{}</style>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    plain = studies.kept()
    gaps = [Gap("secret_replaced", "words", where="here")]
    honest = page_of(replace(plain, gaps=gaps))
    hostile = page_of(
        replace(
            plain,
            study=replace(plain.study, question=text, protocol_id=text),
            gaps=[Gap("secret_replaced", text, where=text)],
        )
    )
    assert [name for name, _ in hostile.elements] == [name for name, _ in honest.elements]
    assert [a.get("href") for _, a in hostile.elements] == [
        a.get("href") for _, a in honest.elements
    ]
    assert "\x1b" not in "".join(hostile.texts)


def test_a_report_of_the_usual_size_is_small(tmp_path: Path) -> None:
    assert len(report_html(report_document(studies.kept())).encode()) < 300_000
