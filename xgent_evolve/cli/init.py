"""`xgent-evolve init`: write a JobSpec that validates, asking nothing that can be found out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xgent_evolve.cli.flags import JsonFlag
from xgent_evolve.cli.output import say, say_json

if TYPE_CHECKING:
    from xgent_evolve.api.init.request import Written


def init(
    *,
    repo: Annotated[Path, typer.Option(help="Git working tree, or a directory in it.")] = Path(),
    tasks: Annotated[Path | None, typer.Option(help="Directory of task folders.")] = None,
    spec: Annotated[Path, typer.Option(help="The file to write.")] = Path("job.json"),
    unchecked: Annotated[
        bool, typer.Option("--unchecked", help="Take tasks without a solution too.")
    ] = False,
    mode: Annotated[str, typer.Option(help="compare, or smoke (no model).")] = "compare",
    skill: Annotated[str | None, typer.Option(help="Skill to study, if there are more.")] = None,
    agents: Annotated[bool, typer.Option("--agents", help="Study AGENTS.md.")] = False,
    candidate: Annotated[
        Path | None, typer.Option(help="Edited text, or edited copy of the skill.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="[user@]host[:port].")] = None,
    known_hosts: Annotated[str | None, typer.Option(help="Known-hosts file.")] = None,
    identity: Annotated[str | None, typer.Option(help="Private key file.")] = None,
    ask_host: Annotated[
        bool, typer.Option("--ask-host", help="Connect; look at engine and images.")
    ] = False,
    remote_root: Annotated[str | None, typer.Option(help="Directory on the host.")] = None,
    docker_path: Annotated[str | None, typer.Option(help="docker on the host.")] = None,
    docker_version: Annotated[str | None, typer.Option(help="Engine version.")] = None,
    image: Annotated[
        list[str] | None, typer.Option(help="NAME@sha256:..., or TASK=NAME@sha256:...")
    ] = None,
    repo_path: Annotated[
        str | None, typer.Option(help="Working directory in the containers.")
    ] = None,
    model: Annotated[str, typer.Option(help="Model.")] = "gpt-6.1-sol",
    effort: Annotated[str, typer.Option(help="Reasoning effort.")] = "high",
    auth_file: Annotated[str, typer.Option(help="Credential on the host.")] = "~/.codex/auth.json",
    auth_env: Annotated[str | None, typer.Option(help="Variable with the credential.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Trials of a task per condition.")] = 2,
    as_json: JsonFlag = False,
) -> None:
    """Write a JobSpec for a repository and its tasks.

    Finds the repository, its commit, its skills or AGENTS.md, the tasks and what they say of
    themselves, and computes a budget; everything else is a flag. Without a candidate the study
    asks whether the present text helps at all. The file is written only if it validates, and
    no file is overwritten. No host is reached unless --ask-host is given.
    """
    from xgent_evolve.api.init.request import InitRequest
    from xgent_evolve.api.init.write import init as write
    from xgent_evolve.errors import InvalidError

    if mode not in {"compare", "smoke"}:
        raise InvalidError(
            "init writes no study of this mode",
            code="E_USAGE",
            where="--mode",
            expected="compare or smoke",
            found=mode,
            fix="give one of the two",
        )
    written = write(
        InitRequest(
            repo=repo,
            spec=spec,
            tasks=tasks,
            unchecked=unchecked,
            mode="smoke" if mode == "smoke" else "compare",
            skill=skill,
            agents=agents,
            candidate=candidate,
            host=host,
            known_hosts=known_hosts,
            identity=identity,
            ask_host=ask_host,
            remote_root=remote_root,
            docker_path=docker_path,
            docker_version=docker_version,
            images=tuple(image or ()),
            repo_path=repo_path,
            model=model,
            effort=effort,
            auth_file=auth_file,
            auth_env=auth_env,
            repeats=repeats,
        )
    )
    if as_json:
        say_json(written.document() | {"next": next_commands(spec)})
    else:
        say("\n".join(written_lines(written)))


def written_lines(written: Written) -> list[str]:
    """Return what was written in words, with the next commands."""
    conditions, cases = len(written.conditions), len(written.cases)
    lines = [
        f"wrote     {written.spec}, which validates",
        f"studies   {written.studied}: {' against '.join(reversed(written.conditions))}",
        f"plans     {written.trials} agent executions ({conditions} conditions, {cases} cases)",
    ]
    lines += [f"left out  {item.task}: {item.reason}" for item in written.left_out]
    lines += [f"assumed   {item.path} {item.value} ({item.reason})" for item in written.assumed]
    first, *rest = next_commands(written.spec)
    return [*lines, f"next      {first}", *(f"          {command}" for command in rest)]


def next_commands(spec: Path) -> list[str]:
    """Return the commands that follow."""
    name = shlex.quote(str(spec))
    return [
        f"xgent-evolve validate --spec {name} --diff",
        f"xgent-evolve doctor --spec {name}",
        f"xgent-evolve run --spec {name} --output runs/1",
    ]
