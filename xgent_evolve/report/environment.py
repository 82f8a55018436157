"""What the trials ran on and within: host, engine, Codex, and the limits of every case."""

from __future__ import annotations

from xgent_evolve.report.access import find_part, part, parts, string
from xgent_evolve.report.document import Document
from xgent_evolve.report.inputs import Environment
from xgent_evolve.report.tables import cell, inline, table


def environment_document(environment: Environment | None) -> Document | None:
    """Return the part of report.json. Limits are no durations, so no key of theirs ends in _s."""
    if environment is None:
        return None
    return {
        "executor": {
            "architecture": environment.architecture,
            "engine": environment.engine,
            "security": list(environment.security),
        },
        "codex": {
            "version": environment.codex,
            "manifest_sha256": environment.manifest_sha256,
        },
        "limits": [
            {
                "case": item.case,
                "platform": item.platform,
                "image": item.image,
                "cpus": item.cpus,
                "memory_mb": item.memory_mb,
                "storage_mb": None,
                "agent_timeout_seconds": item.agent_timeout_s,
                "grade_timeout_seconds": item.grade_timeout_s,
            }
            for item in sorted(environment.limits, key=lambda item: item.case)
        ],
    }


def environment_section(document: Document) -> list[str]:
    """Return the section of report.md."""
    found = find_part(document, "environment")
    if found is None:
        return []
    executor, codex = part(found, "executor"), part(found, "codex")
    rows = [
        [
            inline(string(item, "case")),
            inline(string(item, "platform")),
            cell(item["cpus"]),
            f"{cell(item['memory_mb'])} MiB",
            "no limit" if item["storage_mb"] is None else f"{cell(item['storage_mb'])} MiB",
            f"{item['agent_timeout_seconds']} s",
            f"{item['grade_timeout_seconds']} s",
        ]
        for item in parts(found, "limits")
    ]
    head = ["case", "platform", "CPUs", "memory", "disk", "agent time", "grade time"]
    return [
        "## Environment and limits",
        "",
        f"Codex {inline(string(codex, 'version'))}, engine {inline(string(executor, 'engine'))}"
        f" on {inline(string(executor, 'architecture'))}. What each execution of a case could use:",
        "",
        *table(head, rows),
    ]
