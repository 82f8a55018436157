"""The request of one execution: everything the host runner needs, and nothing secret.

Its canonical JSON is registered by hash on both sides before anything happens (requirement D1).
Bytes are named by SHA-256, which a host can check with its standard library.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict

from xgent_evolve.canonical import Json, canonical_bytes
from xgent_evolve.ids import ExecutionId, RunId
from xgent_evolve.store.bundles import Entry

type Kind = Literal["agent", "grade", "probe", "oracle", "login", "optimizer"]
"""agent: the measured work. grade: the verifier. probe: the sandbox check of a case's image.
oracle: the reference solution. login: one model call that proves the credential. optimizer: a model
that proposes other text."""

PAID: tuple[Kind, ...] = ("agent", "login", "optimizer")
"""Kinds that call a model, and so are handed a credential."""


class RequestPart(BaseModel):
    """Base of the request's parts: closed and immutable."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class RequestEntry(RequestPart):
    """One path to be placed in the container."""

    path: str
    """Relative path in text form."""
    kind: Literal["file", "link", "dir"]
    mode: int
    sha256: str | None = None
    size: int = 0
    target: str | None = None


class FileFact(RequestPart):
    """One side of a change."""

    kind: Literal["file", "link", "dir"]
    mode: int
    sha256: str | None = None
    size: int = 0
    target: str | None = None


class Change(RequestPart):
    """One path that differs between the workspace before and after; None where it is absent."""

    path: str
    before: FileFact | None
    after: FileFact | None


class Workspace(RequestPart):
    """How the working directory is made."""

    path: str
    """Absolute path in the container."""
    from_image: bool
    """Whether it starts from what the image has there."""
    owner: int | None
    """User that owns everything; None keeps the image's owners and gives the rest to root."""
    remove: list[str]
    """Paths taken away from the image's content."""
    entries: list[RequestEntry]
    """Paths laid over it."""
    changes: list[Change]
    """A delivery that is applied on top (grading)."""
    ensure: list[str]
    """Directories made when nothing else made them."""
    repository: bool = False
    """Whether `.git` is made: one fresh commit of all of this."""


class Capture(RequestPart):
    """What is read from the stopped container besides the supervisor's own files."""

    workspace: bool
    """Whether the delivery is computed."""
    exclude: list[str]
    """Paths of the workspace that are not part of a delivery."""
    max_file_bytes: int
    """Largest file of a delivery; a larger one is refused by name."""
    paths: list[str]
    """Directories whose files are kept."""
    outside: bool = False
    """Whether paths that differ from the image elsewhere are named."""


class EngineAddress(RequestPart):
    """Where the host's engine answers."""

    socket: str


class Request(RequestPart):
    """What one execution is asked to do."""

    schema_version: Literal[1] = 1
    uuid: str
    run_id: str
    kind: Kind
    engine: EngineAddress
    container: dict[str, Json]
    """Body of the engine's create call; labels, workspace volume and secret pipe are added."""
    user_id: int
    """User of the command and owner of the control directory."""
    inputs: list[RequestEntry]
    """Files below the container's root, owned by root."""
    directories: list[str]
    """Absolute directories that are made for the command's user."""
    workspace: Workspace
    capture: Capture
    secrets: bool
    """Whether a credential is handed over."""
    limit_s: int
    """Wall time of the command, kept by the supervisor, in seconds."""
    grace_s: int
    """How much later the host runner ends the container by force, in seconds."""

    def text(self) -> str:
        """Return the canonical JSON that is sent, byte for byte."""
        return canonical_bytes(self.model_dump(mode="json")).decode("utf-8")

    def sha256(self) -> str:
        """Return the hash that both sides register."""
        return hashlib.sha256(self.text().encode("utf-8")).hexdigest()

    def blobs(self) -> dict[str, int]:
        """Return hash and size of every byte string that must be on the host first."""
        wanted = {
            item.sha256: item.size
            for item in [*self.inputs, *self.workspace.entries]
            if item.sha256 is not None
        }
        for change in self.workspace.changes:
            if change.after is not None and change.after.sha256 is not None:
                wanted[change.after.sha256] = change.after.size
        return wanted


def placed(entries: tuple[Entry, ...], prefix: str) -> list[RequestEntry]:
    """Return a bundle's entries below `prefix` (relative, may be empty)."""
    start = prefix.strip("/") + "/" if prefix.strip("/") else ""
    return [
        RequestEntry(
            path=start + entry.path,
            kind=entry.kind,
            mode=entry.mode,
            sha256=entry.sha256,
            size=entry.size,
            target=entry.target,
        )
        for entry in entries
    ]


def labels(run_id: RunId, uuid: ExecutionId) -> dict[str, str]:
    """Return the labels by which resources on the engine are recognised as ours."""
    return {"xgent.run": run_id, "xgent.execution": uuid}
