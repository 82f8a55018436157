"""The README's commands are commands, and it lists all of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from xgent_evolve.cli.main import COMMANDS, app

ROOT = Path(__file__).resolve().parents[2]
GROUP = typer.main.get_command(app)
_LINE = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?xgent-evolve (.+)$", re.MULTILINE)
_NAMES = [command.__name__.replace("_", "-") for command in COMMANDS]


def lines(documents: list[Path], code_blocks: Callable[[Path, str], list[str]]) -> list[str]:
    blocks = [block for path in documents for block in code_blocks(path, "")]
    return [line for block in blocks for line in _LINE.findall(block)]


def test_every_command_line_parses(
    documents: list[Path], code_blocks: Callable[[Path, str], list[str]]
) -> None:
    found = lines(documents, code_blocks)
    assert len(found) >= 10
    for line in found:
        name, *arguments = shlex.split(line)
        command = GROUP.commands[name]  # pyright: ignore[reportAttributeAccessIssue]
        # Parses the arguments, with all that is required; nothing is carried out.
        command.make_context(name, arguments)


def test_the_readme_has_an_example_of_every_command(
    code_blocks: Callable[[Path, str], list[str]],
) -> None:
    shown = {line.split()[0] for line in lines([ROOT / "README.md"], code_blocks)}
    assert shown == set(_NAMES)


@pytest.mark.parametrize("name", _NAMES)
def test_the_table_of_commands_names_it(name: str) -> None:
    table = re.findall(r"^\| (`.+?`) \| .+\|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert any(f"`{name}`" in cell for cell in table)


def test_the_transcript_has_its_place() -> None:
    text = (ROOT / "README.md").read_text()
    between = text.partition("<!-- transcript -->")[2].partition("<!-- /transcript -->")[0]
    assert "verdict" in between
    assert "report" in between


def test_commands_in_prose_exist(documents: list[Path]) -> None:
    for path in documents:
        for name in re.findall(r"`xgent-evolve ([a-z][a-z-]*)", path.read_text()):
            assert name in _NAMES, f"{path.name}: {name}"
