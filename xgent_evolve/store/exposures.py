"""Which confirmation cases have been shown by runs on this machine, kept across runs.

Cases that confirmed once select nobody any more (requirement G2). A run cannot know what other
machines did; what this one knows it says. An entry that cannot be read or written counts as absent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.ids import Digest
from xgent_evolve.store.durable import write_durable


@dataclass(frozen=True, slots=True)
class Exposures:
    """The record; without a directory nothing is ever found or kept."""

    directory: Path | None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Exposures:
        """Return the record of the user: below $XDG_STATE_HOME or ~/.local/state."""
        home = environment.get("HOME", "")
        base = environment.get("XDG_STATE_HOME", "") or (f"{home}/.local/state" if home else "")
        if not base.startswith("/"):
            return cls(None)
        return cls(Path(base) / "xgent-evolve" / "confirmed")

    def count(self, cases: Iterable[Digest], run_id: str) -> int:
        """Return how many of the cases another run has shown."""
        return sum(self._is_shown(case, run_id) for case in cases)

    def keep(self, cases: Iterable[Digest], run_id: str) -> None:
        """Keep that a run shows these cases; doing it again changes nothing."""
        for case in cases:
            directory = self._directory(case)
            if directory is None:
                continue
            try:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                write_durable(directory / run_id, b"")
            except OSError:
                return

    def _is_shown(self, case: Digest, run_id: str) -> bool:
        directory = self._directory(case)
        try:
            names = [] if directory is None else [path.name for path in directory.iterdir()]
        except OSError:
            return False
        return any(not name.startswith(".") and name != run_id for name in names)

    def _directory(self, case: Digest) -> Path | None:
        return None if self.directory is None else self.directory / case.partition(":")[2]


def no_exposures() -> Exposures:
    """Return a record that keeps nothing."""
    return Exposures(None)


def user_exposures(environment: Mapping[str, str] | None) -> Exposures:
    """Return the record for a command that was given that environment; None means this one's."""
    return Exposures.of(os.environ if environment is None else environment)
