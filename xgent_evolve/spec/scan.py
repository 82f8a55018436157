"""Read JSON so that nothing is lost or overlooked.

The standard reader keeps the last of two equal keys, accepts NaN, rounds decimals and forgets
positions. A JobSpec decides what is paid for, so this one reports the first two, keeps decimals
exactly and remembers where every value and key stands.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal

from xgent_evolve.spec.locate import (
    Document,
    Flaw,
    JsonPath,
    Place,
    Value,
    line_starts,
    position_of,
)

MAX_DEPTH = 64
"""Deepest nesting that is read; a JobSpec needs less than ten levels."""

MAX_VALUES = 200_000
"""Most values that are read; a JobSpec of a thousand cases has about twenty thousand."""

MAX_NUMBER_LENGTH = 64
_INTEGER_LIMIT = 2**63

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING_BODY = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+-])", re.ASCII)
_WORD = re.compile(r"[\w.+-]+")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})


def scan(text: str) -> Document:
    """Read `text` as far as it is JSON and return its value, flaws and places; never raises."""
    scanner = _Scanner(text)
    try:
        value = scanner.document()
    except _NotJson:
        value = None
    return Document(text, value, tuple(scanner.flaws), scanner.places, scanner.lines)


class _NotJson(Exception):  # noqa: N818 - ends the reading, its flaw is recorded
    """The text is not JSON from here on."""


class _Scanner:
    """A recursive descent over one text; `offset` is the next unread character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self.flaws: list[Flaw] = []
        self.places: dict[JsonPath, Place] = {}
        self.lines = line_starts(text)

    def document(self) -> Value:
        """Read the one value that the text must consist of."""
        if self.text.startswith("\ufeff"):
            raise self._stopped(
                (),
                "the file starts with a byte order mark",
                "the document itself",
                "save it without one",
            )
        value = self._value((), None)
        if self._peek():
            raise self._stopped(
                (),
                "there is text after the end of the document",
                "the end of the file",
                "remove it",
            )
        return value

    def _value(self, path: JsonPath, key_offset: int | None) -> Value:
        next_character = self._peek()
        start = self.offset
        # The first of two equal keys keeps its place.
        self.places.setdefault(path, Place(start if key_offset is None else key_offset, start))
        if len(path) > MAX_DEPTH:
            raise self._stopped(
                path[:4],
                f"the document is nested more than {MAX_DEPTH} levels deep",
                f"at most {MAX_DEPTH} levels",
                "remove the inner levels",
            )
        if len(self.places) > MAX_VALUES:
            raise self._stopped(
                path[:4],
                f"the document has more than {MAX_VALUES} values",
                "a JobSpec",
                "describe the study with less",
            )
        match next_character:
            case "{":
                return self._object(path)
            case "[":
                return self._array(path)
            case '"':
                return self._string(path)
            case _:
                return self._scalar(path)

    def _object(self, path: JsonPath) -> dict[str, Value]:
        members: dict[str, Value] = {}
        self.offset += 1
        if self._peek() == "}":
            self.offset += 1
            return members
        while True:
            if self._peek() != '"':
                raise self._stopped(
                    path, "a key is missing", "a key in double quotes", "write the key in quotes"
                )
            start = self.offset
            key = self._string(path)
            if key in members:
                self._duplicate((*path, key), start)
            if self._peek() != ":":
                raise self._stopped(
                    (*path, key), "the colon after a key is missing", '":"', "add the colon"
                )
            self.offset += 1
            value = self._value((*path, key), start)
            members.setdefault(key, value)
            if self._ends_with(path, "}"):
                return members

    def _array(self, path: JsonPath) -> list[Value]:
        items: list[Value] = []
        self.offset += 1
        if self._peek() == "]":
            self.offset += 1
            return items
        while True:
            items.append(self._value((*path, len(items)), None))
            if self._ends_with(path, "]"):
                return items

    def _ends_with(self, path: JsonPath, closing: str) -> bool:
        """Step over a comma (False) or the closing bracket (True)."""
        found = self._peek()
        if found not in {",", closing}:
            raise self._stopped(
                path,
                "a comma or a closing bracket is missing",
                f'"," or "{closing}"',
                "add it here",
            )
        comma = self.offset
        self.offset += 1
        if found == closing:
            return True
        if self._peek() == closing:
            self.offset = comma
            raise self._stopped(
                path, f'there is a comma before "{closing}"', f'"{closing}"', "remove the comma"
            )
        return False

    def _string(self, path: JsonPath) -> str:
        start = self.offset
        body = _STRING_BODY.match(self.text, start)
        end = body.end() if body else start
        self.offset = end
        match self.text[end : end + 1]:
            case '"':
                self.offset += 1
            case "" | "\n" | "\r":
                raise self._stopped(path, "a string is not closed", "'\"'", "close it in its line")
            case "\\":
                raise self._stopped(
                    path,
                    "a string has an escape that JSON does not know",
                    'one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX',
                    "write a backslash as two",
                )
            case character:
                code = f"U+{ord(character):04X}"
                raise self._stopped(
                    path,
                    f"a string holds the control character {code}",
                    "printable text",
                    "escape it",
                )
        value: str = json.loads(self.text[start : self.offset])
        if _SURROGATE.search(value):
            self.offset = start
            raise self._stopped(
                path,
                "a string holds half of a surrogate pair",
                "whole characters",
                "write the character",
            )
        return value

    def _scalar(self, path: JsonPath) -> Value:
        if number := _NUMBER.match(self.text, self.offset):
            return self._number(path, number)
        word = _WORD.match(self.text, self.offset)
        spelling = word[0] if word else ""
        if word and spelling in _CONSTANTS:
            self.offset = word.end()
            return _CONSTANTS[spelling]
        if word and spelling.casefold().lstrip("+-.") in _NOT_FINITE:
            self._flaw(
                "E_SPEC_NUMBER",
                "the number is not finite",
                path,
                "a finite number",
                "write an ordinary number",
            )
            self.offset = word.end()
            return 0
        raise self._stopped(
            path, "a value is missing or is not JSON", "a JSON value", fix=self._cure()
        )

    def _number(self, path: JsonPath, number: re.Match[str]) -> int | Decimal:
        spelling = number[0]
        problem = ""
        if len(spelling) > MAX_NUMBER_LENGTH:
            problem = f"the number is longer than {MAX_NUMBER_LENGTH} characters"
        elif number[1] or number[2]:
            problem = _range_problem(spelling)
        elif abs(int(spelling)) >= _INTEGER_LIMIT:
            problem = "the integer does not fit into 64 bits"
        if problem:
            self._flaw(
                "E_SPEC_NUMBER",
                problem,
                path,
                "a number of ordinary size",
                "write an ordinary number",
            )
        self.offset = number.end()
        if problem:
            return 0
        return Decimal(spelling) if number[1] or number[2] else int(spelling)

    def _duplicate(self, path: JsonPath, offset: int) -> None:
        first = position_of(self.lines, self.places[path].key)
        self.flaws.append(
            Flaw(
                "E_SPEC_DUPLICATE_KEY",
                f"the key {json.dumps(path[-1], ensure_ascii=False)} is given twice",
                path,
                position_of(self.lines, offset),
                expected="every key once",
                found=f"the first one at line {first.line}, column {first.column}",
                fix="remove one of the two",
            )
        )

    def _peek(self) -> str:
        """Skip white space and return the next character; empty at the end."""
        space = _SPACE.match(self.text, self.offset)
        self.offset = space.end() if space else self.offset
        return self.text[self.offset : self.offset + 1]

    def _flaw(self, code: str, message: str, path: JsonPath, expected: str, fix: str) -> None:
        place = position_of(self.lines, self.offset)
        self.flaws.append(Flaw(code, message, path, place, expected, self._found(), fix))

    def _stopped(self, path: JsonPath, message: str, expected: str, fix: str) -> _NotJson:
        self._flaw("E_SPEC_SYNTAX", message, path, expected, fix)
        return _NotJson()

    def _found(self) -> str:
        rest = self.text[self.offset : self.offset + 24]
        if not rest:
            return "the end of the file"
        word = _WORD.match(rest)
        return word[0] if word else rest[0] if rest[0].isprintable() else f"U+{ord(rest[0]):04X}"

    def _cure(self) -> str:
        rest = self.text[self.offset : self.offset + 16]
        word = _WORD.match(rest)
        if rest.startswith(("//", "/*", "#")):
            return "remove the comment; JSON has none"
        if rest.startswith("'"):
            return "use double quotes"
        if word and word[0].lower() in {*_CONSTANTS, "none"}:
            lower = word[0].lower()
            return f"write {'null' if lower == 'none' else lower}"
        if word and re.match(r"[+-]?[.0-9]", word[0]):
            return "write the number without leading zeros, plus sign or bare point, or quote it"
        return "put text in double quotes" if word else "write a value here"


def _range_problem(spelling: str) -> str:
    size = abs(float(spelling))
    if size == float("inf"):
        return "the number is too large"
    if size == 0 and re.search(r"[1-9]", re.split("[eE]", spelling)[0]):
        return "the number is too close to zero"
    return ""
