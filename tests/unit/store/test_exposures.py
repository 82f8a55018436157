"""Which confirmation cases have been shown is kept across runs, and never stops one."""

from __future__ import annotations

from pathlib import Path

from xgent_evolve.ids import Digest
from xgent_evolve.store.exposures import Exposures, no_exposures

CASES = [Digest(f"blake3:{number:064x}") for number in range(3)]


def test_a_run_does_not_count_itself(tmp_path: Path) -> None:
    found = Exposures.of({"XDG_STATE_HOME": str(tmp_path)})
    assert found.count(CASES, "one") == 0
    found.keep(CASES[:2], "one")
    found.keep(CASES[:2], "one")
    assert found.count(CASES, "one") == 0
    assert found.count(CASES, "two") == 2
    found.keep(CASES[1:], "two")
    assert found.count(CASES, "one") == 2


def test_without_a_place_nothing_is_kept(tmp_path: Path) -> None:
    for found in (no_exposures(), Exposures.of({}), Exposures.of({"XDG_STATE_HOME": "relative"})):
        found.keep(CASES, "one")
        assert found.count(CASES, "two") == 0
    home = Exposures.of({"HOME": str(tmp_path)})
    assert home.directory == tmp_path / ".local/state/xgent-evolve/confirmed"


def test_a_record_that_cannot_be_written_or_read_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "xgent-evolve").write_text("a file")
    found = Exposures.of({"XDG_STATE_HOME": str(tmp_path)})
    found.keep(CASES, "one")
    assert found.count(CASES, "two") == 0
