"""Whatever happens to the tail costs no earlier fact; whatever happens elsewhere is reported."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xgent_evolve.errors import StoreError
from xgent_evolve.store.journal import Journal, read_facts

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
facts_lists = st.lists(st.dictionaries(st.text(max_size=8), json_values, max_size=4), max_size=6)
EXTRA = {"extra": [1, "é", None]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("journals")


def written(directory, facts):
    path = directory / "journal.jsonl"
    path.unlink(missing_ok=True)
    with Journal.create(path) as journal:
        for fact in facts:
            journal.append(fact)
    return path


@given(facts=facts_lists)
@settings(deadline=None)
def test_facts_come_back_as_they_were_appended(directory, facts):
    assert read_facts(written(directory, facts)) == facts


@given(facts=facts_lists, data=st.data())
@settings(deadline=None)
def test_a_torn_tail_costs_no_earlier_fact_and_the_journal_stays_usable(directory, facts, data):
    path = written(directory, facts)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    whole = content[:cut].count(b"\n")
    # A cut exactly before a newline leaves a whole line, and that line is kept.
    whole += content[cut : cut + 1] == b"\n"
    with Journal.open(path) as journal:
        assert journal.facts == facts[:whole]
        journal.append(EXTRA)
    with Journal.open(path) as journal:
        assert journal.facts == [*facts[:whole], EXTRA]


@given(facts=facts_lists, junk=st.binary(min_size=1, max_size=40), data=st.data())
@settings(deadline=None)
def test_a_torn_line_may_hold_any_bytes_but_a_newline(directory, facts, junk, data):
    path = written(directory, facts)
    with path.open("ab") as file:
        file.write(junk.replace(b"\n", b"\0"))
    with Journal.open(path) as journal:
        assert journal.facts == facts
        journal.append(EXTRA)
    assert read_facts(path) == [*facts, EXTRA]


@given(facts=facts_lists.filter(bool), data=st.data())
@settings(deadline=None)
def test_any_flipped_byte_is_reported_and_the_file_is_left_as_it_is(directory, facts, data):
    path = written(directory, facts)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    with pytest.raises(StoreError) as caught:
        Journal.open(path)
    assert caught.value.code == "E_STORE_STATE_CORRUPT"
    assert str(path) in caught.value.where
    assert path.read_bytes() == content


@given(facts=st.lists(st.dictionaries(st.text(max_size=3), st.integers()), min_size=2, max_size=6))
@settings(deadline=None)
def test_a_lost_or_repeated_or_moved_line_is_reported(directory, facts):
    path = written(directory, facts)
    lines = path.read_bytes().splitlines(keepends=True)
    for damaged in (lines[1:], [lines[0], *lines], lines[::-1]):
        path.write_bytes(b"".join(damaged))
        with pytest.raises(StoreError):
            read_facts(path)
