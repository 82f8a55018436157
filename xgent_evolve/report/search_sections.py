"""The sections of a search: its candidates in order, each with its diff and the reason for it."""

from __future__ import annotations

import re

from xgent_evolve.report.access import (
    find_interval,
    find_part,
    number_of,
    part,
    parts,
    string,
    words,
)
from xgent_evolve.report.document import Document
from xgent_evolve.report.tables import DASH, cell, inline, share, table
from xgent_evolve.report.words import STOPS, interval_text, points

_FENCE = re.compile(r"^\s*(`{3,})", re.MULTILINE)


def search_section(document: Document) -> list[str]:
    """Return how the search went: the baseline's room, the candidates, why it ended."""
    search = find_part(document, "search")
    if search is None:
        return []
    found = part(search, "diagnosis")
    noise = number_of(found["generation_noise"])
    spread = (
        "how much two measurements of it differ by chance is unknown, since it takes repeats."
        if noise is None
        else "two measurements of it differ by chance with a standard deviation of "
        f"{noise * 100:.1f} points."
    )
    rows = [
        [
            cell(candidate["number"]),
            cell(candidate["id"]),
            cell(candidate["parent"]),
            cell(candidate["decision"]),
            points(number_of(candidate["estimate"])) if candidate["id"] else DASH,
            _interval(candidate),
            cell(candidate["paired_groups"]),
            inline(next(iter(words(candidate, "reasons")), "")),
        ]
        for candidate in parts(search, "candidates")
    ]
    header = ("", "candidate", "from", "decision", "points", "interval", "groups", "because")
    stop = string(search, "stop")
    return [
        "## Search",
        "",
        f"Strategy {inline(string(search, 'strategy'))}; best text: "
        f"{inline(string(search, 'best'))}; it ended because {STOPS.get(stop, stop)}.",
        "",
        f"The text {inline(string(found, 'text'))} alone: mean {share(found['mean'])}, room for at "
        f"most {points(number_of(found['headroom']))} points; {spread}",
        "",
        "Every candidate against the text that it started from, on search and validation cases. "
        "These select; only the confirmation confirms.",
        "",
        *table(header, rows),
    ]


def candidate_section(document: Document) -> list[str]:
    """Return each candidate with its hypothesis, the reasons and its diff."""
    search = find_part(document, "search")
    if search is None:
        return []
    lines = ["## Candidates", ""]
    for candidate in parts(search, "candidates"):
        lines += _candidate(candidate)
    return lines if len(lines) > 2 else []


def _candidate(candidate: Document) -> list[str]:
    name = string(candidate, "id") or "not measured"
    title = f"### Proposal {candidate['number']}: {inline(name)}, {candidate['decision']}"
    lines = [title, ""]
    for key, label in (
        ("hypothesis", "Hypothesis"),
        ("expected_effect", "Expected effect"),
        ("counterexample", "Would refute it"),
    ):
        if string(candidate, key):
            lines.append(f"- {label}: {inline(string(candidate, key))}")
    lines += [f"- Why: {inline(reason)}" for reason in words(candidate, "reasons")]
    if candidate["content"] is not None:
        lines.append(f"- Content: `{candidate['content']}`")
    lines.append("")
    diff = string(candidate, "diff")
    if diff:
        fence = "`" * max(3, *(len(mark) + 1 for mark in _FENCE.findall(diff)), 3)
        lines += [f"{fence}diff", *diff.split("\n"), fence, ""]
    if candidate["diff_cut"]:
        lines += ["The diff goes on; all of it is in the run's bundles.", ""]
    return lines


def _interval(candidate: Document) -> str:
    interval = find_interval(candidate, "interval")
    return DASH if interval is None else interval_text(interval)
