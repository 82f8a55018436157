"""The attempts of a page: a table of all of them, and behind each one what it left.

The page is bounded. When not everything fits, attempts without an observation come first, then
failing ones, since these are what a reader looks for; what is left out says so and where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from xgent_evolve.report.access import find_part, parts
from xgent_evolve.report.causes import cause_sentence
from xgent_evolve.report.document import Document, JsonValue
from xgent_evolve.report.evidence import AttemptEvidence, Contents, StoredBytes
from xgent_evolve.report.excerpt import block, cut, words
from xgent_evolve.report.patch_html import patch_html
from xgent_evolve.report.sections import tokens_cell
from xgent_evolve.report.tables import DASH, seconds
from xgent_evolve.report.transcript_html import transcript_html

MOST_BYTES = 8 * 1024 * 1024
"""About so much HTML is made of evidence; the tables of a report are always whole."""
MOST_STORED = 12
STREAM_CHARACTERS = 6000

_ORDER = {"invalid": 0, "behaviour_failure": 1, "valid": 2}
_STATUS_MARKS = {"valid": "✓", "behaviour_failure": "✗", "invalid": "!"}
_STUDIED = ("measure", "confirm", "propose")
"""What the report's table of attempts lists; the rest checks tasks and sandbox."""
_CHECKS = {
    "untouched": "Check of the task with the untouched workspace",
    "oracle": "Check of the task with the reference solution",
    "preflight": "Check of the sandbox",
    "smoke": "Check of the study",
}
_HEADER = (
    "condition",
    "case",
    "repeat",
    "kind",
    "attempt",
    "status",
    "cause",
    "exit",
    "time",
    "tokens in / out",
)

type Key = tuple[str, str, int, str, int]


def attempts_html(document: Document, evidence: Sequence[AttemptEvidence]) -> str:
    """Return the table of every attempt, with a link to what it left where that is known."""
    links = {item.key: _name(n) for n, item in _numbered(evidence) if item.purpose in _STUDIED}
    rows = [_row(attempt, links) for attempt in parts(document, "attempts")]
    if not rows:
        return "<p>None.</p>"
    header = (*_HEADER, "evidence") if links else _HEADER
    columns = "".join(f'<th scope="col">{name}</th>' for name in header)
    return "\n".join(
        [
            '<div class="wide" role="region" aria-label="Attempts" tabindex="0">',
            "<table>",
            "<caption>Every attempt, failures included</caption>",
            f"<thead><tr>{columns}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody>",
            "</table>",
            "</div>",
        ]
    )


def _row(attempt: Document, links: dict[Key, str]) -> str:
    status = str(attempt["status"])
    cells = [
        f'<th scope="row">{_cell(attempt["condition"])}</th>',
        *(f"<td>{_cell(attempt[name])}</td>" for name in ("case", "repeat", "kind", "attempt")),
        f'<td class="{escape(status)}">{_STATUS_MARKS.get(status, "")} {_cell(status)}</td>',
        f"<td>{_cell(attempt['cause'])}</td>",
        f"<td>{_cell(attempt['exit_code'])}</td>",
        f"<td>{seconds(attempt['duration_s'])}</td>",
        f"<td>{tokens_cell(find_part(attempt, 'tokens'))}</td>",
    ]
    if links:
        key = (
            str(attempt["case"]),
            str(attempt["condition"]),
            _whole(attempt["repeat"]),
            str(attempt["kind"]),
            _whole(attempt["attempt"]),
        )
        name = links.get(key)
        label = words(_title(*key))
        link = DASH if name is None else f'<a href="#{name}" aria-label="Show {label}">show</a>'
        cells.append(f"<td>{link}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def evidence_html(evidence: Sequence[AttemptEvidence], most_bytes: int = MOST_BYTES) -> str:
    """Return what every attempt left, by case, each behind a heading that opens it."""
    numbered = list(_numbered(evidence))
    bodies: dict[int, str] = {}
    left = most_bytes
    for number, item in sorted(numbered, key=lambda pair: (_ORDER[pair[1].status], pair[0])):
        if left <= 0:
            break
        body = _contents(item.load())
        left -= len(body.encode("utf-8", "replace"))
        if left >= 0:
            bodies[number] = body
    lines: list[str] = []
    if len(bodies) < len(numbered):
        missing = len(numbered) - len(bodies)
        lines.append(
            cut(
                f"What {missing:,} of {len(numbered):,} attempts left is not shown: the page is "
                f"limited to about {most_bytes // (1024 * 1024)} MiB of evidence. Attempts without "
                "an observation and failing ones are shown first; for the others, each says where "
                "it is."
            )
        )
    for case, group in groupby(numbered, key=lambda pair: pair[1].case):
        members = list(group)
        lines += ['<details class="case">', _case_summary(case, [item for _, item in members])]
        lines += [_attempt(number, item, bodies.get(number)) for number, item in members]
        lines.append("</details>")
    return "\n".join(lines)


def _numbered(evidence: Sequence[AttemptEvidence]) -> Iterator[tuple[int, AttemptEvidence]]:
    """Yield attempts with numbers, in an order that does not depend on how they were handed in."""
    yield from enumerate(
        sorted(
            evidence,
            key=lambda e: (e.case, e.purpose not in _STUDIED, e.purpose, *e.key),
        ),
        start=1,
    )


def _name(number: int) -> str:
    return f"attempt-{number}"


def _case_summary(case: str, items: Sequence[AttemptEvidence]) -> str:
    measured = [item for item in items if item.purpose in _STUDIED]
    failures = sum(item.status == "behaviour_failure" for item in measured)
    invalid = sum(item.status == "invalid" for item in items)
    counted = (
        f"attempts: {len(measured)} measure, {failures} of them behaviour failures; "
        f"{len(items) - len(measured)} check; {invalid} invalid"
    )
    return f'<summary><h3>{words(case)}</h3> <span class="quiet">{counted}</span></summary>'


def _attempt(number: int, item: AttemptEvidence, body: str | None) -> str:
    title = f"{item.condition}, repeat {item.repeat}, {item.kind}, attempt {item.attempt}"
    mark, kind = _STATUS_MARKS[item.status], item.status
    found = f"{mark} {item.status.replace('_', ' ')}{_because(item.cause)}"
    if item.purpose not in _STUDIED:
        title = f"{_CHECKS.get(item.purpose, item.purpose)}: {item.kind}, attempt {item.attempt}"
        if item.status != "invalid":
            # Whether it is as it should be is the check's to say, not the attempt's.
            found, kind = item.cause or "valid", "quiet"
    lines = [
        '<details class="attempt">',
        f'<summary><h4>{words(title)}</h4> <span class="{kind}">{words(found)}</span></summary>',
        # The name is inside, so that following a link to it opens what it is in.
        f'<div id="{_name(number)}">',
        *_found(item),
        body if body is not None else _not_shown(item),
        f'<p class="quiet">Execution {words(item.execution)}</p>',
        "</div>",
        "</details>",
    ]
    return "\n".join(lines)


def _because(cause: str | None) -> str:
    return "" if cause is None else f": {cause}"


def _found(item: AttemptEvidence) -> Iterator[str]:
    sentence = cause_sentence(item.cause or "") if item.purpose in _STUDIED else ""
    if sentence:
        yield f"<p>{escape(sentence)}</p>"
    if item.detail:
        yield block(item.detail, 1000, "the stored bytes have all of it", output=True)


def _not_shown(item: AttemptEvidence) -> str:
    return cut(
        "Not shown, since the page is limited; the bytes are named in "
        f"executions/{item.execution}/artifacts.json, and this prints them: "
        f"xgent-evolve logs --run DIR --execution {item.execution}"
    )


def _contents(contents: Contents) -> str:
    lines: list[str] = []
    if contents.transcript is not None:
        lines += ["<h5>Transcript</h5>", transcript_html(contents.transcript)]
    if contents.patch is not None:
        lines += ["<h5>Delivered patch</h5>", patch_html(contents.patch)]
    for stream in contents.streams:
        lines.append(f"<h5>{words(stream.name)}</h5>")
        where = f"the stored {stream.name} has all of it"
        lines.append(block(stream.text, STREAM_CHARACTERS, where, kind="output", output=True))
        if stream.dropped_bytes:
            sentence = f"{stream.dropped_bytes:,} bytes in the middle were not captured"
            lines.append(cut(sentence))
    lines += _stored(contents.stored)
    return "\n".join(lines)


def _stored(stored: Sequence[StoredBytes]) -> Iterator[str]:
    if not stored:
        return
    yield "<h5>Stored bytes</h5>"
    yield '<ul class="stored">'
    for item in stored[:MOST_STORED]:
        size = f"{item.size:,} bytes"
        yield f"<li>{words(item.name)}: {size} in <code>{words(item.place)}</code></li>"
    yield "</ul>"
    if len(stored) > MOST_STORED:
        yield cut(f"{len(stored) - MOST_STORED:,} more files are named in artifacts.json")


def _title(case: str, condition: str, repeat: int, kind: str, attempt: int) -> str:
    return f"{case}, {condition}, repeat {repeat}, {kind}, attempt {attempt}"


def _cell(value: JsonValue) -> str:
    if value is None:
        return DASH
    return words(f"{value:,}" if isinstance(value, int) else str(value))


def _whole(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0
