"""Which component of a harness an edit changes.

An editor claims a label; the claim is kept when the edit's own diff shows a signal for it, and is
otherwise replaced by what the diff shows. Labels steer exploration, history and novelty alone; what
may be edited at all is the JobSpec's `target.paths`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

type Component = Literal[
    "prompt",
    "control_flow",
    "config",
    "output_plumbing",
    "context_mgmt",
    "client_tool",
    "skill",
    "memory",
    "subagent",
]

COMPONENTS: tuple[Component, ...] = get_args(Component.__value__)
"""Every label, in the order of the source."""

STRUCTURAL = frozenset({"client_tool", "skill", "memory", "subagent"})
"""Labels that count as novelty while no winning edit had them."""


@dataclass(frozen=True, slots=True)
class Signal:
    """Patterns one of which, found in an edit's diff, speaks for a component."""

    component: Component
    patterns: tuple[str, ...]
    """Regular expressions, searched without regard to case in every line of the diff."""

    def occurs(self, diff: str) -> bool:
        """Say whether a pattern is found in `diff`."""
        return any(re.search(p, diff, re.IGNORECASE | re.MULTILINE) for p in self.patterns)


# The published patterns belong to the published harnesses; these are our own, of the same four
# kinds in the same order. An underscore separates words too, hence no \b at their left.
GENERIC_SIGNALS: tuple[Signal, ...] = (
    Signal("memory", (r"(?<![a-z])memor(?:y|ies)\b", r"\.(?:recall|remember|memori[sz]e)\(")),
    Signal("skill", (r"(?<![a-z])skills/", r"\bSKILL\.md\b", r"\b(?:load|use)_skill\b")),
    Signal(
        "client_tool",
        (r"tool_?registry", r"\bregister_tool\b", r"@tool\b", r"(?<![a-z])(?:client_)?tools/"),
    ),
    Signal(
        "subagent",
        (r"sub_?-?agents?(?![a-z])", r"\bsub_?call\(", r"\b(?:spawn|delegate)_(?:agent|task)\b"),
    ),
)
"""Signals that any harness has. The other labels are found by a target's own signals alone."""

_STRING = r"""[rbfu]{0,2}(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_STRING_OR_COMMENT = re.compile(rf"(?:#.*|//.*|(?:{_STRING}\s*)+[,;)\]}}]*)", re.IGNORECASE)
_HEADER = re.compile(r"(?:\+\+\+|---)(?: |$)")


def normalise(
    declared: str | None, diff: str, component_signals: Sequence[Signal] = ()
) -> Component:
    """Return the component of an edit from its claim and the diff of its own files.

    The claim, trimmed and in lower case, stands when it is a known label and a signal for it occurs
    in `diff`. `component_signals` are a target's own and go before the generic ones.
    """
    signals = (*component_signals, *GENERIC_SIGNALS)
    claim = (declared or "").strip().lower()
    for signal in signals:
        if signal.component == claim and signal.occurs(diff):
            return signal.component
    return classify(diff, component_signals)


def classify(diff: str, component_signals: Sequence[Signal] = ()) -> Component:
    """Return the component that a diff shows by itself.

    A diff that changes strings and comments alone is a prompt; else the first signal that occurs
    decides; else it is a prompt.
    """
    if _only_wording(diff):
        return "prompt"
    for signal in (*component_signals, *GENERIC_SIGNALS):
        if signal.occurs(diff):
            return signal.component
    return "prompt"


def _only_wording(diff: str) -> bool:
    """Say whether there are changed lines and each is a string literal or a comment."""
    changed = [
        line[1:].strip()
        for line in diff.splitlines()
        if line[:1] in {"+", "-"} and not _HEADER.match(line)
    ]
    written = [line for line in changed if line]
    return bool(written) and all(_STRING_OR_COMMENT.fullmatch(line) for line in written)
