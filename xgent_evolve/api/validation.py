"""Check a JobSpec as `validate` does: every input is read and hashed, nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xgent_evolve.errors import Fault
from xgent_evolve.freeze.advice import study_warnings
from xgent_evolve.freeze.build import build_protocol
from xgent_evolve.freeze.protocol import Protocol
from xgent_evolve.spec.bounds import Bounds, call_bounds
from xgent_evolve.spec.load import LoadedSpec, load_spec
from xgent_evolve.store.memory import MemoryBlobs


@dataclass(frozen=True, slots=True)
class ValidStudy:
    """A JobSpec without a fault, and what it would freeze."""

    loaded: LoadedSpec
    """The JobSpec and where it was read."""
    protocol: Protocol
    """What `run` would freeze; its digest names the study."""
    bounds: Bounds
    """Most executions of each kind, retries included."""
    warnings: tuple[Fault, ...]
    """What would run and is probably not meant, such as text that the agent would not get."""


def validate(spec: Path) -> ValidStudy:
    """Check a JobSpec and everything that it names; no host, no model, no file written.

    Raises:
        InvalidError: it is not valid; `SpecError.faults` has every fault.
        RefusedError: inputs change while they are read.

    """
    loaded, blobs = load_spec(spec), MemoryBlobs()
    protocol = build_protocol(loaded, blobs)
    warnings = study_warnings(loaded, protocol, blobs)
    return ValidStudy(loaded, protocol, call_bounds(loaded.spec), warnings)
