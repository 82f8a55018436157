"""Two finished runs side by side: what was frozen differently, what each found, what they share.

Two runs are two occasions. Between them the model's service, the host and the day may differ, and
nothing was assigned to one run or the other by chance. So what they share is described, case by
case, and never decided on: there is no interval and no verdict between runs.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from xgent_evolve.report.access import find_part, number_of, part, parts, string
from xgent_evolve.report.document import Document, JsonValue, differences, number
from xgent_evolve.report.tables import plain, share
from xgent_evolve.report.words import points

LIMIT = (
    "A difference between two runs is described, not decided on: the model's service, the host "
    "and the time may differ, and neither run was drawn by chance. To decide between two texts, "
    "run one study that has both as conditions."
)
SAME_TEXT = "the same text in both runs, so a difference is what chance and the occasion do"
OTHER_TEXT = "another text in each run: text and occasion cannot be told apart here"
MOST_SHOWN = 12
"""Lines of one list in the text; the JSON form has all of them."""

type Origin = Literal["computed", "recorded"]
"""computed: again, from the evidence; recorded: read from the report that the journal names."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """One side of a comparison."""

    name: str
    """What the caller calls it."""
    frozen: Document
    """Everything frozen, by name: `spec`, `cases`, `conditions`, `payload`, `code` and so on."""
    report: Document
    """The content of report.json."""
    origin: Origin


def compared_runs(first: FinishedRun, second: FinishedRun) -> Document:
    """Return the comparison of two runs as a document."""
    differing = [
        {"where": place, "first": left, "second": right}
        for place, left, right in differences(first.frozen, second.frozen, "$")
    ]
    protocols = [part(run.report, "study")["protocol_digest"] for run in (first, second)]
    return {
        "type": "run_comparison",
        "schema_version": 1,
        "first": _side(first),
        "second": _side(second),
        "same_protocol": protocols[0] == protocols[1],
        "frozen_differences": [dict(item) for item in differing],
        "shared": [_shared(pair, first, second) for pair in _condition_pairs(first, second)],
        "limit": LIMIT,
    }


def _side(run: FinishedRun) -> Document:
    study, verdict = part(run.report, "study"), part(run.report, "verdict")
    return {
        "run": run.name,
        "origin": run.origin,
        "protocol_id": study["protocol_id"],
        "protocol_digest": study["protocol_digest"],
        "mode": study["mode"],
        "decision": verdict["decision"],
        "sentence": verdict["sentence"],
        "numbers": verdict["numbers"],
        "missing_trials": _missing(run.report),
    }


def _missing(report: Document) -> JsonValue:
    comparison = find_part(report, "comparison")
    return None if comparison is None else part(comparison, "missing")["missing_trials"]


def _condition_pairs(first: FinishedRun, second: FinishedRun) -> Iterator[tuple[str, str, bool]]:
    """Yield conditions that are measured in both runs and have one name or one content."""
    left, right = _contents(first), _contents(second)
    for one in sorted(left):
        for other in sorted(right):
            same = left[one] == right[other]
            if same or one == other:
                yield one, other, same


def _contents(run: FinishedRun) -> dict[str, JsonValue]:
    digests, measured = part(part(run.report, "digests"), "conditions"), _means(run.report)
    return {name: digest for name, digest in digests.items() if name in measured}


def _means(report: Document) -> dict[str, dict[str, Document]]:
    """Return the mean of every measured condition and case, with how it came about."""
    found: dict[str, dict[str, Document]] = {}
    comparison = find_part(report, "comparison")
    for compared in [*([] if comparison is None else [comparison]), *parts(report, "secondary")]:
        for arm in ("baseline", "candidate"):
            cases = found.setdefault(string(compared, arm), {})
            for case in parts(compared, "cases"):
                cases[string(case, "case")] = {"group": case["group"], **part(case, arm)}
    return found


def _shared(pair: tuple[str, str, bool], first: FinishedRun, second: FinishedRun) -> Document:
    one, other, same = pair
    left, right = _means(first.report)[one], _means(second.report)[other]
    names = [name for name in sorted({*left, *right}) if _same_case(name, first, second)]
    cases = [_case(name, left[name], right[name]) for name in names]
    by_group: dict[str, list[float]] = {}
    for case in cases:
        difference = number_of(case["difference"])
        if difference is not None:
            by_group.setdefault(string(case, "group"), []).append(difference)
    groups = [math.fsum(found) / len(found) for found in by_group.values()]
    paired = sum(len(found) for found in by_group.values())
    return {
        "first_condition": one,
        "second_condition": other,
        "same_text": same,
        "meaning": SAME_TEXT if same else OTHER_TEXT,
        "paired_groups": len(groups),
        "paired_cases": paired,
        "shared_cases": len(cases),
        "cases_that_differ_or_are_in_one_run": len({*left, *right}) - len(cases),
        "mean_difference": number(math.fsum(groups) / len(groups)) if groups else None,
        "cases": [*sorted(cases, key=_by_regression)],
    }


def _same_case(name: str, first: FinishedRun, second: FinishedRun) -> bool:
    """Say whether both runs measured the very same task: every frozen byte, image and limit."""
    left, right = (part(run.frozen, "cases").get(name) for run in (first, second))
    return left is not None and left == right


def _case(name: str, left: Document, right: Document) -> Document:
    before, after = number_of(left["mean"]), number_of(right["mean"])
    difference = None if before is None or after is None else after - before
    return {
        "case": name,
        "group": left["group"],
        "first": {key: left[key] for key in ("mean", "scored", "missing")},
        "second": {key: right[key] for key in ("mean", "scored", "missing")},
        "difference": number(difference),
    }


def _by_regression(case: Document) -> tuple[bool, float, str]:
    difference = number_of(case["difference"])
    return (difference is None, difference or 0.0, string(case, "case"))


def comparison_lines(document: Document) -> list[str]:
    """Return the comparison in words."""
    sides = [part(document, "first"), part(document, "second")]
    lines: list[str] = []
    for label, side in zip(("first", "second"), sides, strict=True):
        lines.append(f"{label:<10}{plain(string(side, 'run'))}: {_study_words(side)}")
        lines.append(f"{'':<10}{plain(string(side, 'sentence'))}")
        if side["numbers"] is not None:
            lines.append(f"{'':<10}{plain(string(side, 'numbers'))}")
    lines += ["", *_frozen_lines(document)]
    for shared in parts(document, "shared"):
        lines += ["", *_shared_lines(shared)]
    if not document["shared"]:
        lines += ["", "shared    no condition was measured in both runs"]
    lines += ["", f"limit     {LIMIT}"]
    return [part for line in lines for part in _wrapped(line)]


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, 80, subsequent_indent=" " * 10, break_on_hyphens=False) or [""]


def _study_words(side: Document) -> str:
    origin = "" if side["origin"] == "computed" else ", as recorded by another version"
    return f"{plain(string(side, 'protocol_id'))}, mode {side['mode']}{origin}"


def _frozen_lines(document: Document) -> list[str]:
    found = parts(document, "frozen_differences")
    if document["same_protocol"]:
        return ["frozen    the same protocol: every frozen input is equal"]
    lines = [f"frozen    another protocol: {len(found)} differences"]
    for item in found[:MOST_SHOWN]:
        lines.append(f"  {plain(string(item, 'where'))}")
        lines += [f"    {side:<7} {_short(item[side])}" for side in ("first", "second")]
    if len(found) > MOST_SHOWN:
        lines.append(f"  and {len(found) - MOST_SHOWN} more; --json has all of them")
    return lines


def _shared_lines(shared: Document) -> list[str]:
    one, other = string(shared, "first_condition"), string(shared, "second_condition")
    name = plain(one if one == other else f"{one} / {other}")
    cases = parts(shared, "cases")
    mean = number_of(shared["mean_difference"])
    lines = [
        f"shared    {name}: {plain(string(shared, 'meaning'))}",
        f"{'':<10}second - first: {points(mean)} points on average; n = {shared['paired_groups']} "
        f"groups, {shared['paired_cases']} of {shared['shared_cases']} shared cases paired; "
        "no interval, no verdict",
    ]
    if shared["cases_that_differ_or_are_in_one_run"]:
        left_out = shared["cases_that_differ_or_are_in_one_run"]
        lines.append(f"{'':<10}{left_out} cases are in one run alone or not the same task")
    changed = [case for case in cases if case["difference"] != 0]
    lines += [
        f"  {points(number_of(case['difference'])):>7}  {plain(string(case, 'case'))}: "
        f"{_arm(part(case, 'first'))}, then {_arm(part(case, 'second'))}"
        for case in changed[:MOST_SHOWN]
    ]
    if len(changed) > MOST_SHOWN:
        lines.append(f"  and {len(changed) - MOST_SHOWN} more; --json has all of them")
    return lines


def _arm(arm: Document) -> str:
    missing = f", {arm['missing']} missing" if arm["missing"] else ""
    return f"{share(arm['mean'])} ({arm['scored']}{missing})"


def _short(value: JsonValue) -> str:
    if value is None:
        return "absent"
    text = plain(str(value))
    return text if len(text) <= 90 else f"{text[:89]}…"
