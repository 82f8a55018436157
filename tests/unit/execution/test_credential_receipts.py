"""An execution with a credential counts as cleaned only when its destruction is on record."""

from __future__ import annotations

import pytest

from xgent_evolve.errors import HostError
from xgent_evolve.execution.executor import require_destroyed
from xgent_evolve.execution.facts import Intent

ACCEPTED = {"kind": "accepted"}


def intent(kind: str) -> Intent:
    return Intent.model_validate(
        {"uuid": "u", "slot": "s", "attempt": 1, "kind": kind, "request_sha256": "0"}
    )


@pytest.mark.parametrize(
    "receipt",
    [{"kind": "credential_destroyed"}, {"kind": "cleaned", "credential_destroyed": True}],
)
@pytest.mark.parametrize("kind", ["agent", "login"])
def test_either_receipt_will_do(kind: str, receipt: dict[str, object]) -> None:
    require_destroyed(intent(kind), [ACCEPTED, receipt])


@pytest.mark.parametrize(
    "receipts",
    [[], [ACCEPTED], [{"kind": "cleaned"}], [{"kind": "cleaned", "credential_destroyed": False}]],
)
def test_without_one_it_is_not_clean_and_without_a_credential_none_is_needed(
    receipts: list[dict[str, object]],
) -> None:
    with pytest.raises(HostError) as caught:
        require_destroyed(intent("agent"), receipts)
    assert caught.value.code == "E_REMOTE_CREDENTIAL_KEPT"
    require_destroyed(intent("grade"), receipts)
