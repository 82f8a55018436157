"""What a run directory says about its run: no lock, no network, no writing.

It works while a controller is at work, after it died, and on a copy of the directory.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from xgent_evolve.api.session import open_rundir, read_ledger
from xgent_evolve.canonical import Json
from xgent_evolve.execution.executor import load_artifacts
from xgent_evolve.execution.facts import Intent, Ledger
from xgent_evolve.harbor.outcome import file_content
from xgent_evolve.harbor.sandbox import SandboxReport, read_report
from xgent_evolve.store.lock import Holder, find_holder
from xgent_evolve.store.rundir import RunDir

type Stage = Literal["running", "finished", "cancelled", "gap", "interrupted"]
"""running: a controller is at work. interrupted: none is, and resume can go on."""

type Phase = Literal["registered", "on_host", "captured", "cleaned", "gap", "resolved"]


@dataclass(frozen=True, slots=True)
class ExecutionStatus:
    """One execution, as far as the journal knows it."""

    intent: Intent
    phase: Phase


@dataclass(frozen=True, slots=True)
class RunStatus:
    """One run."""

    path: Path
    protocol_id: str
    mode: str
    stage: Stage
    holder: Holder | None
    """The controller that is at work."""
    executions: tuple[ExecutionStatus, ...]
    trials_spent: int
    """Agent executions that were registered."""
    max_trials: int
    next_step: str
    host: dict[str, Json] | None = None
    """What the host was found to be (host.json); None before the first execution."""
    sandboxes: dict[str, SandboxReport] = field(default_factory=dict[str, SandboxReport])
    """What each check of the sandbox found, by slot and attempt."""

    def counts(self) -> dict[str, int]:
        """Return how many executions are in each phase."""
        return dict(sorted(Counter(item.phase for item in self.executions).items()))

    def document(self) -> dict[str, Json]:
        """Return the JSON form."""
        return {
            "type": "status",
            "run": str(self.path),
            "protocol_id": self.protocol_id,
            "mode": self.mode,
            "stage": self.stage,
            "controller": None
            if self.holder is None
            else {"pid": self.holder.pid, "host": self.holder.host, "since": self.holder.since},
            "counts": dict(self.counts()),
            "trials_spent": self.trials_spent,
            "max_trials": self.max_trials,
            "host": self.host,
            "sandboxes": {name: found.document() for name, found in self.sandboxes.items()},
            "executions": [
                {
                    "execution": item.intent.uuid,
                    "slot": item.intent.slot,
                    "attempt": item.intent.attempt,
                    "kind": item.intent.kind,
                    "phase": item.phase,
                }
                for item in self.executions
            ],
            "next": self.next_step,
        }


def status(rundir_path: Path) -> RunStatus:
    """Return what is known of a run.

    Raises:
        RefusedError: E_NOT_A_RUN.
        StoreError: its protocol or journal is damaged.

    """
    rundir, protocol = open_rundir(rundir_path)
    ledger = read_ledger(rundir, protocol)
    holder = find_holder(rundir.path / "lock")
    stage = stage_of(ledger, holder)
    return RunStatus(
        path=rundir.path,
        protocol_id=protocol.spec.protocol_id,
        mode=protocol.spec.mode,
        stage=stage,
        holder=holder,
        executions=tuple(
            ExecutionStatus(intent, phase_of(uuid, ledger))
            for uuid, intent in ledger.intents.items()
        ),
        trials_spent=ledger.count("agent") + ledger.count("login"),
        max_trials=protocol.spec.budget.max_trials,
        next_step=next_step(stage, rundir.path, ledger),
        host=read_host(rundir),
        sandboxes=read_sandboxes(rundir, ledger),
    )


def read_host(rundir: RunDir) -> dict[str, Json] | None:
    """Return the content of host.json, or None when there is none that can be read."""
    try:
        return cast("dict[str, Json]", json.loads(rundir.host_path.read_bytes()))
    except (OSError, ValueError):
        return None


def read_sandboxes(rundir: RunDir, ledger: Ledger) -> dict[str, SandboxReport]:
    """Return what the captured checks of the sandbox printed. Raises StoreError."""
    found: dict[str, SandboxReport] = {}
    for uuid, captured in ledger.captured.items():
        intent = ledger.intents[uuid]
        if intent.kind == "probe":
            artifacts = load_artifacts(rundir, captured.artifacts)
            printed = file_content(artifacts, "stdout", rundir.blobs.get) or b""
            found[f"{intent.slot}#{intent.attempt}"] = read_report(printed)
    return found


def stage_of(ledger: Ledger, holder: Holder | None) -> Stage:
    """Return where a run stands. Pure."""
    if holder is not None:
        return "running"
    if ledger.cancelled:
        return "cancelled"
    if ledger.open_gaps():
        return "gap"
    return "finished" if ledger.finished is not None else "interrupted"


def phase_of(uuid: str, ledger: Ledger) -> Phase:
    """Return how far an execution has come, going by the journal. Pure."""
    if uuid in ledger.resolved:
        return "resolved"
    if uuid in ledger.gaps:
        return "gap"
    if uuid in ledger.cleaned:
        return "cleaned"
    if uuid in ledger.captured:
        return "captured"
    return "on_host" if uuid in ledger.accepted else "registered"


def next_step(stage: Stage, path: Path, ledger: Ledger) -> str:
    """Return what a person can do next."""
    match stage:
        case "running":
            return f"xgent-evolve watch --run {path}"
        case "finished":
            return f"read {path / 'report.md'}"
        case "cancelled":
            return "start another run for a new result"
        case "interrupted":
            return f"xgent-evolve resume --run {path}"
        case "gap":
            uuid = ledger.open_gaps()[0].uuid
            return f"xgent-evolve resolve --run {path} --execution {uuid} --reason TEXT"


def write_state(rundir: RunDir, ledger: Ledger) -> None:
    """Replace state.json, the view of the journal for other programs."""
    phases = Counter(phase_of(uuid, ledger) for uuid in ledger.intents)
    rundir.write_state(
        {
            "stage": stage_of(ledger, None),
            "executions": dict(sorted(phases.items())),
            "trials_spent": ledger.count("agent") + ledger.count("login"),
        }
    )
