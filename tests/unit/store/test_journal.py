"""The journal keeps facts in order, shares fsyncs, and refuses to go on after a failure."""

from __future__ import annotations

import asyncio
import json
import os
import time

import pytest

from xgent_evolve.errors import InvalidError, StoreError
from xgent_evolve.store.journal import GENESIS, Journal, read_facts


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def test_facts_come_back_in_order(path):
    facts = [{"n": number, "text": "é\n\x00", "none": None} for number in range(5)]
    with Journal.create(path) as journal:
        for fact in facts:
            journal.append(fact)
        assert journal.facts == facts
    with Journal.open(path) as journal:
        assert journal.facts == facts
        journal.append({"n": 5})
    assert read_facts(path) == [*facts, {"n": 5}]


def test_a_line_is_canonical_json_that_continues_the_line_before(path):
    with Journal.create(path) as journal:
        journal.append({"b": 1, "a": 2})
        journal.append({})
    first, second = map(json.loads, path.read_bytes().splitlines())
    assert list(first) == ["digest", "fact", "prev", "seq"]
    assert (first["prev"], first["seq"], first["fact"]) == (GENESIS, 0, {"a": 2, "b": 1})
    assert (second["prev"], second["seq"]) == (first["digest"], 1)


def test_an_existing_journal_is_not_created_again(path):
    Journal.create(path).close()
    with pytest.raises(InvalidError) as caught:
        Journal.create(path)
    assert caught.value.code == "E_OUTPUT_EXISTS"


def test_a_missing_journal_is_named(path):
    with pytest.raises(StoreError) as caught:
        Journal.open(path)
    assert caught.value.code == "E_STORE_MISSING"
    assert str(path) in caught.value.where


def test_a_float_is_refused_and_leaves_no_trace(path):
    with Journal.create(path) as journal:
        with pytest.raises(TypeError):
            journal.append({"seconds": 0.5})
        journal.append({"ms": 500})
    assert read_facts(path) == [{"ms": 500}]


def test_later_changes_to_a_fact_do_not_count(path):
    with Journal.create(path) as journal:
        fact = {"list": [1]}
        journal.append(fact)
        fact["list"].append(2)
        assert journal.facts == [{"list": [1]}]


def test_many_coroutines_share_few_fsyncs_and_keep_the_order_of_their_calls(path):
    async def crowd(journal):
        await asyncio.gather(*(journal.append_soon({"n": number}) for number in range(500)))

    class Counting(Journal):
        flushes = 0

        def _flush(self):
            self.flushes += 1
            super()._flush()

    with Counting.create(path) as journal:
        asyncio.run(crowd(journal))
        assert [fact["n"] for fact in journal.facts] == list(range(500))
        assert journal.flushes < 10
    assert [fact["n"] for fact in read_facts(path)] == list(range(500))


def test_a_fact_is_on_disk_when_its_coroutine_goes_on(path):
    async def one(journal, number):
        await asyncio.sleep(number % 7 / 1000)
        await journal.append_soon({"n": number})
        assert {"n": number} in read_facts(path)

    async def crowd(journal):
        await asyncio.gather(*(one(journal, number) for number in range(60)))

    with Journal.create(path) as journal:
        asyncio.run(crowd(journal))


def test_appending_directly_and_soon_may_be_mixed(path):
    async def mixed(journal):
        soon = [asyncio.create_task(journal.append_soon({"n": number})) for number in range(5)]
        await asyncio.sleep(0)
        journal.append({"n": 5})
        await asyncio.gather(*soon)

    with Journal.create(path) as journal:
        asyncio.run(mixed(journal))
        asyncio.run(mixed(journal))
    assert [fact["n"] for fact in read_facts(path)] == [0, 1, 2, 3, 4, 5] * 2


def test_a_cancelled_callers_fact_is_still_written(path):
    async def cancelled(journal):
        task = asyncio.create_task(journal.append_soon({"n": 1}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Journal.create(path) as journal:
        asyncio.run(cancelled(journal))
    assert read_facts(path) == [{"n": 1}]


def test_after_a_failed_write_nothing_more_is_accepted_and_nothing_is_acknowledged(path):
    with Journal.create(path) as journal:
        journal.append({"n": 0})
        read_only = os.open(path, os.O_RDONLY)
        os.dup2(read_only, journal._descriptor)
        os.close(read_only)
        with pytest.raises(StoreError) as caught:
            journal.append({"n": 1})
        assert caught.value.code == "E_STORE_IO"
        with pytest.raises(StoreError):
            journal.append({"n": 2})
        with pytest.raises(StoreError):
            asyncio.run(journal.append_soon({"n": 3}))
        assert journal.facts == [{"n": 0}]
    assert read_facts(path) == [{"n": 0}]


def test_a_failure_reaches_every_waiting_coroutine(path):
    async def crowd(journal):
        waiting = (journal.append_soon({"n": number}) for number in range(5))
        return await asyncio.gather(*waiting, return_exceptions=True)

    with Journal.create(path) as journal:
        read_only = os.open(path, os.O_RDONLY)
        os.dup2(read_only, journal._descriptor)
        os.close(read_only)
        outcomes = asyncio.run(crowd(journal))
    assert [type(outcome) for outcome in outcomes] == [StoreError] * 5


def test_a_closed_journal_takes_no_facts(path):
    journal = Journal.create(path)
    journal.close()
    journal.close()
    with pytest.raises(ValueError, match="closed"):
        journal.append({})


def test_reading_facts_leaves_a_torn_line_alone(path):
    with Journal.create(path) as journal:
        journal.append({"n": 0})
    torn = path.read_bytes() + b'{"digest":"bl'
    path.write_bytes(torn)
    assert read_facts(path) == [{"n": 0}]
    assert path.read_bytes() == torn


def test_an_append_costs_the_same_however_long_the_journal_is(path):
    def cost(journal):
        return min(timed(journal) for _ in range(40))

    def timed(journal):
        start = time.perf_counter()
        journal.append({"text": "x" * 100})
        return time.perf_counter() - start

    async def fill(journal):
        await asyncio.gather(*(journal.append_soon({"n": number}) for number in range(20_000)))

    with Journal.create(path) as journal:
        short = cost(journal)
        asyncio.run(fill(journal))
        assert cost(journal) < 5 * short + 0.002
