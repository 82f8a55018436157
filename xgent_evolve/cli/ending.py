"""How a command ends: the one place where an error becomes an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from signal import SIGPIPE
from typing import TextIO

from xgent_evolve.cli.output import ReaderGone, exit_code, say_error
from xgent_evolve.errors import XgentError

DEBUG_VARIABLE = "XGENT_EVOLVE_DEBUG"
_READER_GONE = 128 + SIGPIPE


def exit_code_of(command: Callable[[], int], *, as_json: bool) -> int:
    """Carry out a command, tell why it failed if it did, and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        _accept_any_text(stream)
    try:
        try:
            return command()
        except XgentError as error:
            failed = error
        except ReaderGone:
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence, told as a defect
            if os.environ.get(DEBUG_VARIABLE):
                import traceback

                traceback.print_exc()
            failed = _defect(error)
        say_error(failed, as_json=as_json)
        return exit_code(failed)
    except ReaderGone:
        return _READER_GONE


def _defect(error: Exception) -> XgentError:
    return XgentError(
        "this is a defect of xgent-evolve, not of your input",
        code="E_DEFECT",
        found=f"{type(error).__name__}: {error}",
        fix=f"report it with the command that you ran; {DEBUG_VARIABLE}=1 adds the traceback",
    )


def _accept_any_text(stream: TextIO) -> None:
    """Make the locale's encoding an inconvenience and not a crash."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
