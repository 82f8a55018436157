"""What the commands say: stdout is the result, stderr is the story.

Every command can answer in JSON. A failure then is one object on stdout, `{"type": "error", ...}`,
and otherwise a few lines on stderr:

    error[E_CODE]: what happened
      at        job.json:14:19: $.budget.max_trials
      expected  at least 24
      found     12
      fix       raise budget.max_trials
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Literal, TextIO

from xgent_evolve.errors import Fault, Interrupted, SpecError, XgentError
from xgent_evolve.redact import printable

JSON_OPTION = "--json"

type JsonObject = Mapping[str, object]

_LABELS = ("at", "expected", "found", "fix")
_RED, _PLAIN = "\x1b[1;31m", "\x1b[0m"


class ReaderGone(Exception):  # noqa: N818 - `| head` is no fault
    """Nobody reads the output any more."""


def say(text: str) -> None:
    """Write lines of the result to stdout."""
    _write(sys.stdout, printable(text))


def say_json(document: JsonObject) -> None:
    """Write one JSON object as the result: one line, ASCII, safe for any terminal."""
    _write(sys.stdout, json.dumps(document))


def tell(text: str) -> None:
    """Write lines of the story to stderr."""
    _write(sys.stderr, printable(text))


def say_error(error: XgentError, *, as_json: bool) -> None:
    """Tell about a failure: on stderr in the house's form, or on stdout as a JSON object."""
    if as_json:
        say_json(error_document(error))
        return
    colour = wants_colour(sys.stderr)
    faults = error.faults if isinstance(error, SpecError) else (_fault(error),)
    lines = (fault_lines(fault, "error", _RED if colour else "") for fault in faults)
    _write(sys.stderr, "\n".join(lines))
    if isinstance(error, SpecError):
        noun = "fault" if len(faults) == 1 else "faults"
        tell(f"{len(faults)} {noun}; {error.closing}")


def error_document(error: XgentError) -> JsonObject:
    """Return the JSON form of a failure."""
    faults = error.faults if isinstance(error, SpecError) else ()
    return {
        "type": "error",
        **fault_document(_fault(error)),
        "exit_code": exit_code(error),
        "faults": [fault_document(fault) for fault in faults],
    }


def exit_code(error: XgentError) -> int:
    """Return the exit code that belongs to a failure."""
    return 128 + error.signal_number if isinstance(error, Interrupted) else error.exit_code


def wants_colour(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal whose user wants colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _fault(error: XgentError) -> Fault:
    return Fault(error.code, error.message, error.where, error.expected, error.found, error.fix)


def fault_document(fault: Fault) -> JsonObject:
    """Return the JSON form of one fault or warning."""
    return {
        "code": fault.code,
        "message": fault.message,
        "where": fault.where,
        "expected": fault.expected,
        "found": fault.found,
        "fix": fault.fix,
    }


def fault_lines(fault: Fault, kind: Literal["error", "warning"], colour: str = "") -> str:
    """Return a fault or warning in the house's form; `colour` is a terminal sequence or empty."""
    head = f"{kind}[{fault.code}]"
    head = f"{colour}{head}{_PLAIN}" if colour else head
    texts = (fault.where, fault.expected, fault.found, fault.fix)
    return "\n".join(
        [
            f"{head}: {_indented(fault.message)}",
            *(
                f"  {label:<9} {_indented(text)}"
                for label, text in zip(_LABELS, texts, strict=True)
                if text
            ),
        ]
    )


def _indented(text: str) -> str:
    """Return untrusted text that cannot be taken for another label of the message."""
    return printable(text).strip("\n").replace("\n", "\n" + 12 * " ")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()
    except BrokenPipeError as error:
        # The interpreter flushes once more at its end and must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise ReaderGone from error
