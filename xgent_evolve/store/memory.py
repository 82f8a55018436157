"""Blobs in memory, for `validate`: nothing is written anywhere.

What is received is not kept but read again where it came from, and verified, so that a large
source needs no memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import DriftError, StoreError
from xgent_evolve.ids import Digest
from xgent_evolve.store.bundles import Arrival

if TYPE_CHECKING:
    from xgent_evolve.store.staging import Staging


class MemoryBlobs:
    """Implements `Blobs` without a disk (requirement A1)."""

    def __init__(self) -> None:
        """Start empty."""
        self._contents: dict[Digest, bytes] = {}
        self._received: dict[Digest, Arrival] = {}

    def put(self, content: bytes) -> Digest:
        """Keep `content` and return its digest."""
        digest = digest_bytes(content)
        self._contents[digest] = bytes(content)
        return digest

    def put_many(self, contents: Sequence[bytes]) -> list[Digest]:
        """Keep all of `contents`; return the digests in order."""
        return [self.put(content) for content in contents]

    def put_manifest(self, content: bytes) -> Digest:
        """Keep a manifest; here it is a blob like any other."""
        return self.put(content)

    def gathering(self) -> AbstractContextManager[None]:
        """Do nothing: memory has no barriers."""
        return nullcontext()

    def staging(self) -> None:
        """Return None: nothing is staged."""

    def receive(self, staging: Staging | None, arrivals: Iterable[Arrival]) -> None:  # noqa: ARG002
        """Remember where bytes came from."""
        self._received.update((arrival.digest, arrival) for arrival in arrivals)

    def get(self, digest: Digest) -> bytes:
        """Return the bytes.

        Raises:
            StoreError: E_STORE_MISSING.
            DriftError: E_FREEZE_RACE: where they came from there are other bytes now.

        """
        if digest not in self._contents and digest in self._received:
            arrival = self._received[digest]
            content = arrival.read()
            if digest_bytes(content) != digest:
                raise DriftError(
                    "a file changed while it was frozen",
                    code="E_FREEZE_RACE",
                    where=arrival.place,
                    expected=f"{arrival.size} bytes with the digest {digest[:19]}",
                    found=f"{len(content)} bytes with another",
                    fix="stop whatever writes there, then repeat",
                )
            return content
        try:
            return self._contents[digest]
        except KeyError:
            raise StoreError(
                "stored bytes are missing", code="E_STORE_MISSING", where=digest
            ) from None

    def has(self, digest: Digest, size: int | None = None) -> bool:
        """Say whether the bytes are there."""
        if digest in self._contents:
            return size in {None, len(self._contents[digest])}
        return digest in self._received and size in {None, self._received[digest].size}
