"""Write a new file for the caller, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from xgent_evolve.errors import InvalidError
from xgent_evolve.store.durable import store_errors, write_durable


def write_new(path: Path, text: str) -> int:
    """Write `text` to a file that does not exist yet; return its size in bytes.

    Raises:
        InvalidError: E_OUTPUT_EXISTS.
        StoreError: the file system refused.

    """
    if os.path.lexists(path):
        raise InvalidError(
            "the output file exists already",
            code="E_OUTPUT_EXISTS",
            where=str(path),
            expected="a path where nothing is yet",
            fix="choose another --output",
        )
    content = text.encode()
    with store_errors(path):
        write_durable(path, content)
    return len(content)
