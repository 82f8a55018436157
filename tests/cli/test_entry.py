"""A plain validate is answered without the parser, and as the parser would answer it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from xgent_evolve.cli.entry import plain_options

HEAVY = {"asyncio", "asyncssh", "docker", "numpy", "pydantic", "rich", "typer", "yaml"}
"""What a plain validate must not load: each takes longer than the work."""


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ("--spec job.json", {"--spec": "job.json"}),
        ("--json --spec a --diff", {"--json": "", "--spec": "a", "--diff": ""}),
        ("", None),
        ("--diff", None),
        ("--spec", None),
        ("--spec --diff", None),
        ("--spec=job.json", None),
        ("--spec a --spec b", None),
        ("--spec a --diff --diff", None),
        ("--spec a --help", None),
        ("--spec a b", None),
        ("--spec a -- ", None),
    ],
)
def test_only_what_is_written_in_full_and_once_is_plain(
    words: str, options: dict[str, str] | None
) -> None:
    assert plain_options(words.split(" "), ("--diff", "--strict", "--json"), "--spec") == options


def run(*words: str, modules: bool = False) -> tuple[int, str, str]:
    code = (
        "import sys; from xgent_evolve.cli.entry import main; code = main(); "
        f"print(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    start = ["-c", code] if modules else ["-m", "xgent_evolve"]
    done = subprocess.run([sys.executable, *start, *words], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("flags", [(), ("--json",), ("--diff", "--strict"), ("--json", "--diff")])
def test_the_short_way_says_what_the_parser_says(workshop: Any, flags: tuple[str, ...]) -> None:
    spec = str(workshop.fill("skill-compare.json"))
    short = run("validate", "--spec", spec, *flags)
    assert short == run("validate", f"--spec={spec}", *flags)
    # Two groups are too few for a decision, which is a warning.
    assert short[0] == (2 if "--strict" in flags else 0)


def test_a_refusal_is_the_same_both_ways(tmp_path: Path) -> None:
    spec = str(tmp_path / "absent.json")
    for flags in ((), ("--json",)):
        short = run("validate", "--spec", spec, *flags)
        assert short == run("validate", f"--spec={spec}", *flags)
        assert short[0] == 2


def test_a_plain_validate_loads_no_library_that_takes_longer_than_the_work(workshop: Any) -> None:
    code, _, heavy = run(
        "validate", "--spec", str(workshop.fill("skill-compare.json")), modules=True
    )
    assert (code, heavy.strip()) == (0, "")
