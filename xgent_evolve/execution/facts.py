"""The facts of a journal, and what they say together.

A journal is a list of facts in the order in which they became durable. `Ledger` is their fold:
everything that a resumed controller knows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

from pydantic import Field, TypeAdapter, ValidationError

from xgent_evolve.canonical import Json
from xgent_evolve.errors import StoreError
from xgent_evolve.harbor.request import Kind
from xgent_evolve.ids import Digest
from xgent_evolve.store.record import Record


class Frozen(Record):
    """The first fact of every run: which protocol it carries out (requirement C2)."""

    type: Literal["frozen"] = "frozen"
    protocol: Digest
    """Digest of protocol.json."""


class Preflight(Record):
    """What the host was found to be, before anything was paid for."""

    type: Literal["preflight"] = "preflight"
    facts: Digest
    """Blob of the host's report."""
    tool_manifest_sha256: str
    """Manifest of the verified Codex install."""


class Intent(Record):
    """An execution is registered; nothing has left this machine for it (invariant V1)."""

    type: Literal["intent"] = "intent"
    uuid: str
    slot: str
    attempt: int
    kind: Kind
    request_sha256: str


class Accepted(Record):
    """The host has registered it too."""

    type: Literal["accepted"] = "accepted"
    uuid: str


class Captured(Record):
    """Every byte that came back is stored; cleanup is allowed from here on (invariant V6)."""

    type: Literal["captured"] = "captured"
    uuid: str
    artifacts: Digest
    """Blob of artifacts.json."""


class Cleaned(Record):
    """The host has removed what the execution owned."""

    type: Literal["cleaned"] = "cleaned"
    uuid: str


class Gap(Record):
    """The truth about the execution cannot be established (invariant V5)."""

    type: Literal["gap"] = "gap"
    uuid: str
    reason: str


class Resolved(Record):
    """A person decided what an unexplained execution counts as."""

    type: Literal["resolved"] = "resolved"
    uuid: str
    reason: str
    """The person's words."""
    artifacts: Digest
    """Blob of the record that stands in for the lost one."""


class Cancelled(Record):
    """A person ended the run; every execution that was under way has ended and is captured."""

    type: Literal["cancelled"] = "cancelled"


class TaskChecked(Record):
    """A task's check had passed before, so this run did not repeat it."""

    type: Literal["task_checked"] = "task_checked"
    case: str
    key: Digest
    """Digest of everything that the check depends on: task, image, engine, grading code."""
    run_id: str
    """The run that carried the check out."""


class ConfirmationOpened(Record):
    """The confirmation cases are shown for one candidate; they select nobody any more (G2)."""

    type: Literal["confirmation_opened"] = "confirmation_opened"
    candidate: str
    """Its condition."""
    content: Digest
    """Digest of what it shows."""
    exposed: int = 0
    """How many of the cases another run on this machine had shown before."""


class Finished(Record):
    """The workflow came to its end."""

    type: Literal["finished"] = "finished"
    report: Digest
    """Digest of report.json."""


type FactModel = Annotated[
    Frozen
    | Preflight
    | Intent
    | Accepted
    | Captured
    | Cleaned
    | Gap
    | Resolved
    | Cancelled
    | TaskChecked
    | ConfirmationOpened
    | Finished,
    Field(discriminator="type"),
]

_FACT: TypeAdapter[FactModel] = TypeAdapter(FactModel)


def fact_document(fact: FactModel) -> dict[str, Json]:
    """Return the JSON form of a fact."""
    return cast("dict[str, Json]", fact.model_dump(mode="json"))


def parse_fact(document: dict[str, Json], number: int, where: str) -> FactModel:
    """Return the fact of one journal line.

    Raises:
        StoreError: E_STORE_JOURNAL: the line is whole but not a fact that this version knows.

    """
    try:
        return _FACT.validate_python(document)
    except ValidationError as error:
        raise StoreError(
            "a fact of the journal is not understood",
            code="E_STORE_JOURNAL",
            where=f"{where}: line {number}",
            found=str(document.get("type")),
            fix="use the version of xgent-evolve that wrote the run",
        ) from error


@dataclass(slots=True)
class Ledger:
    """What is known about every execution of a run."""

    intents: dict[str, Intent] = field(default_factory=dict[str, Intent])
    """By UUID, in the order of registration."""
    accepted: set[str] = field(default_factory=set[str])
    captured: dict[str, Captured] = field(default_factory=dict[str, Captured])
    cleaned: set[str] = field(default_factory=set[str])
    gaps: dict[str, Gap] = field(default_factory=dict[str, Gap])
    resolved: dict[str, Resolved] = field(default_factory=dict[str, Resolved])
    frozen: Frozen | None = None
    preflight: Preflight | None = None
    task_checks: dict[str, TaskChecked] = field(default_factory=dict[str, TaskChecked])
    """By case."""
    confirmation: ConfirmationOpened | None = None
    cancelled: bool = False
    finished: Finished | None = None

    def apply(self, fact: FactModel) -> None:
        """Take in one more fact."""
        match fact:
            case Intent(uuid=uuid):
                self.intents[uuid] = fact
            case Accepted(uuid=uuid):
                self.accepted.add(uuid)
            case Captured(uuid=uuid):
                self.captured[uuid] = fact
            case Cleaned(uuid=uuid):
                self.cleaned.add(uuid)
            case Gap(uuid=uuid):
                self.gaps[uuid] = fact
            case Resolved(uuid=uuid, artifacts=artifacts):
                self.resolved[uuid] = fact
                self.captured[uuid] = Captured(uuid=uuid, artifacts=artifacts)
                self.cleaned.add(uuid)
            case TaskChecked(case=name):
                self.task_checks[name] = fact
            case ConfirmationOpened():
                self.confirmation = fact
            case Cancelled():
                self.cancelled = True
            case Frozen():
                self.frozen = fact
            case Preflight():
                self.preflight = fact
            case Finished():
                self.finished = fact

    def open_gaps(self) -> list[Gap]:
        """Return the gaps that nobody has closed."""
        return [gap for uuid, gap in self.gaps.items() if uuid not in self.resolved]

    def count(self, kind: Kind) -> int:
        """Return how many executions of a kind were registered, retries included."""
        return sum(1 for intent in self.intents.values() if intent.kind == kind)
