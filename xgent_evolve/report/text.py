"""report.md and the last lines of a command, both rendered from the report document.

The verdict comes first and in words. Only the document is read, so the text can be made again
from report.json and cannot disagree with it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from xgent_evolve.redact import printable
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
from xgent_evolve.report.environment import environment_section
from xgent_evolve.report.plots import difference_bars, interval_plot
from xgent_evolve.report.search_sections import candidate_section, search_section
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
    tokens_words,
)
from xgent_evolve.report.tables import inline, plain
from xgent_evolve.report.words import count

_COLUMNS = 80
_LABEL = 12
_MOST_LINES = 10


def report_text(document: Document) -> str:
    """Return the Markdown of report.md for a document of `report_document` or report.json."""
    lines = [
        *head_section(document),
        *_picture(document),
        *search_section(document),
        *guardrail_section(document),
        *missing_section(document),
        *secondary_section(document),
        *interaction_section(document),
        *smoke_section(document),
        *gap_section(document),
        *case_section(document),
        *resource_section(document),
        *candidate_section(document),
        *attempt_section(document),
        *environment_section(document),
        *digest_section(document),
    ]
    return "\n".join(lines).rstrip("\n") + "\n"


def summary_lines(document: Document) -> list[str]:
    """Return the lines that a command prints at its end: at most 10, of 80 columns each.

    What matters most comes first, so a long reason pushes out token counts and not the verdict.
    """
    verdict = part(document, "verdict")
    entries = [("verdict", string(verdict, "sentence"))]
    if verdict["numbers"] is not None:
        entries.append(("difference", string(verdict, "numbers")))
    entries += [("because", string(reason, "sentence")) for reason in parts(verdict, "reasons")[:1]]
    entries += [("next", step) for step in words(verdict, "next")[:1]]
    entries += [("smoke", line) for line in _failed_steps(document)[:3]]
    if document["guardrails"]:
        entries.append(("guardrails", _guardrail_counts(document)))
    entries.append(("attempts", _attempt_counts(document)))
    entries.append(("tokens", tokens_words(part(part(document, "resources"), "agent"))))
    lines: list[str] = []
    for label, value in entries:
        more = _labelled(label, plain(value))
        if len(lines) + len(more) <= _MOST_LINES:
            lines += more
    return lines


def _labelled(label: str, value: str) -> list[str]:
    return textwrap.wrap(
        value,
        _COLUMNS,
        initial_indent=f"{label:<{_LABEL}}",
        subsequent_indent=" " * _LABEL,
        break_on_hyphens=False,
    )


def _failed_steps(document: Document) -> list[str]:
    lines: list[str] = []
    for case in parts(document, "smoke"):
        for name in ("probe", "untouched", "oracle", "agent"):
            step = find_part(case, name)
            if step is not None and step["status"] in ("failed", "broken"):
                detail = string(step, "detail")
                lines.append(f"{string(case, 'case')}: {name} {step['status']}: {detail}")
    return lines


def _guardrail_counts(document: Document) -> str:
    found = [string(guardrail, "status") for guardrail in parts(document, "guardrails")]
    return ", ".join(
        f"{found.count(status)} {status}" for status in ("held", "regressed", "unknown")
    )


def _attempt_counts(document: Document) -> str:
    counted = part(document, "counts")
    kinds = part(counted, "by_kind")
    agent, grade = part(kinds, "agent"), part(kinds, "grade")
    failures, invalid = counted["valid_behaviour_failures"], counted["invalid_attempts"]
    return (
        f"{agent['attempts']} agent, {grade['attempts']} grade; "
        f"{failures} behaviour failures, {invalid} invalid"
    )


def head_section(document: Document) -> list[str]:
    """Return the question, the verdict in words and the reasons for it."""
    study, verdict = part(document, "study"), part(document, "verdict")
    lines = [
        f"# {inline(string(study, 'protocol_id'))}",
        "",
        f"> {inline(string(study, 'question'))}",
        "",
        f"**{plain(string(verdict, 'sentence'))}**",
        "",
    ]
    if verdict["numbers"] is not None:
        lines += [plain(string(verdict, "numbers")), ""]
    lines += _bullets("Why", [string(reason, "sentence") for reason in parts(verdict, "reasons")])
    lines += _bullets("What next", words(verdict, "next"))
    if document["smoke"] is None:
        confirmation = part(document, "confirmation")
        reason = string(confirmation, "reason")
        status = plain(string(confirmation, "status"))
        lines += [f"Confirmation: {status}{f' ({plain(reason)})' if reason else ''}.", ""]
    return lines


def _bullets(title: str, sentences: Sequence[str]) -> list[str]:
    if not sentences:
        return []
    return [f"{title}:", "", *(f"- {plain(sentence)}" for sentence in sentences), ""]


def _picture(document: Document) -> list[str]:
    comparison = find_part(document, "comparison")
    if comparison is None:
        return []
    lines = ["## Differences", ""]
    estimate, interval = number_of(comparison["estimate"]), find_interval(comparison, "interval")
    if estimate is not None and interval is not None:
        gain = number_of(comparison["min_gain"]) or 0.0
        plot = interval_plot(estimate, interval.low, interval.high, min_gain=gain)
        caption = "Points; [ ] interval, o estimate, | zero, : smallest gain worth having"
        lines += ["```text", *plot, caption, "```", ""]
    groups = parts(comparison, "groups")
    bars = difference_bars(
        [(printable(string(g, "group")), number_of(g["difference"])) for g in groups]
    )
    signs = part(comparison, "signs")
    lines += ["Paired difference of each independent group, in points:", ""]
    lines += ["```text", *bars, "```", ""]
    better, worse, tied = (number_of(signs[key]) or 0 for key in ("better", "worse", "tied"))
    lines += [
        f"{count(int(better), 'group')} better, {int(worse)} worse, {int(tied)} tied; exact sign "
        f"test p = {number_of(signs['p_value']):.3g}.",
        "",
    ]
    return lines
