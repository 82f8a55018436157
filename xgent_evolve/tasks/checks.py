"""The kinds of value in a task.toml: each check returns what a value means, or raises `Wrong`."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Callable
from decimal import Decimal
from typing import cast

from xgent_evolve.tasks.sizes import find_mib

MAX_SECONDS = 86_400
MAX_CPUS = 256
MIN_MEMORY_MB = 64
MAX_MIB = 1 << 30
VERSIONS = ("1.0", "1.1", "1.2", "1.3", "1.4")
"""Versions of the format that are understood."""
RESERVED_VARIABLES = frozenset(
    {"PATH", "HOME", "IFS", "ENV", "BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT"}
)
"""Variables by which a task could change what the study's own commands do."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TEMPLATE = re.compile(r"\$\{[^}]*\}")

type Check = Callable[[object], object]


class Wrong(Exception):  # noqa: N818 - the answer of a check, told by its caller
    """A value is not what it has to be."""

    def __init__(self, expected: str, code: str = "E_SPEC_TASK_TOML", found: str = "") -> None:
        """Say what was expected; `found` replaces the value where that may not be shown."""
        super().__init__(expected)
        self.expected = expected
        self.code = code
        self.found = found


def text(value: object) -> str:
    """Accept text."""
    if not isinstance(value, str):
        raise Wrong("text")
    return value


def texts(value: object) -> list[str]:
    """Accept a list of texts."""
    if not isinstance(value, list):
        raise Wrong("a list of texts")
    return [text(item) for item in cast("list[object]", value)]


def anything(value: object) -> object:
    """Accept whatever it is."""
    return value


def table(value: object) -> dict[str, object]:
    """Accept a table."""
    if not isinstance(value, dict):
        raise Wrong("a table")
    return cast("dict[str, object]", value)


def tables(value: object) -> list[dict[str, object]]:
    """Accept a list of tables."""
    if not isinstance(value, list):
        raise Wrong("a list of tables")
    return [table(item) for item in cast("list[object]", value)]


def registry_name(value: object) -> str:
    """Accept a registry's name of a task."""
    if not re.fullmatch(r"[^\s/]+/[^\s/]+", text(value)):
        raise Wrong('"organisation/name"')
    return text(value)


def version(value: object) -> str:
    """Accept a version of the format that is understood."""
    if text(value) not in VERSIONS:
        raise Wrong(f"one of {', '.join(VERSIONS)}", "E_SPEC_TASK_FEATURE")
    return text(value)


def seconds(value: object) -> int:
    """Accept a time limit; a part of a second counts as a whole one."""
    number = _number(value, f"a number of seconds above 0, at most {MAX_SECONDS}")
    if not 0 < number <= MAX_SECONDS:
        raise Wrong(f"a number of seconds above 0, at most {MAX_SECONDS}")
    return math.ceil(number)


def cpus(value: object) -> Decimal:
    """Accept a number of CPUs, as Harbor 0.26 also in parts."""
    expected = f"a number above 0, at most {MAX_CPUS}"
    number = _number(value, expected, "E_SPEC_RESOURCE")
    if not 0 < number <= MAX_CPUS:
        raise Wrong(expected, "E_SPEC_RESOURCE")
    return Decimal(repr(value))


def memory_mb(value: object) -> int:
    """Accept whole MiB of memory."""
    return _mib(value, MIN_MEMORY_MB)


def storage_mb(value: object) -> int:
    """Accept whole MiB of disk."""
    return _mib(value, 1)


def memory_size(value: object) -> int:
    """Accept memory as a size with a unit."""
    return _mib(_sized(value), MIN_MEMORY_MB)


def storage_size(value: object) -> int:
    """Accept disk as a size with a unit."""
    return _mib(_sized(value), 1)


def directory(value: object) -> str:
    """Accept an absolute directory of the container, below its root."""
    path = text(value)
    plain = path.startswith("/") and not path.startswith("//") and posixpath.normpath(path) == path
    if not plain or path == "/" or any(ord(char) < 0x20 for char in path):
        raise Wrong('an absolute path such as "/app", without "..", "." or a slash at the end')
    return path


def environment(value: object) -> dict[str, str]:
    """Accept variables with literal values."""
    found: dict[str, str] = {}
    for name, item in table(value).items():
        if not _VARIABLE.fullmatch(name):
            raise Wrong("names of environment variables", found=f"the name {name[:40]!r}")
        if not isinstance(item, str) or "\0" in item:
            raise Wrong("text without a zero byte", found=f"another value of {name}")
        if _TEMPLATE.fullmatch(item):
            raise Wrong(
                "literal values; nothing of this machine's environment goes to a host",
                "E_SPEC_TASK_FEATURE",
                found=f"the template {item[:40]} for {name}",
            )
        if name in RESERVED_VARIABLES:
            raise Wrong(
                f"other variables than {', '.join(sorted(RESERVED_VARIABLES))}",
                "E_SPEC_TASK_FEATURE",
                found=name,
            )
        found[name] = item
    return dict(sorted(found.items()))


def artifacts(value: object) -> list[str]:
    """Accept files to be kept; returns their paths in the container."""
    if not isinstance(value, list):
        raise Wrong("a list of paths")
    return [_artifact(item) for item in cast("list[object]", value)]


def _artifact(item: object) -> str:
    if isinstance(item, str):
        path = item
    else:
        parts = table(item)
        path = text(parts.get("source"))
        foreign = parts.keys() - {"source", "destination", "exclude"}
        if foreign or parts.get("exclude") or parts.get("destination") is not None:
            raise Wrong("artifacts without destination, exclude and service", "E_SPEC_TASK_FEATURE")
    if not path or ".." in path.split("/"):
        raise Wrong('paths without ".."')
    return path


def _number(value: object, expected: str, code: str = "E_SPEC_TASK_TOML") -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Wrong(expected, code)
    if isinstance(value, float) and not math.isfinite(value):
        raise Wrong(expected, code)
    return value


def _mib(value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_MIB:
        raise Wrong(f"a whole number of MiB, at least {least}", "E_SPEC_RESOURCE")
    return value


def _sized(value: object) -> int:
    size = find_mib(value) if isinstance(value, str) else None
    if size is None:
        raise Wrong('a size of whole MiB with its unit, such as "8G" or "512M"', "E_SPEC_RESOURCE")
    return size
