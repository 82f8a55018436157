"""Protected rules: text that every condition and every candidate must keep (B3, B11)."""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.errors import InvalidError
from xgent_evolve.freeze.places import place, spec_path
from xgent_evolve.freeze.snapshot import Snapshot
from xgent_evolve.spec.load import LoadedSpec
from xgent_evolve.spec.parts import ProtectedRule
from xgent_evolve.spec.paths import covered
from xgent_evolve.store.bundles import Blobs


def holds_rule(content: bytes, rule: ProtectedRule) -> bool:
    """Say whether a file keeps a rule: as whole lines, or anywhere for match `contains`.

    Line ends may be LF or CR LF.
    """
    text = _lines(content.decode("utf-8", "replace"))
    wanted = _lines(rule.text)
    if rule.match == "contains":
        return wanted in text
    return f"\n{wanted.strip('\n')}\n" in f"\n{text}\n"


def minimal_text(rules: Sequence[ProtectedRule], path: str) -> bytes:
    """Return the protected rules of one file and nothing else; empty when it has none."""
    kept = [rule.text.strip("\n") for rule in rules if spec_path(rule.path) == path]
    return "".join(f"{text}\n" for text in kept).encode("utf-8", "replace")


def require_rules(
    loaded: LoadedSpec, number: int, shown: Snapshot, absent: Sequence[str], blobs: Blobs
) -> None:
    """Look for every protected rule in what one condition shows.

    `shown` holds everything that the agent finds in this condition, by path in the repository.
    Below `absent` the condition has nothing on purpose, and so no rule either.

    Raises:
        InvalidError: E_SPEC_PROTECTED_RULE naming the rule and the condition.

    """
    condition = loaded.spec.conditions[number].id
    for position, rule in enumerate(loaded.spec.target.protected_rules):
        path = spec_path(rule.path)
        if covered(path, absent):
            continue
        entry = shown.entries.get(path)
        file = None if entry is None else shown.followed(entry)
        if file is not None and file.blob is not None and holds_rule(blobs.get(file.blob), rule):
            continue
        raise InvalidError(
            "a protected rule is missing",
            code="E_SPEC_PROTECTED_RULE",
            where=place(loaded, "target", "protected_rules", position),
            expected=f"{rule.path} with the {rule.match} text {_short(rule.text)}",
            found=f"condition {condition} has "
            + (f"no {rule.path}" if file is None else f"{rule.path} without it"),
            fix="keep the rule word for word in every condition, or correct it in the JobSpec",
        )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n")


def _short(text: str) -> str:
    first = text.strip().partition("\n")[0]
    return repr(first if len(first) <= 60 else f"{first[:57]}...")
