"""What is true of an execution, by the journal and the host's answer. Pure."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xgent_evolve.execution.facts import (
    Accepted,
    Cancelled,
    Captured,
    Cleaned,
    FactModel,
    Finished,
    Gap,
    Intent,
    Ledger,
    Resolved,
    fact_document,
    parse_fact,
)
from xgent_evolve.execution.reconcile import classify, open_executions
from xgent_evolve.ids import Digest
from xgent_evolve.remote.host import Observation

DIGEST = Digest("blake3:" + "0" * 64)
INTENT = Intent(uuid="u", slot="s", attempt=1, kind="agent", request_sha256="0" * 64)


def ledger(*facts: FactModel) -> Ledger:
    found = Ledger()
    for fact in facts:
        found.apply(fact)
    return found


def seen(state: str, *, driven: bool = False, **receipt: Any) -> Observation:
    receipts = [{"kind": state, **receipt}] if state not in ("absent", "damaged") else []
    return Observation(state, driven, receipts, "a receipt is missing")


ACCEPTED = (INTENT, Accepted(uuid="u"))


@pytest.mark.parametrize(
    ("facts", "observation", "outcome"),
    [
        ((INTENT,), seen("absent"), "never_started"),
        (ACCEPTED, seen("absent"), "gap"),
        (ACCEPTED, seen("accepted"), "never_started"),
        (ACCEPTED, seen("created"), "never_started"),
        (ACCEPTED, seen("staged"), "never_started"),
        (ACCEPTED, seen("start_intent"), "running"),
        (ACCEPTED, seen("started", driven=True), "running"),
        (ACCEPTED, seen("exited"), "ended"),
        (ACCEPTED, seen("credential_destroyed"), "ended"),
        (ACCEPTED, seen("exported"), "exported"),
        (ACCEPTED, seen("failed"), "exported"),
        (ACCEPTED, seen("cancelled"), "exported"),
        (ACCEPTED, seen("cleaned"), "gap"),
        (ACCEPTED, seen("gap", reason="it is gone"), "gap"),
        (ACCEPTED, seen("damaged"), "gap"),
        (ACCEPTED, seen("something new"), "gap"),
        (ACCEPTED, None, "gap"),
        ((*ACCEPTED, Gap(uuid="u", reason="r")), None, "gap"),
        ((*ACCEPTED, Captured(uuid="u", artifacts=DIGEST)), None, "captured"),
        (
            (*ACCEPTED, Captured(uuid="u", artifacts=DIGEST), Cleaned(uuid="u")),
            None,
            "finished",
        ),
        (
            (
                *ACCEPTED,
                Gap(uuid="u", reason="r"),
                Resolved(uuid="u", reason="wiped", artifacts=DIGEST),
            ),
            None,
            "resolved",
        ),
    ],
)
def test_every_answer_has_exactly_one_meaning(
    facts: tuple[FactModel, ...], observation: Observation | None, outcome: str
) -> None:
    row = classify(INTENT, ledger(*facts), observation)
    assert row.outcome == outcome
    assert row.reason


def test_only_executions_without_stored_bytes_are_asked_for() -> None:
    assert open_executions(ledger(*ACCEPTED)) == [INTENT]
    assert open_executions(ledger(*ACCEPTED, Captured(uuid="u", artifacts=DIGEST))) == []


UUIDS = st.sampled_from(["a", "b", "c"])
FACTS = st.one_of(
    st.builds(
        Intent,
        uuid=UUIDS,
        slot=st.just("s"),
        attempt=st.integers(1, 3),
        kind=st.sampled_from(["agent", "grade"]),
        request_sha256=st.just("0" * 64),
    ),
    st.builds(Accepted, uuid=UUIDS),
    st.builds(Captured, uuid=UUIDS, artifacts=st.just(DIGEST)),
    st.builds(Cleaned, uuid=UUIDS),
    st.builds(Gap, uuid=UUIDS, reason=st.text(max_size=5)),
    st.builds(Resolved, uuid=UUIDS, reason=st.text(max_size=5), artifacts=st.just(DIGEST)),
    st.just(Cancelled()),
    st.builds(Finished, report=st.just(DIGEST)),
)


@given(facts=st.lists(FACTS, max_size=20))
def test_a_fact_survives_the_journal_unchanged(facts: list[FactModel]) -> None:
    assert [parse_fact(fact_document(fact), 1, "j") for fact in facts] == facts


@given(facts=st.lists(FACTS, max_size=20), cut=st.integers(0, 20))
def test_the_state_is_the_fold_of_the_facts_whatever_process_folds_them(
    facts: list[FactModel], cut: int
) -> None:
    at_once = ledger(*facts)
    in_two = ledger(*facts[:cut])
    for fact in facts[cut:]:
        in_two.apply(parse_fact(fact_document(fact), 1, "j"))
    assert at_once == in_two


@given(facts=st.lists(FACTS, max_size=20))
def test_a_resolved_gap_is_not_open_and_an_open_one_is_not_forgotten(
    facts: list[FactModel],
) -> None:
    found = ledger(*facts)
    assert {gap.uuid for gap in found.open_gaps()} == found.gaps.keys() - found.resolved.keys()
