"""report.html: the same report with pictures, in one file that needs no network and no script.

Text is rendered from the very Markdown of report.md by a parser that knows neither raw HTML nor
links, and a content security policy forbids everything but the style in the file: whatever a
study's texts hold, they stay text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from markdown_it import MarkdownIt

from xgent_evolve.redact import printable
from xgent_evolve.report.access import find_part, part, string
from xgent_evolve.report.document import Document
from xgent_evolve.report.pictures import case_picture, group_picture, interval_picture
from xgent_evolve.report.sections import (
    attempt_section,
    case_section,
    digest_section,
    gap_section,
    guardrail_section,
    interaction_section,
    missing_section,
    resource_section,
    secondary_section,
    smoke_section,
)
from xgent_evolve.report.text import head_section

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)


def report_html(document: Document) -> str:
    """Return report.html for a document of `report_document` or report.json."""
    study, verdict = part(document, "study"), part(document, "verdict")
    title = escape(printable(string(study, "protocol_id")))
    sections = [
        _section("verdict", head_section(document), kind=f"verdict {_tone(verdict)}"),
        _pictures(document),
        _section("smoke", smoke_section(document)),
        _section("guardrails", guardrail_section(document)),
        _section("missing", missing_section(document)),
        _section("other", secondary_section(document)),
        _section("interaction", interaction_section(document)),
        _section("gaps", gap_section(document)),
        _section("cases", case_section(document)),
        _section("resources", resource_section(document)),
        _section("attempts", attempt_section(document), folded=True),
        _section("frozen", digest_section(document), folded=True),
    ]
    style = files("xgent_evolve.report").joinpath("report.css").read_text(encoding="utf-8")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{title}: {escape(_tone(verdict))}</title>",
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#verdict">Skip to the verdict</a>',
            "<main>",
            *filter(None, sections),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _tone(verdict: Document) -> str:
    return string(verdict, "decision") or "smoke"


def _pictures(document: Document) -> str:
    comparison = find_part(document, "comparison")
    if comparison is None:
        return ""
    drawn = [interval_picture(comparison), group_picture(comparison), case_picture(comparison)]
    return "\n".join(
        ['<section id="differences">', "<h2>Differences</h2>", *filter(None, drawn), "</section>"]
    )


def _section(name: str, markdown: Sequence[str], *, kind: str = "", folded: bool = False) -> str:
    """Return one section; `folded` keeps a long one closed until somebody opens it."""
    if not markdown:
        return ""
    heading, rest = markdown[0].lstrip("# "), "\n".join(markdown[1:])
    level = "h1" if name == "verdict" else "h2"
    title = f"<{level}>{_inline(heading)}</{level}>"
    body = _TABLE.sub(_scrollable, _parser().render(rest)).rstrip("\n")
    opening = f'<section id="{name}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>'
    if folded:
        return f"{opening}\n<details>\n<summary>{title}</summary>\n{body}\n</details>\n</section>"
    return f"{opening}\n{title}\n{body}\n</section>"


def _scrollable(found: re.Match[str]) -> str:
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table">{found[0]}</div>'


def _inline(markdown: str) -> str:
    return _parser().renderInline(markdown)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser.disable(["link", "image", "autolink", "reference", "html_block", "html_inline"])
