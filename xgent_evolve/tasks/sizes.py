"""Sizes as task files write them: whole MiB, or a number with a unit."""

from __future__ import annotations

import re
from decimal import Decimal

_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([KMGT])(?:i?B)?", re.IGNORECASE)
_MIB = {
    "K": Decimal(1) / 1024,
    "M": Decimal(1),
    "G": Decimal(1024),
    "T": Decimal(1024 * 1024),
}


def find_mib(text: str) -> int | None:
    """Return how many MiB a size such as "8G" is; None when it is no whole, positive number.

    As in Harbor every unit is a power of 1024, whether written G, GB or GiB.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    mib = Decimal(match[1]) * _MIB[match[2].upper()]
    return int(mib) if mib > 0 and mib == mib.to_integral_value() else None
