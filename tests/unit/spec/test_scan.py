"""Reading JSON: values are exact, flaws are told, reading never raises."""

from __future__ import annotations

from decimal import Decimal

import pytest

from xgent_evolve.spec.scan import MAX_DEPTH, scan


def test_decimals_keep_every_digit_and_integers_stay_integers() -> None:
    value = scan("[0.10, 1e2, 7, -0, 0.12345678901234567890123]").value
    assert value == [Decimal("0.10"), Decimal("1E+2"), 7, 0, Decimal("0.12345678901234567890123")]
    assert isinstance(value, list)
    assert [type(item) for item in value] == [Decimal, Decimal, int, int, Decimal]
    assert str(value[0]) == "0.10"


def test_all_escapes_and_pairs_of_surrogates_are_read() -> None:
    text = r'"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"'
    assert scan(text).value == '"\\/\b\f\n\r\t\u00e9\U0001f600'


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "a value is missing"),
        ('{"a": 1,}', 1, 8, 'comma before "}"'),
        ("[1,\n 2,\n]", 2, 3, 'comma before "]"'),
        ("[1 2]", 1, 4, "comma or a closing bracket"),
        ('{"a" 1}', 1, 6, "colon"),
        ("{a: 1}", 1, 2, "a key is missing"),
        ('{"a": 1', 1, 8, "comma or a closing bracket"),
        ('["never closed]', 1, 16, "not closed"),
        ('["two\nlines"]', 1, 6, "not closed"),
        ('["a\tb"]', 1, 4, "control character U+0009"),
        (r'["\q"]', 1, 3, "escape"),
        (r'["\ud800"]', 1, 2, "surrogate"),
        ("[012]", 1, 2, "a value is missing"),
        ("[+1]", 1, 2, "a value is missing"),
        ("[1.]", 1, 2, "a value is missing"),
        ("// comment\n1", 1, 1, "a value is missing"),
        ("{} {}", 1, 4, "after the end"),
        ("\ufeff{}", 1, 1, "byte order mark"),
    ],
)
def test_a_syntax_fault_is_told_at_its_very_character(
    text: str, line: int, column: int, message: str
) -> None:
    document = scan(text)
    flaw = document.flaws[-1]
    assert flaw.code == "E_SPEC_SYNTAX"
    assert message in flaw.message
    assert flaw.position == (line, column)
    assert document.value is None


def test_deep_nesting_ends_in_a_fault_and_not_in_a_traceback() -> None:
    for text in ("[" * 1_000_000, '{"a":' * 1_000_000, "[" * 70 + "]" * 70):
        assert "nested more than 64 levels" in scan(text).flaws[-1].message


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert not scan("[" * MAX_DEPTH + "]" * MAX_DEPTH).flaws


@pytest.mark.parametrize("key", ["a", "b.c", "", "ä"])
def test_a_key_that_is_given_twice_is_told_with_the_place_of_the_first(key: str) -> None:
    document = scan(f'{{\n  "{key}": 3,\n  "x": 0,\n  "{key}": 1\n}}')
    (flaw,) = document.flaws
    assert (flaw.code, flaw.position, flaw.path) == ("E_SPEC_DUPLICATE_KEY", (4, 3), (key,))
    assert "line 2, column 3" in flaw.found
    assert document.value == {key: 3, "x": 0}


def test_keys_that_are_equal_once_escapes_are_read_are_duplicates() -> None:
    assert [flaw.code for flaw in scan(r'{"a": 1, "\u0061": 2}').flaws] == ["E_SPEC_DUPLICATE_KEY"]


@pytest.mark.parametrize(
    "number",
    ["NaN", "Infinity", "-Infinity", "nan", ".nan", "-inf", "1e999", "1e-999", "9" * 19, "1" * 65],
)
def test_a_number_that_is_not_finite_or_not_of_ordinary_size_is_told(number: str) -> None:
    document = scan(f'{{"a": {number}, "b": 1}}')
    (flaw,) = document.flaws
    assert (flaw.code, flaw.path, flaw.position) == ("E_SPEC_NUMBER", ("a",), (1, 7))
    assert document.value == {"a": 0, "b": 1}


def test_zero_may_be_written_with_any_exponent() -> None:
    assert not scan("[0e-999, 0.0, -0.0]").flaws
