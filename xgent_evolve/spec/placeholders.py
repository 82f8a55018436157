"""Places that a template leaves open: `<TARGET_REPO>` and the like, which a caller must fill."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xgent_evolve.spec.faults import Finding, shown
from xgent_evolve.spec.locate import JsonPath, Value

PLACEHOLDER = re.compile(r"<[A-Z][A-Z0-9_]*>")


def placeholder_findings(value: Value, path: JsonPath = ()) -> Iterator[Finding]:
    """Yield every placeholder that is a whole text, or any part of a key.

    Inside a longer text it is left alone: instructions may well speak of `<NAME>`.
    """
    match value:
        case str() if PLACEHOLDER.fullmatch(value):
            yield _open(path, value, at_key=False)
        case list():
            for index, item in enumerate(value):
                yield from placeholder_findings(item, (*path, index))
        case dict():
            for key, item in value.items():
                if PLACEHOLDER.search(key):
                    yield _open((*path, key), key, at_key=True)
                yield from placeholder_findings(item, (*path, key))
        case _:
            return


def _open(path: JsonPath, text: str, *, at_key: bool) -> Finding:
    return Finding(
        path=path,
        at_key=at_key,
        message="a placeholder of the template is not filled in",
        expected="a value of your own",
        found=shown(text),
        fix="replace it; examples/README.md says what each one stands for",
    )
