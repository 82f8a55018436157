"""Attempts with contents, for the tests of pages."""

from __future__ import annotations

from collections.abc import Callable

from xgent_evolve.harbor.patch import PatchLine, PathPatch
from xgent_evolve.harbor.transcript import (
    Command,
    Cut,
    Entry,
    FileChange,
    Message,
    Problem,
    Reasoning,
    TodoList,
    ToolCall,
    Transcript,
    Unknown,
)
from xgent_evolve.report.evidence import AttemptEvidence, Contents, StoredBytes, Stream
from xgent_evolve.report.inputs import Attempt, Report


def contents(text: str) -> Contents:
    """Every kind of content, with `text` in every place that a stranger can write to."""
    entries: tuple[Entry, ...] = (
        Message(text),
        Reasoning(text),
        Command(text, text, 0, "completed"),
        Command(text, text, 1, "failed"),
        Command(text, "", None, "in_progress"),
        FileChange(((text, text),), "completed"),
        TodoList(((True, text), (False, text))),
        ToolCall(text, text, text, "failed"),
        Problem(text),
        Unknown(text, text),
        Cut(5),
    )
    lines = (
        PatchLine("@", "-1,1 +1,1"),
        PatchLine(" ", text),
        PatchLine("-", text),
        PatchLine("+", text),
    )
    return Contents(
        Transcript(entries, text, 1, 2),
        (Stream(text, text, 3),),
        (
            PathPatch(text, "changed", (text,), lines, 1, 1),
            PathPatch(text, "refused", (text,)),
        ),
        (StoredBytes(text, f"blobs/ab/{text}", 5),),
    )


def exhibits(
    report: Report, make: Callable[[Attempt], Contents], detail: str = ""
) -> list[AttemptEvidence]:
    """One for every attempt of a report."""
    return [
        AttemptEvidence(
            purpose="measure",
            condition=attempt.condition,
            case=attempt.case,
            repeat=attempt.repeat,
            kind=attempt.kind,
            attempt=attempt.attempt,
            status=attempt.status,
            cause=attempt.cause,
            detail=detail,
            execution=f"execution-{number}",
            load=lambda attempt=attempt: make(attempt),
        )
        for number, attempt in enumerate(report.attempts)
    ]
