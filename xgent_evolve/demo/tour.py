"""The demo from beginning to end: a host, a model, a study, a run, all on this machine.

Everything is real but the model: an SSH server with strict host keys, the local container engine,
Codex CLI, and frozen inputs. The model is scripted: it does what its instructions say, so the
measured effect is the effect of bytes that travelled the whole way.
"""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.api.study import StudyOutcome, resume, run
from xgent_evolve.demo.engine import find_base_image, local_engine
from xgent_evolve.demo.host import LoopbackHost
from xgent_evolve.demo.model import ScriptedModel
from xgent_evolve.demo.search_study import write_search_study
from xgent_evolve.demo.study import write_study
from xgent_evolve.errors import HostError
from xgent_evolve.execution.events import Observer, Story
from xgent_evolve.spec.models_v1 import Ssh

KEY_VARIABLE = "XGENT_DEMO_KEY"
KEY = "demo-key-that-opens-nothing"
"""Key of the scripted model; it is no secret, but it is treated like one."""


@dataclass(frozen=True, slots=True)
class Tour:
    """What the demo did."""

    spec: Path
    outcome: StudyOutcome
    resumed: bool


def show(directory: Path, observer: Observer, *, search: bool = False) -> Tour:
    """Write a demo study below `directory`, run it, and leave everything there to look at.

    The study compares a skill with its absence, or with `search` searches for a better skill.

    A run that was interrupted is resumed; otherwise each call makes a further run.

    Raises:
        HostError: there is no usable engine or image on this machine; says how to get one.
        XgentError: as for `run` and `resume`.

    """
    directory = directory.absolute()
    engine = local_engine()
    image = find_base_image()
    with ExitStack() as stack:
        host = stack.enter_context(LoopbackHost(directory / "host"))
        model = stack.enter_context(ScriptedModel(_model_port(directory), KEY))
        write = write_search_study if search else write_study
        spec = write(
            directory / ("search" if search else "study"),
            ssh=Ssh(
                host=host.address,
                port=host.port,
                user=host.user,
                known_hosts=str(host.known_hosts),
                identity=str(host.identity),
            ),
            remote_root=str(directory / "remote"),
            image=image,
            docker_path=engine.path,
            docker_version=engine.version,
            base_url=model.base_url,
            architecture=engine.architecture,
            key_env=KEY_VARIABLE,
        )
        observer.tell(Story(f"the study is {spec}"))
        runs = directory / ("search-runs" if search else "runs")
        unfinished = _unfinished(runs)
        environment = {KEY_VARIABLE: KEY}
        if unfinished is not None:
            outcome = resume(
                unfinished, observer=observer, environment=environment, on_interrupt="drain"
            )
        else:
            outcome = run(
                spec,
                _next(runs),
                observer=observer,
                environment=environment,
                # The model ends with this process, so what is under way is waited for.
                on_interrupt="drain",
            )
    return Tour(spec, outcome, resumed=unfinished is not None)


def _model_port(directory: Path) -> int:
    """Return the model's port, chosen once, since frozen runs name it."""
    path = directory / "model.json"
    directory.mkdir(parents=True, exist_ok=True)
    if path.exists():
        return int(json.loads(path.read_text())["port"])
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    path.write_text(json.dumps({"port": port}))
    return port


def _unfinished(runs: Path) -> Path | None:
    """Return the last run when it has no report yet."""
    made = sorted(path for path in runs.glob("[0-9]*") if path.is_dir())
    if made and not (made[-1] / "report.json").exists():
        return made[-1]
    return None


def _next(runs: Path) -> Path:
    """Return the path of a further run."""
    made = [int(path.name) for path in runs.glob("[0-9]*") if path.name.isdigit()]
    number = max(made, default=0) + 1
    if number > 999:
        raise HostError(
            "the demo directory holds too many runs",
            where=str(runs),
            fix="remove some of them, or give another --directory",
        )
    return runs / f"{number:03}"
