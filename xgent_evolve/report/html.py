"""report.html: the same report with pictures and evidence, in one file without network or script.

Text is rendered from the very Markdown of report.md by a parser that knows neither raw HTML nor
links; evidence is escaped where it is made into HTML. A content security policy forbids everything
but the one style in the file: whatever a study's texts hold, they stay text.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from xgent_evolve.redact import printable
from xgent_evolve.report.access import find_part, part, string
from xgent_evolve.report.document import Document
from xgent_evolve.report.environment import environment_section
from xgent_evolve.report.evidence import AttemptEvidence
from xgent_evolve.report.evidence_html import attempts_html, evidence_html
from xgent_evolve.report.markdown_html import inline_html, tables_html
from xgent_evolve.report.page import page_html
from xgent_evolve.report.pictures import (
    candidate_picture,
    case_picture,
    group_picture,
    interval_picture,
)
from xgent_evolve.report.search_sections import candidate_section, search_section
from xgent_evolve.report.sections import (
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

EVIDENCE_NOTE = (
    "What every attempt said, did and delivered, as it was captured. Long texts are cut in the "
    "middle, and each cut says how much is missing; the bytes are whole in the run directory, in "
    "the files that are named. Characters that cannot be seen are spelled out, such as ⟨U+202E⟩."
)


class Section(NamedTuple):
    """One part of the page."""

    name: str
    """Its anchor."""
    title: str
    """HTML of its heading."""
    body: str
    """HTML; a section without any is left out."""
    folded: bool = False
    """Whether it is closed until somebody opens it."""


def report_html(document: Document, evidence: Sequence[AttemptEvidence] = ()) -> str:
    """Return report.html for a document of `report_document` or report.json.

    Without `evidence` the page has everything but transcripts and patches.
    """
    study, verdict = part(document, "study"), part(document, "verdict")
    shown = evidence_html(evidence) if evidence else ""
    sections = [
        _pictures(document),
        _section("smoke", smoke_section(document)),
        _section("search", search_section(document)),
        _section("guardrails", guardrail_section(document)),
        _section("missing", missing_section(document)),
        _section("other", secondary_section(document)),
        _section("interaction", interaction_section(document)),
        _section("gaps", gap_section(document)),
        _section("cases", case_section(document)),
        _section("resources", resource_section(document)),
        _section("candidates", candidate_section(document)),
        Section("attempts", "Attempts", attempts_html(document, evidence), folded=True),
        Section("evidence", "Evidence", shown and f"<p>{escape(EVIDENCE_NOTE)}</p>\n{shown}"),
        _section("environment", environment_section(document), folded=True),
        _section("frozen", digest_section(document), folded=True),
    ]
    kept = [section for section in sections if section.body]
    heading, *lines = head_section(document)
    tone = _tone(verdict)
    return page_html(
        title=f"{printable(string(study, 'protocol_id'))}: {tone}",
        contents=[(section.name, section.title) for section in kept],
        head="\n".join(
            [
                f'<section id="verdict" class="verdict {tone}" aria-labelledby="title">',
                f'<h1 id="title">{inline_html(heading.lstrip("# "))}</h1>',
                tables_html(lines, "Verdict"),
                "</section>",
            ]
        ),
        body="\n".join(map(_rendered, kept)),
    )


def _tone(verdict: Document) -> str:
    return string(verdict, "decision") or "smoke"


def _pictures(document: Document) -> Section:
    comparison, search = find_part(document, "comparison"), find_part(document, "search")
    drawn: list[str] = [] if search is None else [candidate_picture(search)]
    if comparison is not None:
        drawn += [
            interval_picture(comparison),
            group_picture(comparison),
            case_picture(comparison),
        ]
    return Section("differences", "Differences", "\n".join(filter(None, drawn)))


def _section(name: str, markdown: Sequence[str], *, folded: bool = False) -> Section:
    if not markdown:
        return Section(name, "", "")
    heading = markdown[0].lstrip("# ")
    return Section(name, inline_html(heading), tables_html(markdown[1:], heading), folded)


def _rendered(section: Section) -> str:
    opening = f'<section id="{section.name}" aria-labelledby="{section.name}-title">'
    title = f'<h2 id="{section.name}-title">{section.title}</h2>'
    if section.folded:
        return "\n".join(
            [
                opening,
                '<details class="part">',
                f"<summary>{title}</summary>",
                section.body,
                "</details>",
                "</section>",
            ]
        )
    return "\n".join([opening, title, section.body, "</section>"])
