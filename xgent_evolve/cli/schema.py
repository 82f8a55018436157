"""`xgent-evolve schema`: print the JSON Schema of a JobSpec."""

from __future__ import annotations

from typing import Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json


def schema(
    *,
    version: Annotated[int, typer.Option(help="Version of the JobSpec format.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Print the JSON Schema of a JobSpec.

    Editors complete and check a JobSpec with it. It is JSON in any case; --json puts it on one
    line.
    """
    from xgent_evolve.spec.schema import schema_document, schema_text

    if as_json:
        say_json(schema_document(version))
    else:
        say(schema_text(version))
