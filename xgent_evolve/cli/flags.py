"""The option that every command has."""

from __future__ import annotations

from typing import Annotated

import typer

from xgent_evolve.cli.output import JSON_OPTION

JsonFlag = Annotated[bool, typer.Option(JSON_OPTION, help="Answer in JSON on stdout.")]
"""Declare it as `as_json: JsonFlag = False`."""
