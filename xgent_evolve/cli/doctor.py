"""`xgent-evolve doctor`: can this host do what a JobSpec needs, and what lies about there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from xgent_evolve.api.doctor import Diagnosis


def doctor(
    *,
    spec: Annotated[Path, typer.Option(help="The JobSpec whose host is looked at.")],
    remove: Annotated[
        list[str] | None,
        typer.Option(help="Remove this piece of residue, by the name that doctor lists."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Look at host, engine, images and Codex, and list what earlier runs left on the host."""
    from xgent_evolve.api import doctor as examination
    from xgent_evolve.cli.progress import progress

    with progress(as_json=False) as observer:
        if remove:
            removed = examination.remove_residue(spec, remove, observer=observer)
            say_json({"type": "removed", "names": removed}) if as_json else say(
                "removed " + (", ".join(removed) or "nothing")
            )
            return
        found = examination.doctor(spec, observer=observer)
    if as_json:
        say_json(found.document())
    else:
        say("\n".join(diagnosis_lines(found, spec)))
    for finding in found.failed():
        if finding.error is not None:
            raise finding.error


def diagnosis_lines(found: Diagnosis, spec: Path) -> list[str]:
    """Return the findings in words, each failure with its cure."""
    lines: list[str] = []
    for finding in found.findings:
        mark = "ok  " if finding.error is None else "FAIL"
        what = finding.detail if finding.error is None else finding.error.message
        lines.append(f"{mark}  {finding.name}: {what}")
        if finding.error is not None:
            if finding.error.found:
                lines.append(f"      found: {finding.error.found}")
            lines.append(f"      fix: {finding.error.fix}")
        lines += [f"note  {finding.name}: {text}" for text in finding.advice]
    if found.residue:
        lines.append(f"{len(found.residue)} pieces of earlier runs lie on the host:")
        lines += [
            f"  {item.get('name')}  {item.get('kind')}, run {item.get('run')}, {item.get('state')}"
            for item in found.residue
        ]
        lines.append(f"remove one with: xgent-evolve doctor --spec {spec} --remove NAME")
    elif found.residue is not None:
        lines.append("nothing of earlier runs lies on the host")
    return lines
