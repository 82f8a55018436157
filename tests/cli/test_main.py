"""The command line as such: exit codes, usage, help, streams."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from xgent_evolve import __version__, errors
from xgent_evolve.cli.ending import DEBUG_VARIABLE
from xgent_evolve.cli.main import app, main
from xgent_evolve.cli.output import error_document, exit_code, say_error, wants_colour

type Say = Callable[..., Any]

PROGRAM = [sys.executable, "-m", "xgent_evolve.cli.main"]


@pytest.fixture
def failing() -> Iterator[Callable[[BaseException], None]]:
    """Add a command `fail` that raises what it is told to, and take it away again."""
    before = list(app.registered_commands)

    def install(problem: BaseException) -> None:
        @app.command("fail")
        def fail(*, as_json: bool = False) -> None:  # pyright: ignore[reportUnusedFunction]
            raise problem

    yield install
    app.registered_commands[:] = before


def all_errors() -> list[type[errors.XgentError]]:
    found, open_ = [], [errors.XgentError]
    while open_:
        kind = open_.pop()
        found.append(kind)
        open_.extend(kind.__subclasses__())
    return found


def test_every_error_class_ends_in_its_exit_code(failing: Any, answer: Say) -> None:
    for kind in all_errors():
        if issubclass(kind, errors.SpecError):
            problem: errors.XgentError = kind((errors.Fault("E_X", "m", "w"),))
        elif kind is errors.Interrupted:
            problem = errors.Interrupted("stopped", signal_number=15)
        else:
            problem = kind("message")
        failing(problem)
        said = answer("fail")
        assert said.code == exit_code(problem)
        assert said.err.startswith(f"error[{problem.code}]: ")
        assert said.out == ""


def test_a_signal_ends_in_128_and_its_number() -> None:
    assert exit_code(errors.Interrupted("stopped", signal_number=15)) == 143
    assert exit_code(errors.Interrupted("stopped", signal_number=2)) == 130


def test_an_interrupt_from_the_keyboard_is_130(failing: Any, answer: Say) -> None:
    failing(KeyboardInterrupt())
    said = answer("fail")
    assert (said.code, said.err) == (130, "error[E_INTERRUPTED]: interrupted\n")


def test_an_exit_code_that_a_command_asks_for_is_kept(failing: Any, answer: Say) -> None:
    failing(typer.Exit(3))
    assert (answer("fail").code, answer("fail").err) == (3, "")


def test_an_unexpected_exception_is_told_as_a_defect_without_traceback(
    failing: Any, answer: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEBUG_VARIABLE, raising=False)
    failing(ZeroDivisionError("division by zero"))
    said = answer("fail")
    assert said.code == 1
    assert said.err == (
        "error[E_DEFECT]: this is a defect of xgent-evolve, not of your input\n"
        "  found     ZeroDivisionError: division by zero\n"
        f"  fix       report it with the command that you ran; {DEBUG_VARIABLE}=1 adds the"
        " traceback\n"
    )


def test_the_traceback_of_a_defect_comes_on_demand(
    failing: Any, answer: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, "1")
    failing(ZeroDivisionError("division by zero"))
    said = answer("fail", "--as-json")
    assert "Traceback (most recent call last)" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["validat"], "no such command 'validat'. Did you mean 'validate'?"),
        (["validate"], "missing option '--spec'"),
        (["validate", "--spec"], "option '--spec' requires an argument"),
        (["validate", "--spex", "x"], "no such option: --spex (Possible options: --spec)"),
        (["schema", "--version", "one"], "invalid value for '--version': "),
    ],
)
def test_wrong_usage_is_exit_2_in_the_form_of_every_error(
    answer: Say, arguments: list[str], message: str
) -> None:
    said = answer(*arguments)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"error[E_USAGE]: {message}")
    assert "\n  fix       see: xgent-evolve --help" in said.err


def test_wrong_usage_in_json_is_one_object_on_stdout(answer: Say) -> None:
    said = answer("validate", "--json")
    assert (said.code, said.err) == (2, "")
    assert json.loads(said.out) == {
        "type": "error",
        "code": "E_USAGE",
        "message": "missing option '--spec'",
        "where": "",
        "expected": "",
        "found": "",
        "fix": "see: xgent-evolve --help, or xgent-evolve COMMAND --help",
        "exit_code": 2,
        "faults": [],
    }


def test_the_version_is_one_line(answer: Say) -> None:
    said = answer("--version")
    assert (said.code, said.out, said.err) == (0, f"xgent-evolve {__version__}\n", "")


def test_help_names_every_command_and_the_exit_status_in_80_columns(answer: Say) -> None:
    said = answer("--help")
    assert said.code == 0
    assert answer().out == said.out
    for name in ("validate", "schema"):
        assert re.search(rf"^  {name} ", said.out, re.MULTILINE)
        detail = answer(name, "--help").out
        assert "Exit status: 0" in " ".join(detail.split())
        assert "--json" in detail
        assert max(map(len, detail.splitlines())) <= 80
    assert max(map(len, said.out.splitlines())) <= 80


def test_schema_prints_the_published_schema(answer: Say) -> None:
    published = Path(__file__).parents[2] / "schemas" / "job-spec.v1.json"
    assert answer("schema").out == published.read_text(encoding="utf-8")
    assert json.loads(answer("schema", "--json").out) == json.loads(published.read_text())
    assert answer("schema", "--version", "9").code == 2


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_needs_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert wants_colour(Terminal())
    assert not wants_colour(io.StringIO())
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_colour(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())


def test_only_the_head_of_an_error_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    say_error(errors.TaskError("m", found="a\x1b[2Jb"), as_json=False)
    assert screen.getvalue() == "\x1b[1;31merror[E_SPEC_TASK]\x1b[0m: m\n  found     ab\n"


def test_untrusted_text_cannot_pretend_to_be_another_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_error(errors.TaskError("m\nerror[E_FAKE]: x", found="a\n  fix  rm -rf /"), as_json=False)
    assert capsys.readouterr().err == (
        "error[E_SPEC_TASK]: m\n"
        "            error[E_FAKE]: x\n"
        "  found     a\n"
        "              fix  rm -rf /\n"
    )


def test_the_json_of_an_error_is_safe_for_a_terminal() -> None:
    text = json.dumps(error_document(errors.TaskError("\x1b[2J\u202e")))
    assert text.isprintable()
    assert text.isascii()


def test_a_reader_that_leaves_early_is_no_defect(tmp_path: Path) -> None:
    script = f"{' '.join(PROGRAM)} schema | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in {"0", "141"}
    assert done.stderr == ""


def test_a_locale_without_the_characters_of_a_text_is_no_defect(tmp_path: Path) -> None:
    path = tmp_path / "é.json"
    path.write_text("{", encoding="utf-8")
    done = subprocess.run(
        [*PROGRAM, "validate", "--spec", str(path)],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "\\xe9.json" in done.stderr


def test_main_takes_its_arguments_from_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["xgent-evolve", "--version"])
    assert main() == 0
    assert capsys.readouterr().out.startswith("xgent-evolve ")
