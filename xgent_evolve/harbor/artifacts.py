"""What an execution left, after its bytes were stored by hash: `artifacts.json`.

Everything that is concluded about an execution is concluded from this record and the blobs that it
names, so it can be concluded again at any time without the host.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from xgent_evolve.canonical import canonical_bytes
from xgent_evolve.harbor.request import Change, Kind
from xgent_evolve.ids import Digest
from xgent_evolve.store.record import Record

type RecordStatus = Literal[
    "ended",
    "silent",
    "cancelled",
    "no_credential",
    "prepare_failed",
    "contaminated",
    "skill_not_visible",
]


class ExitRecord(Record):
    """The supervisor's own record; only it makes an execution a result (invariant V4)."""

    uuid: str
    container: str
    status: RecordStatus
    """ended: the command ran to its end or its limit; silent: it was stopped because it
    wrote nothing for too long after its start; cancelled: a person ended it; the others:
    it was never started; of these, contaminated and skill_not_visible: the agent would have seen
    other instructions or skills than the plan has."""
    exit_code: int | None
    expired: bool
    """Whether the wall-time limit ended the command."""
    started_cs: int | None
    ended_cs: int | None
    """Hundredths of a second on the host's monotonic clock."""


class EngineState(Record):
    """What the engine said; it corroborates, it does not decide."""

    exit_code: int
    oom_killed: bool
    started_at: str
    finished_at: str


class StoredFile(Record):
    """One captured file."""

    sha256: str
    size: int


class LinkFile(Record):
    """One captured link; links are never followed."""

    link: str


class RefusedFile(Record):
    """A changed file that is too large to be delivered."""

    path: str
    size: int


class Delivery(Record):
    """The difference between the workspace before and after."""

    changes: list[Change]
    refused: list[RefusedFile]


class Outside(Record):
    """Paths outside of the workspace that differ from the image; no delivery carries them."""

    count: int
    paths: list[str]
    """The first of them by name."""


class Failure(Record):
    """An infrastructure failure before the command could start."""

    stage: str
    cause: str
    detail: str


class Artifacts(Record):
    """All that one execution left."""

    uuid: str
    slot: str
    attempt: int
    kind: Kind
    failure: Failure | None = None
    """Set when the host could not start the command; then nothing else is."""
    record: ExitRecord | None = None
    """None when the container ended without the supervisor's record."""
    command_started: bool = True
    """Whether the command may have been started at all."""
    engine: EngineState | None = None
    forced: bool = False
    """Whether the host runner had to end the container."""
    files: dict[str, StoredFile | LinkFile] = Field(
        default_factory=dict[str, StoredFile | LinkFile]
    )
    """Captured files by name."""
    delivery: Delivery | None = None
    outside: Outside | None = None
    """Listed for the reference solution alone."""
    blobs: dict[str, Digest] = Field(default_factory=dict[str, Digest])
    """Stored blob of each SHA-256."""
    redactions: int = 0
    """How often a secret was replaced in what came back."""

    def to_bytes(self) -> bytes:
        """Return the canonical JSON: the content of artifacts.json."""
        return canonical_bytes(self.model_dump(mode="json"))

    def duration_ms(self) -> int | None:
        """Return the command's wall time from the supervisor's record, or None."""
        record = self.record
        if record is None or record.started_cs is None or record.ended_cs is None:
            return None
        return (record.ended_cs - record.started_cs) * 10
