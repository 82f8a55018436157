"""A sandbox that failed is probed again by the next command; one that held is not."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from xgent_evolve.engine.slots import Slot
from xgent_evolve.errors import HostError
from xgent_evolve.harbor.outcome import Broken, Done
from xgent_evolve.workflow.compare import prove_sandbox

HELD = Done(timed_out=False, exit_code=0, usage=None)
BROKEN = Broken("killed", "it was killed")


class Host:
    """A host on which probes end as they are told to; the record outlives each command."""

    def __init__(self) -> None:
        self.recorded: dict[str, Done | Broken] = {}
        self.now: Done | Broken = HELD

    def command(self) -> Any:
        """Return a run as a new command sees it."""
        known = frozenset(self.recorded)
        spec = SimpleNamespace(
            baseline_condition="baseline",
            runtime=SimpleNamespace(ssh=SimpleNamespace(host="host"), apparmor_profile=None),
        )
        protocol = SimpleNamespace(spec=spec, condition=str, case=str)

        async def carry_out(slot: Slot, _plan: object) -> object:
            meaning = self.recorded.setdefault(slot.key, self.now)
            return SimpleNamespace(artifacts=SimpleNamespace(files={}), meaning=meaning)

        return SimpleNamespace(
            protocol=protocol,
            command=carry_out,
            is_recorded=lambda slot: slot.key in known,
            rundir=SimpleNamespace(blobs=SimpleNamespace(get=None)),
        )

    def prove(self) -> None:
        asyncio.run(prove_sandbox(self.command(), "image", "case"))


def test_a_failure_is_told_once_and_probed_again_until_it_holds() -> None:
    host = Host()
    host.now = BROKEN
    for probes in (1, 2):
        with pytest.raises(HostError) as caught:
            host.prove()
        assert caught.value.code == "E_REMOTE_SANDBOX"
        assert len(host.recorded) == probes
    host.now = HELD
    host.prove()
    assert len(host.recorded) == 3
    host.now = BROKEN
    host.prove()
    assert len(host.recorded) == 3, "what has passed is not probed again"
