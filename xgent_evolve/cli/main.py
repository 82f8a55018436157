"""The command line: the commands and their parser.

A command is a module beside this one with a function of the command's name; it imports what it
needs inside the function, so that `--help` stays fast. To add one, import its function here and
put it into `COMMANDS`, which is the order of `--help`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from signal import SIGINT
from typing import Annotated, cast

import typer

from xgent_evolve import __version__
from xgent_evolve.cli.apply import apply
from xgent_evolve.cli.cancel import cancel
from xgent_evolve.cli.compare_runs import compare_runs
from xgent_evolve.cli.correct import correct
from xgent_evolve.cli.demo import demo
from xgent_evolve.cli.doctor import doctor
from xgent_evolve.cli.ending import exit_code_of
from xgent_evolve.cli.export import export
from xgent_evolve.cli.init import init
from xgent_evolve.cli.logs import logs
from xgent_evolve.cli.output import JSON_OPTION, say
from xgent_evolve.cli.report import report
from xgent_evolve.cli.resolve import resolve
from xgent_evolve.cli.resume import resume
from xgent_evolve.cli.run import run
from xgent_evolve.cli.schema import schema
from xgent_evolve.cli.status import status
from xgent_evolve.cli.task import task
from xgent_evolve.cli.validate import validate
from xgent_evolve.cli.verify import verify
from xgent_evolve.cli.watch import watch
from xgent_evolve.errors import Interrupted, InvalidError

COMMANDS: tuple[Callable[..., None], ...] = (
    init,
    task,
    validate,
    doctor,
    run,
    status,
    watch,
    logs,
    resume,
    cancel,
    resolve,
    report,
    compare_runs,
    export,
    verify,
    apply,
    correct,
    demo,
    schema,
)
"""The commands, in the order of `--help`."""

EXIT_STATUS = (
    "Exit status: 0 the command completed, whatever it found; 1 a defect of xgent-evolve; "
    "2 the request is not valid; 3 a precondition does not hold, nothing was changed; "
    "4 the remote host failed; 130 or 143 interrupted."
)

app = typer.Typer(
    name="xgent-evolve",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True, epilog=EXIT_STATUS)
def _start(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Find out whether an edit to a skill or AGENTS.md helps a coding agent."""
    if version:
        say(f"xgent-evolve {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        say(context.get_help())
        raise typer.Exit


for _command in COMMANDS:
    app.command(epilog=EXIT_STATUS)(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    return exit_code_of(lambda: carry_out(given), as_json=JSON_OPTION in given)


def carry_out(arguments: Sequence[str]) -> int:
    """Parse a command line, carry the command out and return the exit code that it asks for.

    Raises:
        XgentError: why it failed; E_USAGE when there is no such command or option.

    """
    try:
        # Outside its standalone mode typer returns the code of an Exit and raises the rest.
        code = cast("int | None", app(arguments, standalone_mode=False))
    except typer.TyperException as error:
        raise _usage_error(error) from error
    if code == 128 + SIGINT:
        raise Interrupted("interrupted", signal_number=SIGINT)
    return code or 0


def _usage_error(error: typer.TyperException) -> InvalidError:
    message = error.format_message()
    return InvalidError(
        message[:1].lower() + message[1:].rstrip("."),
        code="E_USAGE",
        fix="see: xgent-evolve --help, or xgent-evolve COMMAND --help",
    )


if __name__ == "__main__":
    sys.exit(main())
