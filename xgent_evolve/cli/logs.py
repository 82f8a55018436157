"""`xgent-evolve logs`: what executions printed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from xgent_evolve.api.follow import Part


class Stream(StrEnum):
    """Which stream of the command."""

    STDOUT = "stdout"
    STDERR = "stderr"


def logs(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    execution: Annotated[
        str, typer.Option(help="Beginning of an execution's UUID or of a slot; all when absent.")
    ] = "",
    stream: Annotated[Stream, typer.Option(help="Which stream.")] = Stream.STDOUT,
    live: Annotated[
        bool,
        typer.Option(help="Ask the host what executions have printed that are not captured yet."),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(help="Go on with what is printed meanwhile, until nothing runs any more."),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Print what executions printed: from the run directory, with --live also from the host."""
    from xgent_evolve.api.logs import logs as read_logs

    if follow:
        from xgent_evolve.api.follow import follow as follow_logs

        follow_logs(run, execution, stream.value, part_teller(stream, as_json=as_json))
        return

    for log in read_logs(run, execution, stream.value, live=live):
        text = log.content.decode("utf-8", "replace")
        if as_json:
            say_json(
                {
                    "type": "log",
                    "execution": log.intent.uuid,
                    "slot": log.intent.slot,
                    "attempt": log.intent.attempt,
                    "stream": stream.value,
                    "captured": log.captured,
                    "dropped_bytes": log.dropped_bytes,
                    "note": log.note,
                    "text": text,
                }
            )
            continue
        say(f"== {log.intent.slot} #{log.intent.attempt} {stream.value} ({log.intent.uuid})")
        say(text if text or log.captured else "(not captured yet)")
        if log.note:
            say(f"== {log.note}")
        if log.dropped_bytes:
            say(f"== {log.dropped_bytes} bytes in the middle were not kept")


def part_teller(stream: Stream, *, as_json: bool) -> Callable[[Part], None]:
    """Return what prints the parts of a followed run; a heading says whose part comes next."""
    last: list[str] = []

    def tell_part(part: Part) -> None:
        intent = part.intent
        if as_json:
            say_json(
                {
                    "type": "log_part",
                    "execution": intent.uuid,
                    "slot": intent.slot,
                    "attempt": intent.attempt,
                    "stream": stream.value,
                    "captured": part.captured,
                    "note": part.note,
                    "text": part.text,
                }
            )
            return
        if part.text and last != [intent.uuid]:
            last[:] = [intent.uuid]
            say(f"== {intent.slot} #{intent.attempt} {stream.value} ({intent.uuid})")
        if part.text:
            say(part.text.removesuffix("\n"))
        if part.captured:
            say(
                f"== {intent.slot} #{intent.attempt} has ended"
                + (f": {part.note}" * bool(part.note))
            )

    return tell_part
