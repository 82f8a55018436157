"""Collects what is placed in a container: frozen bundles and files made for one execution."""

from __future__ import annotations

from dataclasses import dataclass, field

from xgent_evolve.harbor.request import RequestEntry, placed
from xgent_evolve.ids import Digest
from xgent_evolve.store.bundles import Blobs, Tree, file_entry, load_bundle


@dataclass(slots=True)
class Inputs:
    """Entries below the container's root, and where the bytes of each SHA-256 are stored."""

    blobs: Blobs
    entries: list[RequestEntry] = field(default_factory=list[RequestEntry])
    sources: dict[str, Digest] = field(default_factory=dict[str, Digest])

    def add_file(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Place `content` at the absolute `path`."""
        entry = file_entry(path.strip("/"), content, executable=executable)
        self.blobs.put(content)
        self.entries.extend(self.remember((entry,), ""))

    def add_bundle(self, prefix: str, digest: Digest) -> None:
        """Place a frozen bundle below the absolute directory `prefix`."""
        self.entries.extend(self.remember(load_bundle(self.blobs, digest), prefix))

    def remember(self, tree: Tree, prefix: str) -> list[RequestEntry]:
        """Return the entries of `tree` below `prefix` and note where their bytes are."""
        for entry in tree:
            if entry.blob is not None and entry.sha256 is not None:
                self.sources[entry.sha256] = entry.blob
        return placed(tree, prefix)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What preflight found on the host, as far as a request depends on it."""

    socket: str
    """Engine socket."""
    engine_id: str
    """The engine's own identity."""
    tool: str
    """Directory of the verified Codex install, relative to the remote root."""
    apparmor: bool
    """Whether the engine confines containers with AppArmor."""
    images: dict[str, ImageFacts]
    """By the reference of the JobSpec."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """An image that is on the host."""

    id: str
    """`sha256:` and the engine's image id."""
    path: str
    """The PATH that the image sets for its commands."""
