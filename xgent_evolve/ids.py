"""Names of things that outlive a process."""

from __future__ import annotations

from typing import NewType

Digest = NewType("Digest", str)
"""`blake3:` and 64 hexadecimal digits."""

RunId = NewType("RunId", str)
"""A UUID drawn once when the run directory is made."""

ExecutionId = NewType("ExecutionId", str)
"""A UUID that is a function of run, slot and attempt, so it can be derived again."""


def execution_id(run_id: RunId, slot_key: str, attempt: int) -> ExecutionId:
    """Return the identity of one attempt at one slot (V3: a retry has another UUID)."""
    import uuid

    return ExecutionId(str(uuid.uuid5(uuid.UUID(run_id), f"{slot_key}#{attempt}")))
