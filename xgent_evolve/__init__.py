"""Measure and improve the text that steers coding agents, with evidence that stands up.

The functions of the command line are here too, loaded when they are first used:

    from pathlib import Path
    import xgent_evolve

    outcome = xgent_evolve.run(Path("job.json"), Path("runs/first"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xgent_evolve.adopt.correction import freeze_correction
    from xgent_evolve.api.adoption import apply
    from xgent_evolve.api.export import export_harbor
    from xgent_evolve.api.recompute import compute_report
    from xgent_evolve.api.run_comparison import compare_runs
    from xgent_evolve.api.study import resume, run
    from xgent_evolve.api.validation import validate
    from xgent_evolve.api.verification import verify

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "apply",
    "compare_runs",
    "compute_report",
    "export_harbor",
    "freeze_correction",
    "resume",
    "run",
    "validate",
    "verify",
]

_PLACES = {
    "apply": "api.adoption",
    "compare_runs": "api.run_comparison",
    "compute_report": "api.recompute",
    "export_harbor": "api.export",
    "freeze_correction": "adopt.correction",
    "resume": "api.study",
    "run": "api.study",
    "validate": "api.validation",
    "verify": "api.verification",
}


def __getattr__(name: str) -> object:
    """Load a function when it is first asked for: importing the package stays quick."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)


def __dir__() -> list[str]:
    return __all__
