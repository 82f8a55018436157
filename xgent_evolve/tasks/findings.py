"""What is found in a task folder: faults, which stop a study, and warnings, which do not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from xgent_evolve.errors import Fault

_SHOWN_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class TaskWarning:
    """Something that does not stop a study and that its author should know."""

    code: str
    """W_TASK_..., for scripts."""
    message: str
    where: str
    """File and key."""

    def text(self) -> str:
        """Return it as one line."""
        return f"{self.code}: {self.message} ({self.where})"


@dataclass(slots=True)
class Findings:
    """Collects faults and warnings, so that all of them are told at once."""

    faults: list[Fault] = field(default_factory=list[Fault])
    warnings: list[TaskWarning] = field(default_factory=list[TaskWarning])

    def warn(self, code: str, message: str, where: str) -> None:
        """Add a warning."""
        self.warnings.append(TaskWarning(code, message, where))

    def extend(self, other: Findings) -> None:
        """Add everything that `other` holds."""
        self.faults.extend(other.faults)
        self.warnings.extend(other.warnings)


def shown(value: object) -> str:
    """Return a TOML value as a reader knows it, shortened."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "something too large to be shown"
    if len(text) <= _SHOWN_CHARACTERS:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"
