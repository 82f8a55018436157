"""Task checks that have passed, kept on this machine across runs.

A check says something about bytes: a task, an image, an engine and the code that grades. Its key
names them all, so an entry never goes stale. The cache may be deleted at any time; an entry that
cannot be read counts as absent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.ids import Digest
from xgent_evolve.store.durable import write_durable

_TYPE = "xgent-evolve/task-check/1"


@dataclass(frozen=True, slots=True)
class TaskChecks:
    """The cache; without a directory nothing is ever found or kept."""

    directory: Path | None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> TaskChecks:
        """Return the cache of the user whose environment it is: $XDG_CACHE_HOME or ~/.cache."""
        home = environment.get("HOME", "")
        base = environment.get("XDG_CACHE_HOME", "") or (f"{home}/.cache" if home else "")
        if not base.startswith("/"):
            return cls(None)
        return cls(Path(base) / "xgent-evolve" / "task-checks")

    def find(self, key: Digest) -> str | None:
        """Return the id of the run that passed the check of that key, or None."""
        path = self._path(key)
        if path is None:
            return None
        try:
            entry = cast("Json", json.loads(path.read_bytes()))
        except (OSError, ValueError):
            return None
        if not isinstance(entry, dict) or entry.get("type") != _TYPE or entry.get("key") != key:
            return None
        run = entry.get("run_id")
        return run if isinstance(run, str) else None

    def keep(self, key: Digest, run_id: str) -> None:
        """Keep that a run passed the check; a cache that cannot be written stays as it is."""
        path = self._path(key)
        if path is None:
            return
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_durable(path, canonical_bytes({"type": _TYPE, "key": key, "run_id": run_id}))
        except OSError:
            return

    def _path(self, key: Digest) -> Path | None:
        if self.directory is None:
            return None
        return self.directory / f"{key.partition(':')[2]}.json"


def no_task_checks() -> TaskChecks:
    """Return a cache that keeps nothing."""
    return TaskChecks(None)


def user_task_checks(environment: Mapping[str, str] | None) -> TaskChecks:
    """Return the cache for a command that was given that environment; None means this process's."""
    return TaskChecks.of(os.environ if environment is None else environment)
