"""The sections of report.md: each reads its part of the document and returns Markdown lines."""

from __future__ import annotations

from xgent_evolve.report.access import find_interval, find_part, number_of, part, parts, string
from xgent_evolve.report.document import Document, JsonValue
from xgent_evolve.report.tables import DASH, cell, inline, seconds, share, table
from xgent_evolve.report.words import interval_text, points


def guardrail_section(document: Document) -> list[str]:
    """Return the floors, with the unknown kept apart."""
    guardrails = parts(document, "guardrails")
    if not guardrails:
        return []
    rows = [
        [
            cell(found["name"]),
            cell(found["status"]),
            share(found["floor"]),
            share(found["candidate"]),
            f"{share(found['candidate_if_unknown_worst'])} to "
            f"{share(found['candidate_if_unknown_best'])}",
            share(found["baseline"]),
            cell(found["known_trials"]),
            cell(found["unknown_trials"]),
        ]
        for found in guardrails
    ]
    header = ("guardrail", "status", "floor", "candidate", "bounds", "baseline", "known", "unknown")
    return ["## Guardrails", "", *table(header, rows)]


def missing_section(document: Document) -> list[str]:
    """Return what is missing and what it could change."""
    comparison = find_part(document, "comparison")
    if comparison is None:
        return []
    missing, envelope = part(comparison, "missing"), find_interval(comparison, "envelope")
    causes = part(missing, "causes")
    lines = [
        "## Missing trials",
        "",
        f"{missing['missing_trials']} of {missing['expected_trials']} trials have no score, "
        f"{missing['unpaired_cases']} of {comparison['total_cases']} cases are not paired.",
        "",
    ]
    if not missing["missing_trials"]:
        return lines
    low, high = number_of(missing["estimate_if_worst"]), number_of(missing["estimate_if_best"])
    lines += [f"The estimate would be {points(low)} if all were worst, {points(high)} if best."]
    if envelope is not None:
        lines += [f"With the interval moved along: {interval_text(envelope)}."]
    return [
        *lines,
        "",
        *table(("cause", "trials"), [[cell(c), cell(causes[c])] for c in sorted(causes)]),
    ]


def secondary_section(document: Document) -> list[str]:
    """Return the other conditions against the baseline; nothing is decided on them."""
    others = parts(document, "secondary")
    if not others:
        return []
    rows = [
        [
            f"{cell(other['candidate'])} against {cell(other['baseline'])}",
            points(number_of(other["estimate"])),
            _interval(other),
            cell(other["paired_groups"]),
            cell(part(other, "missing")["missing_trials"]),
        ]
        for other in others
    ]
    header = ("conditions", "points", "interval", "groups", "trials missing")
    note = "Shown for orientation; no decision is made on these."
    return ["## Other conditions", "", note, "", *table(header, rows)]


def interaction_section(document: Document) -> list[str]:
    """Return the interaction of four crossed conditions, if they are crossed."""
    found = find_part(document, "interaction")
    if found is None:
        return []
    estimate = number_of(found["estimate"])
    shown = "no estimate" if estimate is None else f"{points(estimate)} points"
    return [
        "## Interaction",
        "",
        "What skill and AGENTS.md do together beyond the sum of what each does alone: "
        f"{shown}, interval {_interval(found)}; n = {found['paired_groups']} groups, "
        f"{found['paired_cases']} cases, {found['unpaired_cases']} cases missing.",
        "",
    ]


def smoke_section(document: Document) -> list[str]:
    """Return what smoke found about each case."""
    if document["smoke"] is None:
        return []
    rows = [
        [
            cell(case["case"]),
            *(_step(case, name) for name in ("probe", "untouched", "oracle", "agent")),
        ]
        for case in parts(document, "smoke")
    ]
    header = ("case", "probe", "untouched is 0", "oracle is 1", "agent")
    return ["## Smoke", "", *table(header, rows)]


def gap_section(document: Document) -> list[str]:
    """Return the evidence gaps."""
    rows = [
        [cell(g["code"]), cell(g["where"]), cell(g["detail"])]
        for g in parts(document, "evidence_gaps")
    ]
    return ["## Evidence gaps", "", *table(("code", "where", "what is lacking"), rows)]


def case_section(document: Document) -> list[str]:
    """Return groups and cases with their means and differences."""
    comparison = find_part(document, "comparison")
    if comparison is None:
        return []
    groups = [
        [
            cell(group["group"]),
            cell(group["weight"]),
            f"{group['paired_cases']} of {group['cases']}",
            points(number_of(group["difference"])),
        ]
        for group in parts(comparison, "groups")
    ]
    cases = [
        [
            cell(case["case"]),
            cell(case["group"]),
            _arm(part(case, "baseline")),
            _arm(part(case, "candidate")),
            points(number_of(case["difference"])),
        ]
        for case in parts(comparison, "cases")
    ]
    return [
        "## Groups and cases",
        "",
        *table(("group", "weight", "paired cases", "points"), groups),
        "Means of the scored repeats, with scored and missing trials:",
        "",
        *table(("case", "group", "baseline", "candidate", "points"), cases),
    ]


def resource_section(document: Document) -> list[str]:
    """Return attempts, tokens and time."""
    counted, used = part(document, "counts"), part(document, "resources")
    kinds = part(counted, "by_kind")
    rows = [
        [kind, *(cell(part(kinds, kind)[key]) for key in _COUNTS)]
        for kind in ("agent", "grade", "optimizer")
        if kind != "optimizer" or document["search"] is not None
    ]
    header = ("attempts", "number", "valid behaviour failures", "invalid attempts")
    agent, evaluation = part(used, "agent"), part(used, "evaluation")
    lines = ["## Resources", "", *table(header, rows)]
    lines += [f"- Agent tokens: {tokens_words(agent)}", f"- Agent time: {_time(agent)}"]
    lines += [f"- Evaluation tokens: {tokens_words(evaluation)}"]
    lines += [f"- Evaluation time: {_time(evaluation)}"]
    if document["search"] is not None:
        optimizer = part(used, "optimizer")
        lines += [f"- Optimizer tokens: {tokens_words(optimizer)}"]
        lines += [f"- Optimizer time: {_time(optimizer)}"]
    lines += [f"- Auxiliary: {_auxiliary(used)}"]
    return [*lines, "- Money: unknown", ""]


def attempt_section(document: Document) -> list[str]:
    """Return every attempt, failures included."""
    rows = [
        [
            cell(attempt["condition"]),
            cell(attempt["case"]),
            cell(attempt["repeat"]),
            cell(attempt["kind"]),
            cell(attempt["attempt"]),
            cell(attempt["status"]),
            cell(attempt["cause"]),
            cell(attempt["exit_code"]),
            seconds(attempt["duration_s"]),
            tokens_cell(find_part(attempt, "tokens")),
        ]
        for attempt in parts(document, "attempts")
    ]
    header = (
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
    return ["## Attempts", "", *table(header, rows)]


def digest_section(document: Document) -> list[str]:
    """Return what was frozen, and the method of the interval."""
    digests, study = part(document, "digests"), part(document, "study")
    rows = [["protocol", f"`{study['protocol_digest']}`"]]
    for kind in ("conditions", "cases"):
        frozen = part(digests, kind)
        rows += [[f"{kind[:-1]} {cell(name)}", f"`{frozen[name]}`"] for name in sorted(frozen)]
    rows += [["payload", f"`{digests['payload']}`"], ["code", f"`{digests['code']}`"]]
    lines = ["## Frozen", "", *table(("what", "digest"), rows)]
    comparison = find_part(document, "comparison")
    if comparison is not None:
        method = part(comparison, "method")
        resamples = int(number_of(method["resamples"]) or 0)
        lines += [
            f"Interval: {method['name']}, {resamples:,} resamples over groups, seed "
            f"{method['seed']}. Decisions need {comparison['required_groups']} groups.",
            "",
        ]
    return lines


def tokens_words(resource: Document) -> str:
    """Return token sums in words; the unknown is named and never 0."""
    tokens = part(resource, "tokens")
    executions, unknown = tokens["executions"], tokens["unknown_executions"]
    if not executions:
        return "none, no model took part"
    if tokens["input"] is None and tokens["output"] is None:
        return f"unknown ({executions} of {executions})"
    known = (
        f"input {_sum(tokens['input'])} (cached {_sum(tokens['cached_input'])}), "
        f"output {_sum(tokens['output'])} (reasoning {_sum(tokens['reasoning_output'])})"
    )
    return f"at least {known}; unknown for {unknown} of {executions}" if unknown else known


_COUNTS = ("attempts", "valid_behaviour_failures", "invalid_attempts")


def _sum(value: JsonValue) -> str:
    return f"{value:,}" if isinstance(value, int) else "unknown"


def _time(resource: Document) -> str:
    time = part(resource, "time")
    if not time["executions"]:
        return "no executions"
    if time["total_s"] is None:
        return f"unknown ({time['executions']} of {time['executions']})"
    text = f"{seconds(time['total_s'])} in all, longest {seconds(time['longest_s'])}"
    if time["unknown_executions"]:
        text += f"; unknown for {time['unknown_executions']} of {time['executions']}"
    return text


def _auxiliary(used: Document) -> str:
    found = find_part(used, "auxiliary")
    if found is None:
        return "not used"
    return (
        f"{found['calls']} calls, input {_sum(found['input_tokens'])}, "
        f"output {_sum(found['output_tokens'])}"
    )


def tokens_cell(tokens: Document | None) -> str:
    """Return one attempt's tokens for a table."""
    return DASH if tokens is None else f"{_sum(tokens['input'])} / {_sum(tokens['output'])}"


def _arm(arm: Document) -> str:
    text = f"{share(arm['mean'])} ({arm['scored']}"
    return f"{text}, {arm['missing']} missing)" if arm["missing"] else f"{text})"


def _interval(holder: Document) -> str:
    interval = find_interval(holder, "interval")
    return "none" if interval is None else interval_text(interval)


def _step(case: Document, name: str) -> str:
    step = find_part(case, name)
    if step is None:
        return DASH
    status, detail = string(step, "status"), string(step, "detail")
    return f"{inline(status)}: {inline(detail)}" if detail else inline(status)
