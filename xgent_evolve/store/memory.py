"""Blobs in memory, for `validate`: nothing is written anywhere."""

from __future__ import annotations

from collections.abc import Sequence

from xgent_evolve.canonical import digest_bytes
from xgent_evolve.errors import StoreError
from xgent_evolve.ids import Digest


class MemoryBlobs:
    """Implements `Blobs` without a disk (requirement A1)."""

    def __init__(self) -> None:
        """Start empty."""
        self._contents: dict[Digest, bytes] = {}

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

    def get(self, digest: Digest) -> bytes:
        """Return the bytes; raise StoreError (E_STORE_MISSING) when absent."""
        try:
            return self._contents[digest]
        except KeyError:
            raise StoreError(
                "stored bytes are missing", code="E_STORE_MISSING", where=digest
            ) from None

    def has(self, digest: Digest, size: int | None = None) -> bool:
        """Say whether the bytes are there."""
        content = self._contents.get(digest)
        return content is not None and size in {None, len(content)}
