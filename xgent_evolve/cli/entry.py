"""Where the command begins: what needs no parser is answered before one is loaded.

A plain `validate` is among this: it is what an editor or a commit hook runs again and again, and
loading the parser takes longer than the work. Whatever is not plain goes to the parser.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from xgent_evolve import __version__


def main() -> int:
    """Carry out one command line and return its exit code."""
    words = sys.argv[1:]
    if words == ["--version"]:
        sys.stdout.write(f"xgent-evolve {__version__}\n")
        return 0
    # No plugin of another package may change what a record means; looking for some takes time.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "__all__"
    from xgent_evolve.cli.ending import exit_code_of
    from xgent_evolve.cli.output import JSON_OPTION

    return exit_code_of(lambda: _carry_out(words), as_json=JSON_OPTION in words)


def _carry_out(words: Sequence[str]) -> int:
    options = plain_options(words[1:], flags=("--diff", "--strict", "--json"), value="--spec")
    if words[0:1] == ["validate"] and options is not None:
        from xgent_evolve.cli.preview_command import show_study

        show_study(
            options["--spec"],
            diff="--diff" in options,
            strict="--strict" in options,
            as_json="--json" in options,
        )
        return 0
    from xgent_evolve.cli.main import carry_out

    return carry_out(words)


def plain_options(words: Sequence[str], flags: Sequence[str], value: str) -> dict[str, str] | None:
    """Return what is written in full and once, `value` with a word behind it; None otherwise."""
    options: dict[str, str] = {}
    rest = iter(words)
    for word in rest:
        given = next(rest, "-") if word == value else ""
        if word in options or given.startswith("-") or word not in {value, *flags}:
            return None
        options[word] = given
    return options if options.get(value) else None
