"""What holds for every document: links lead somewhere, named code exists, lines are short."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_NAMED_FILE = re.compile(
    r"`((?:xgent_evolve|tests|examples|schemas|scripts|docs)/[\w./-]*)(?:::(\w+))?`"
)
TASK_FILES = {"tests/test.sh"}
"""Files of a task directory, which look like ours."""

_COLUMNS = 105
"""About 100; tables, code and a single long word may be longer."""


def prose(path: Path) -> str:
    return _FENCED.sub("", path.read_text())


def anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings, as code hosts make them."""
    titles = [re.sub(r"[^\w\- ]", "", title.lower()) for title in _HEADING.findall(prose(path))]
    return {title.strip().replace(" ", "-") for title in titles}


def links(path: Path) -> Iterator[tuple[Path, str]]:
    for target in _LINK.findall(prose(path)):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            yield (path.parent / name).resolve() if name else path, anchor


def test_the_documents_are_found(documents: list[Path]) -> None:
    names = {str(path.relative_to(ROOT)) for path in documents}
    assert {"README.md", "CHANGELOG.md", "SECURITY.md", "docs/README.md"} <= names


def test_relative_links_lead_to_files_and_headings(documents: list[Path]) -> None:
    broken = [
        f"{path.relative_to(ROOT)}: {target}#{anchor}"
        for path in documents
        for target, anchor in links(path)
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]
    assert broken == []


def test_every_document_is_in_the_index() -> None:
    listed = {target.name for target, _ in links(ROOT / "docs" / "README.md")}
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"} <= listed


def test_named_files_and_tests_exist(documents: list[Path]) -> None:
    missing: list[str] = []
    for path in documents:
        for name, test in _NAMED_FILE.findall(path.read_text()):
            if name in TASK_FILES:
                continue
            target = ROOT / name
            if not target.exists() or (test and test not in functions(target)):
                missing.append(f"{path.relative_to(ROOT)}: {name} {test}")
    assert missing == []


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if hasattr(node, "name")}


def test_lines_of_prose_are_short(documents: list[Path]) -> None:
    long = [
        f"{path.relative_to(ROOT)}: {line[:60]}"
        for path in documents
        for line in prose(path).splitlines()
        if len(line) > _COLUMNS and not line.startswith("|") and " " in line.strip()
    ]
    assert long == []


def test_the_licence_is_the_whole_text_of_apache_2() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n" in text
    assert "Version 2.0, January 2004" in text
    assert "END OF TERMS AND CONDITIONS" in text
    assert "APPENDIX: How to apply the Apache License to your work." in text


# What nobody else has: package registries, and the directories of one machine. Written in parts,
# so that this file does not find itself.
REGISTRIES = ("registry.npm" + "js.org", "py" + "pi.org", "python" + "hosted.org", "npm" + "mirror")
MACHINE_PATH = re.compile(
    r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|Us" + r"ers)/\w|/ho" + r"me/(?!agent\b|someone\b)\w"
)
INVENTED = {"tests/unit/freeze/conftest.py"}
"""Files that speak of a path in a container which looks like one of a machine."""


def texts(files: list[Path]) -> Iterator[tuple[str, str]]:
    for path in files:
        name = str(path.relative_to(ROOT))
        if path.suffix == ".lock" or name == "tests/docs/test_documents.py":
            continue
        try:
            yield name, path.read_text()
        except UnicodeDecodeError:
            continue


def test_no_file_names_a_package_registry(files: list[Path]) -> None:
    found = [(name, host) for name, text in texts(files) for host in REGISTRIES if host in text]
    assert found == []


def test_the_lock_names_the_public_index_alone() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (ROOT / "uv.lock").read_text()))
    assert hosts <= {"py" + "pi.org", "files.python" + "hosted.org"}


def test_no_file_names_a_directory_of_one_machine(files: list[Path]) -> None:
    found = [
        (name, match[0])
        for name, text in texts(files)
        if name not in INVENTED and (match := MACHINE_PATH.search(text))
    ]
    assert found == []


@pytest.mark.parametrize("language", ["json", "python"])
def test_blocks_of_code_can_be_read(
    documents: list[Path], code_blocks: Callable[[Path, str], list[str]], language: str
) -> None:
    import json

    read: Callable[[str], object] = json.loads if language == "json" else ast.parse
    count = 0
    for path in documents:
        for block in code_blocks(path, language):
            read(block)
            count += 1
    assert count > 0
