"""Pictures of a comparison as SVG, drawn from the report document.

Each picture has a title and a description for those who do not see it, and the same numbers stand
in a table of the report. Positions have one decimal, so equal documents give equal bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from xgent_evolve.redact import printable
from xgent_evolve.report.access import find_interval, number_of, part, parts, string
from xgent_evolve.report.document import Document
from xgent_evolve.report.words import interval_text, points

_WIDTH, _LEFT, _RIGHT, _ROW = 720, 190, 70, 22
_MOST_ROWS = 400


def interval_picture(comparison: Document) -> str:
    """Draw estimate and interval on the scale from -100 to +100 points; empty without them."""
    estimate, interval = number_of(comparison["estimate"]), find_interval(comparison, "interval")
    if estimate is None or interval is None:
        return ""
    gain = number_of(comparison["min_gain"]) or 0.0
    margin = number_of(comparison["non_inferiority_margin"]) or 0.0
    low, high, middle = _x(interval.low), _x(interval.high), 44
    body = [
        *_scale(74),
        _rectangle("gain", _x(gain), 18, _x(1) - _x(gain), 46),
        _line("margin", (_x(-margin), 18), (_x(-margin), 64)),
        _line("range", (low, middle), (high, middle)),
        *(_line("range", (end, middle - 8), (end, middle + 8)) for end in (low, high)),
        _circle("estimate", _x(estimate), middle, 6),
        _label(_LEFT - 12, middle + 4, string(comparison, "candidate"), "end"),
    ]
    confidence = (number_of(comparison["confidence"]) or 0.0) * 100
    description = (
        f"{points(estimate)} points, {confidence:g} % interval {interval_text(interval)}. Shaded: "
        f"at least the smallest gain worth having, {points(gain)}. Dashed: the largest loss that "
        f"still counts as not worse, {points(-margin)}."
    )
    title = f"{string(comparison, 'candidate')} against {string(comparison, 'baseline')}"
    return _figure(title, description, 96, body)


def group_picture(comparison: Document) -> str:
    """Draw the paired difference of every independent group."""
    groups = parts(comparison, "groups")
    shown = groups[:_MOST_ROWS]
    body = [*_scale(18 + _ROW * len(shown))]
    for number, group in enumerate(shown):
        y = 18 + _ROW * number
        body.append(_label(_LEFT - 12, y + 15, string(group, "group"), "end"))
        difference = number_of(group["difference"])
        if difference is None:
            body.append(_label(_x(0) + 6, y + 15, "not paired", "start"))
            continue
        start, width = min(_x(0), _x(difference)), abs(_x(difference) - _x(0))
        kind = "better" if difference > 0 else "worse" if difference < 0 else "tied"
        body.append(_rectangle(kind, start, y + 4, max(width, 1.5), _ROW - 8))
        body.append(_label(_WIDTH - 4, y + 15, points(difference), "end"))
    signs = part(comparison, "signs")
    description = (
        f"{len(groups)} groups: {signs['better']} better, {signs['worse']} worse, "
        f"{signs['tied']} tied; exact sign test p = {number_of(signs['p_value']):.3g}."
        f"{_left_out(len(groups))}"
    )
    title = "Paired difference of each independent group, in points"
    return _figure(title, description, 40 + _ROW * len(shown), body)


def case_picture(comparison: Document) -> str:
    """Draw the mean of every case under both conditions, on the scale from 0 to 1."""
    cases = parts(comparison, "cases")
    shown = cases[:_MOST_ROWS]
    bottom = 18 + _ROW * len(shown)
    body = [
        item
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
        for item in (
            _line("grid", (_share(share), 14), (_share(share), bottom)),
            _label(_share(share), bottom + 14, f"{share:g}", "middle"),
        )
    ]
    for number, case in enumerate(shown):
        y = 18 + _ROW * number + _ROW / 2
        body.append(_label(_LEFT - 12, y + 4, string(case, "case"), "end"))
        means = [number_of(part(case, arm)["mean"]) for arm in ("baseline", "candidate")]
        known = [_share(mean) for mean in means if mean is not None]
        if len(known) == 2:
            body.append(_line("pair", (known[0], y), (known[1], y)))
        for mean, kind in zip(means, ("before", "after"), strict=True):
            if mean is not None:
                body.append(_circle(kind, _share(mean), y, 5))
    description = (
        "Hollow: mean under the baseline. Filled: mean under the candidate. A case without a dot "
        f"has no score there.{_left_out(len(cases))}"
    )
    return _figure("Mean of each case under both conditions", description, bottom + 22, body)


def candidate_picture(search: Document) -> str:
    """Draw every candidate against the text that it started from; empty without a proposal."""
    candidates = parts(search, "candidates")
    shown = candidates[:_MOST_ROWS]
    if not shown:
        return ""
    body = [*_scale(18 + _ROW * len(shown))]
    for number, candidate in enumerate(shown):
        y = 18 + _ROW * number + _ROW / 2
        decision = string(candidate, "decision")
        name = string(candidate, "id") or f"proposal {candidate['number']}"
        body.append(_label(_LEFT - 12, y + 4, f"{name} from {string(candidate, 'parent')}", "end"))
        body.append(_label(_WIDTH - 4, y + 4, decision, "end"))
        interval, estimate = find_interval(candidate, "interval"), candidate["estimate"]
        if interval is not None:
            body.append(_line("range", (_x(interval.low), y), (_x(interval.high), y)))
        found = number_of(estimate)
        if found is not None:
            kind = {"keep": "better", "discard": "worse"}.get(decision, "tied")
            body.append(_circle(kind, _x(found), y, 6))
    kept = sum(string(candidate, "decision") == "keep" for candidate in candidates)
    description = (
        f"{len(candidates)} proposals, {kept} kept; the best text is {string(search, 'best')}. "
        "Each row: a candidate and the text that it started from; the dot is "
        "the estimated difference, the line its interval. A row without a dot was not measured."
        f"{_left_out(len(candidates))}"
    )
    title = "Candidates against what they started from, in points"
    return _figure(title, description, 40 + _ROW * len(shown), body)


def _figure(title: str, description: str, height: float, body: Sequence[str]) -> str:
    return "\n".join(
        [
            "<figure>",
            f'<svg viewBox="0 0 {_WIDTH} {height:g}" role="img" aria-label="{_text(title)}">',
            f"<title>{_text(title)}</title>",
            f"<desc>{_text(description)}</desc>",
            *body,
            "</svg>",
            f"<figcaption>{_text(title)}. {_text(description)}</figcaption>",
            "</figure>",
        ]
    )


def _scale(bottom: float) -> list[str]:
    lines: list[str] = []
    for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
        kind = "grid" if share else "zero"
        lines.append(_line(kind, (_x(share), 14), (_x(share), bottom)))
        lines.append(
            _label(_x(share), bottom + 14, f"{share * 100:+.0f}" if share else "0", "middle")
        )
    return lines


def _line(kind: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    return (
        f'<line class="{kind}" x1="{start[0]:.1f}" y1="{start[1]:.1f}" '
        f'x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>'
    )


def _rectangle(kind: str, x: float, y: float, width: float, height: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {place}/>'


def _circle(kind: str, x: float, y: float, radius: int) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    shown = text if len(text) <= 26 else f"{text[:25]}…"
    whole = f"<title>{_text(text)}</title>" if shown != text else ""
    return f'<text x="{x:.1f}" y="{y:g}" text-anchor="{anchor}">{whole}{_text(shown)}</text>'


def _left_out(rows: int) -> str:
    return f" The first {_MOST_ROWS} of {rows} are drawn." if rows > _MOST_ROWS else ""


def _x(difference: float) -> float:
    return _share((max(-1.0, min(1.0, difference)) + 1) / 2)


def _share(share: float) -> float:
    return _LEFT + max(0.0, min(1.0, share)) * (_WIDTH - _LEFT - _RIGHT)


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
