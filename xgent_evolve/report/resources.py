"""What a run used: tokens, attempts and time, with the unknown counted and never taken for 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xgent_evolve.report.document import Document, JsonValue, number
from xgent_evolve.report.inputs import Attempt, AttemptKind, Auxiliary, Tokens

_KINDS: tuple[AttemptKind, ...] = ("agent", "grade", "optimizer")
_PAID: tuple[AttemptKind, ...] = ("agent", "optimizer")
"""Kinds in which a model takes part."""


def counts(attempts: Sequence[Attempt]) -> Document:
    """Return how many attempts there were, by kind and by what they observed."""
    by_kind: Document = {}
    for kind in _KINDS:
        of_kind = [attempt for attempt in attempts if attempt.kind == kind]
        by_kind[kind] = {
            "attempts": len(of_kind),
            "valid_behaviour_failures": sum(a.status == "behaviour_failure" for a in of_kind),
            "invalid_attempts": sum(a.status == "invalid" for a in of_kind),
        }
    return {
        "attempts": len(attempts),
        "valid_behaviour_failures": sum(a.status == "behaviour_failure" for a in attempts),
        "invalid_attempts": sum(a.status == "invalid" for a in attempts),
        "by_kind": by_kind,
    }


def resources(attempts: Sequence[Attempt], auxiliary: Auxiliary | None) -> Document:
    """Return the resource summary (requirement G3).

    Sums run over the executions that report a value; `unknown_executions` says how many do not.
    A sum of which nothing is known is null. Cached input is part of input and reasoning part of
    output, so neither is added again.
    """
    agents = [attempt for attempt in attempts if attempt.kind == "agent"]
    grades = [attempt for attempt in attempts if attempt.kind == "grade"]
    optimizers = [attempt for attempt in attempts if attempt.kind == "optimizer"]
    return {
        "agent": {"tokens": _tokens(agents), "time": _time(agents)},
        "evaluation": {"tokens": _tokens(grades), "time": _time(grades)},
        "optimizer": {"tokens": _tokens(optimizers), "time": _time(optimizers)},
        "auxiliary": None
        if auxiliary is None
        else {
            "calls": auxiliary.calls,
            "input_tokens": auxiliary.input_tokens,
            "output_tokens": auxiliary.output_tokens,
        },
        "money": None,
    }


def tokens_document(attempt: Attempt) -> Document | None:
    """Return one execution's usage, null where unknown; None when no model takes part."""
    tokens = _usage(attempt)
    if tokens is None:
        return None
    return {
        "input": tokens.input,
        "cached_input": tokens.cached_input,
        "output": tokens.output,
        "reasoning_output": tokens.reasoning_output,
    }


def usage_known(attempt: Attempt) -> bool:
    """Whether the sums need nothing more about this attempt."""
    tokens = _usage(attempt)
    return tokens is None or (tokens.input is not None and tokens.output is not None)


def _usage(attempt: Attempt) -> Tokens | None:
    return Tokens() if attempt.tokens is None and attempt.kind in _PAID else attempt.tokens


def _tokens(attempts: Sequence[Attempt]) -> Document:
    used = [tokens for attempt in attempts if (tokens := _usage(attempt)) is not None]

    def total(part: Callable[[Tokens], int | None]) -> JsonValue:
        known = [value for tokens in used if (value := part(tokens)) is not None]
        return sum(known) if known or not used else None

    return {
        "executions": len(used),
        "unknown_executions": sum(not usage_known(attempt) for attempt in attempts),
        "input": total(lambda tokens: tokens.input),
        "cached_input": total(lambda tokens: tokens.cached_input),
        "output": total(lambda tokens: tokens.output),
        "reasoning_output": total(lambda tokens: tokens.reasoning_output),
    }


def _time(attempts: Sequence[Attempt]) -> Document:
    known = [a.duration_s for a in attempts if a.duration_s is not None]
    return {
        "executions": len(attempts),
        "unknown_executions": len(attempts) - len(known),
        "total_s": number(math.fsum(known)) if known or not attempts else None,
        "longest_s": number(max(known)) if known else None,
    }
