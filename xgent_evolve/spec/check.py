"""The rules between the fields of a JobSpec; none of them reads a file.

Each group of rules is a module beside this one whose functions yield what is broken:

- `check_study`: names, groups, what the mode needs, what the budget must cover.
- `check_conditions`: the levels of the arms and what may differ between two.
- `check_paths`: what is frozen, exported and written, and by whose authority.
- `check_tasks`: task directories, their views, their place in the container.
- `check_runtime`: the host, the model and its credential.
- `check_search`: the strategy's settings, the splits, the bounded exploration.
- `check_evaluation`: version 2: the judging material and the auxiliary scorer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from xgent_evolve.spec.check_conditions import condition_findings
from xgent_evolve.spec.check_paths import path_findings
from xgent_evolve.spec.check_runtime import runtime_findings
from xgent_evolve.spec.check_search import search_findings
from xgent_evolve.spec.check_study import study_findings
from xgent_evolve.spec.check_tasks import task_findings
from xgent_evolve.spec.faults import Finding, place, spec_error
from xgent_evolve.spec.scan import scan

if TYPE_CHECKING:
    from xgent_evolve.spec.load import LoadedSpec


def check_spec(loaded: LoadedSpec) -> None:
    """Hold `loaded` against every rule.

    Raises:
        SpecError: with every rule that is broken, in the order of the file.

    """
    findings = [
        *study_findings(loaded.spec),
        *condition_findings(loaded.spec),
        *path_findings(loaded),
        *task_findings(loaded),
        *runtime_findings(loaded.spec),
        *search_findings(loaded.spec),
        *_version_findings(loaded),
    ]
    if findings:
        document = scan(loaded.content.decode("utf-8"))
        raise spec_error(place(finding, document, str(loaded.path)) for finding in findings)


def _version_findings(loaded: LoadedSpec) -> Iterator[Finding]:
    if loaded.spec.schema_version == 2:
        from xgent_evolve.spec.check_evaluation import evaluation_findings

        yield from evaluation_findings(loaded)
