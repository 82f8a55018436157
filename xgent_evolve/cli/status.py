"""`xgent-evolve status`: where a run stands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from xgent_evolve.api.status import RunStatus


def status(
    *,
    run: Annotated[Path, typer.Option(help="Directory of the run.")],
    as_json: JsonFlag = False,
) -> None:
    """Say where a run stands, from its directory alone: no lock, no network, nothing written."""
    from xgent_evolve.api.status import status as read_status

    found = read_status(run)
    if as_json:
        say_json(found.document())
    else:
        say("\n".join(status_lines(found)))


def status_lines(found: RunStatus) -> list[str]:
    """Return a run's status in words."""
    holder = found.holder
    by = "" if holder is None else f" (process {holder.pid} on {holder.host} since {holder.since})"
    counts = ", ".join(f"{count} {phase}" for phase, count in found.counts().items()) or "none"
    lines = [
        f"run         {found.path}",
        f"study       {found.protocol_id}, mode {found.mode}",
        f"stage       {found.stage}{by}",
        f"executions  {counts}",
        f"trials      {found.trials_spent} of {found.max_trials} spent",
        *host_lines(found),
    ]
    lines += [
        f"{item.phase:<12}{item.intent.slot} #{item.intent.attempt}  {item.intent.uuid}"
        for item in found.executions
        if item.phase not in ("cleaned", "resolved")
    ]
    return [*lines, f"next        {found.next_step}"]


def host_lines(found: RunStatus) -> list[str]:
    """Return what the host was found to be; nothing before it was visited."""
    lines: list[str] = []
    if found.host is not None:
        engine = cast("dict[str, str]", found.host["engine"])
        codex = cast("dict[str, str]", found.host["codex"])
        lines.append(
            f"host        {found.host['architecture']}, engine {engine['version']},"
            f" Codex {codex['version']} (binary {codex['binary_sha256'][:12]})"
        )
    for name, sandbox in found.sandboxes.items():
        wrong = [check for check, held in sandbox.checks.items() if not held]
        held = f"{len(sandbox.checks) - len(wrong)} of {len(sandbox.checks)} checks hold"
        lines.append(f"sandbox     {name}: {held}{': not ' if wrong else ''}{', '.join(wrong)}")
    return lines
