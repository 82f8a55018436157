"""`xgent-evolve correct`: freeze corrected facts with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


def correct(
    *,
    repo: Annotated[Path, typer.Option(help="Repository that holds the text.")],
    change: Annotated[
        list[str],
        typer.Option(help="PATH=FILE: a file of the repository and the file with its new text."),
    ],
    evidence: Annotated[list[Path], typer.Option(help="File that shows that it is right.")],
    output: Annotated[Path, typer.Option(help="New directory for the package.")],
    authorized: Annotated[
        bool, typer.Option("--authorized", help="You may decide, and apply may write it.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Freeze a correction of facts, unmeasured and marked so; `apply` writes it when authorised.

    For objective facts alone (a renamed command, a moved file). Nothing is written but the
    package, and no host or model takes part.
    """
    from xgent_evolve.adopt.correction import freeze_correction

    changes = dict(read_change(item) for item in change)
    correction = freeze_correction(repo, changes, evidence, output, authorized=authorized)
    if as_json:
        say_json({"type": "correction", "package": str(output), **correction.model_dump()})
        return
    lines = [
        f"froze {len(correction.changes)} changed, {len(correction.sources)} sources in {output}"
    ]
    if authorized:
        lines.append(f"next: xgent-evolve apply --run {output} --repo {repo} --dry-run")
    else:
        lines.append("apply will refuse it: it was frozen without --authorized")
    say("\n".join(lines))


def read_change(text: str) -> tuple[str, str]:
    """Return path and new text of one `--change`.

    Raises:
        InvalidError: E_CORRECTION: not PATH=FILE, or the file is no UTF-8 text.

    """
    from xgent_evolve.errors import InvalidError

    path, separator, file = text.partition("=")
    found = "no `=`"
    if separator:
        try:
            return path, Path(file).read_bytes().decode()
        except (OSError, ValueError) as error:
            found = str(error)
    raise InvalidError(
        "a change cannot be read",
        code="E_CORRECTION",
        where=f"--change {text}",
        expected="PATH=FILE, where FILE is UTF-8 text",
        found=found,
        fix="give the path in the repository, `=`, and the file with the whole new text",
    )
