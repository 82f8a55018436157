"""Bugs that comparable tools have had, put back one at a time: each must make a test fail.

A mutant is a copy of the package with one piece of text replaced. A piece that is no longer there
exactly once is an error too, so the list stays true to the code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import xgent_evolve

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(xgent_evolve.__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One known bug: where it goes, and the test that must notice it."""

    bug: str
    path: str
    old: str
    new: str
    test: str


MUTANTS = [
    Mutant(
        "a container that has exited is started again",
        "payload/host_runner/driver.py",
        "if self.was_never_started(container) and not (known and self.has_begun(container)):",
        "if True:",
        "tests/payload/test_starts.py",
    ),
    Mutant(
        "the engine's exit code stands in for a missing record",
        "harbor/outcome.py",
        """    if record is None:
        cause =""",
        """    if record is None and engine is not None:
        return Done(timed_out=False, exit_code=engine.exit_code, usage=None)
    if record is None:
        cause =""",
        "tests/unit/harbor/test_outcome.py",
    ),
    Mutant(
        "a lost connection counts as an answer",
        "remote/session.py",
        'pending.done.set_exception(ConnectionEndedError("the channel ended"))',
        "pending.done.set_result({})",
        "tests/e2e/test_ssh_trouble.py::test_four_trials_survive_a_connection_that_breaks[cut]",
    ),
    Mutant(
        "the exit record of another execution is accepted",
        "payload/host_runner/export.py",
        'raise GapError("the exit record belongs to another execution")',
        "pass",
        "tests/payload/test_starts.py",
    ),
    Mutant(
        "the host is cleaned before the bytes are stored",
        "execution/executor.py",
        """        crash_point("executor.ended")
        await self._capture(intent, receipts)""",
        """        crash_point("executor.ended")
        await self.host.cleanup([intent.uuid], self.socket)
        await self._capture(intent, receipts)""",
        "tests/e2e/test_smoke.py::"
        "test_smoke_checks_sandbox_verifier_and_reference_solution_without_a_model",
    ),
    Mutant(
        "a time limit is tried again as if it were trouble",
        "harbor/outcome.py",
        """    if end.timed_out:
        return Done(timed_out=True, exit_code=end.exit_code, usage=usage)""",
        """    if end.timed_out:
        return Broken("time_limit", "it took too long", usage)""",
        "tests/unit/harbor/test_outcome.py",
    ),
    Mutant(
        "bytes get their name before they are durable",
        "store/durable.py",
        """            crash_point("durable.sync-file")
            os.fsync(descriptor)""",
        """            crash_point("durable.sync-file")""",
        "tests/crash/test_power_cut.py",
    ),
    Mutant(
        "a directory is not synced after a rename",
        "store/durable.py",
        """os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)""",
        """os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        pass""",
        "tests/crash/test_power_cut.py",
    ),
    Mutant(
        "the age of a receipt by the wall clock decides",
        "execution/reconcile.py",
        """        case "absent" if accepted:""",
        """        case _ if any(time.time() * 1e3 - r["at_ms"] > 6e5 for r in found.receipts):
            return "gap", "too old"
        case "absent" if accepted:""",
        "tests/e2e/test_fault_matrix.py::test_a_clock_that_jumps_changes_nothing[+1h]",
    ),
    Mutant(
        "an execution that has ended is driven again",
        "payload/host_runner/driver.py",
        "if not is_ended(self.execution.receipts()):",
        "if True:",
        "tests/payload/test_starts.py",
    ),
]


def run_against(copy: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests against a copy of the package that lies in the directory `copy`."""
    # The copy is the current directory and comes first on the path, for children too.
    path_variable = os.pathsep.join([str(copy), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path_variable, "PYTHONDONTWRITEBYTECODE": "1"}
    options = ["-q", "-x", "-p", "no:cacheprovider", "-c", str(ROOT / "pyproject.toml")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(ROOT)]
        + [str(ROOT / test) for test in tests],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
    )


def copy_package(directory: Path) -> Path:
    copy = directory / "xgent_evolve"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.engine
def test_the_unchanged_copy_passes_every_test_that_notices_a_bug(tmp_path: Path) -> None:
    copy_package(tmp_path)
    done = run_against(tmp_path, sorted({mutant.test for mutant in MUTANTS}))
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.engine
@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.bug for mutant in MUTANTS])
def test_a_known_bug_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    path = copy_package(tmp_path) / mutant.path
    text = path.read_text()
    assert text.count(mutant.old) == 1, "the code has changed: describe the bug anew"
    text = text.replace(mutant.old, mutant.new)
    if "time.time()" in mutant.new:
        text = text.replace("\nfrom collections", "\nimport time\nfrom collections", 1)
    path.write_text(text)
    done = run_against(tmp_path, [mutant.test])
    assert done.returncode == 1, f"nobody noticed: {mutant.bug}\n{done.stdout[-2000:]}"
