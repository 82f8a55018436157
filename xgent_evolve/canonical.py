"""One byte form for every hashed document, one digest for every byte string.

Canonical JSON here is: keys sorted by code point, no spaces, UTF-8, only objects, arrays,
strings, integers, booleans and null. Floats are refused: two machines may print them
differently, so decimals travel as strings.

A path is bytes. Its text form keeps valid UTF-8 as it is and writes every other byte, and `%`
itself, as `%XX`; `path_text` and `path_bytes` are inverse to each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from blake3 import blake3

from xgent_evolve.ids import Digest

type Json = bool | int | str | list[Json] | dict[str, Json] | None

_ESCAPE = re.compile(rb"%([0-9A-F]{2})")


def canonical_bytes(document: object) -> bytes:
    """Return the canonical JSON of `document`.

    Raises:
        TypeError: a value is not one of the allowed kinds.
        ValueError: a string holds a lone surrogate.

    """
    _require_plain(document, "$")
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def _require_plain(value: object, path: str) -> None:
    match value:
        case None | bool() | int() | str():
            return
        case dict():
            for key, item in value.items():  # pyright: ignore[reportUnknownVariableType]
                if not isinstance(key, str):
                    raise TypeError(f"{path}: key {key!r} is not a string")
                _require_plain(item, f"{path}.{key}")  # pyright: ignore[reportUnknownArgumentType]
        case list() | tuple():
            for index, item in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                _require_plain(item, f"{path}[{index}]")  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise TypeError(f"{path}: {type(value).__name__} has no canonical form")


def digest_bytes(content: bytes | bytearray | memoryview) -> Digest:
    """Return the BLAKE3 digest of `content`."""
    return Digest(f"blake3:{blake3(content).hexdigest()}")


def digest_pieces(pieces: Iterable[bytes]) -> Digest:
    """Return the BLAKE3 digest of bytes that come in pieces."""
    hasher = blake3()
    for piece in pieces:
        hasher.update(piece)
    return Digest(f"blake3:{hasher.hexdigest()}")


def digest_json(document: object) -> Digest:
    """Return the digest of the canonical JSON of `document`."""
    return digest_bytes(canonical_bytes(document))


def path_text(path: bytes) -> str:
    """Return the text form of a path (see the module docstring)."""
    if path.isascii() and b"%" not in path:
        return path.decode("ascii")
    escaped = path.replace(b"%", b"%25").decode("utf-8", "surrogateescape")
    return "".join(
        f"%{ord(char) - 0xDC00:02X}" if 0xDC80 <= ord(char) <= 0xDCFF else char for char in escaped
    )


def path_bytes(text: str) -> bytes:
    """Return the bytes of a path's text form; the inverse of `path_text`."""
    if "%" not in text:
        return text.encode("utf-8")
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8"))
