"""The collected real inputs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def inputs() -> Path:
    """Return the directory of collected real inputs; see tests/README.md."""
    name = os.environ.get("XGENT_EVOLVE_TEST_INPUTS", "")
    if name and Path(name, "skills").is_dir():
        return Path(name)
    reason = "XGENT_EVOLVE_TEST_INPUTS does not name the directory of real inputs"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
