"""The examples of docs/python-api.md run, as far as they need no host."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from xgent_evolve.api import adoption, study
from xgent_evolve.demo.study import write_study
from xgent_evolve.errors import RefusedError
from xgent_evolve.execution.events import Planned, SlotDone, Story
from xgent_evolve.spec.models_v1 import Ssh

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python-api.md"

type Names = dict[str, object]


@pytest.fixture
def example(code_blocks: Callable[[Path, str], list[str]]) -> Callable[[str], Names]:
    """Run the one block that holds `mark` and return its names."""

    def run(mark: str) -> Names:
        (block,) = [block for block in code_blocks(PAGE, "python") if mark in block]
        names: Names = {"__name__": "example"}
        exec(compile(block, str(PAGE), "exec"), names)
        return names

    return run


def test_the_example_of_a_study_can_be_imported(example: Callable[[str], Names]) -> None:
    names = example("def measure")
    assert names["run"] is study.run
    assert names["resume"] is study.resume
    document = {"verdict": {"sentence": "keep: yes.", "numbers": "+1.0 points"}}
    headline = names["headline"]
    assert callable(headline)
    assert headline(study.StudyOutcome(Path(), document)) == "keep: yes. +1.0 points"


def test_the_signatures_are_the_ones_of_the_page() -> None:
    text = PAGE.read_text()
    for function in (study.run, study.resume):
        shown = re.search(rf"`{function.__name__}\(([^`]*)\)`", text)
        assert shown is not None
        plain = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in inspect.signature(function).parameters.values()
        ]
        found = str(inspect.Signature(plain)).strip("()").replace("'", '"')
        assert shown[1] == found


def test_the_observer_of_the_page_takes_every_event(example: Callable[[str], Names]) -> None:
    kind = example("class Collector")["Collector"]
    assert isinstance(kind, type)
    collector = kind()
    for event in (
        Story("hello"),
        Planned(2),
        SlotDone("measure/a/b/1/agent", 1, "agent", "ended", "", 10),
    ):
        collector.tell(event)
    assert collector.planned == 2
    assert collector.results == [("measure/a/b/1/agent", "ended")]


def test_a_study_is_looked_at_without_a_host(
    example: Callable[[str], Names],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_study(
        tmp_path,
        ssh=Ssh(host="host.invalid"),
        remote_root="/srv/xgent-evolve",
        image=f"sha256:{'0' * 64}",
        docker_path="/usr/bin/docker",
        docker_version="20.10",
        base_url="http://model.invalid/v1",
        architecture="x86_64",
        key_env="MODEL_API_KEY",
    )
    monkeypatch.chdir(tmp_path)
    example("xgent_evolve.validate(")
    digest, agents = capsys.readouterr().out.splitlines()[0].split()
    assert digest.startswith("blake3:")
    assert int(agents) > 0


def test_a_report_is_rendered_again(
    example: Callable[[str], Names], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = ROOT / "tests" / "unit" / "report" / "golden"
    shutil.copy(golden / "kept.json", tmp_path / "report.json")
    monkeypatch.chdir(tmp_path)
    example("report_text(")
    assert (tmp_path / "again.md").read_text() == (golden / "kept.md").read_text()


def test_the_example_of_adoption_uses_the_real_function(example: Callable[[str], Names]) -> None:
    names = example("def try_to_adopt")
    assert names["apply"] is adoption.apply


def test_the_functions_of_the_package_are_the_ones_that_the_commands_call() -> None:
    import xgent_evolve
    from xgent_evolve.api import export, recompute, run_comparison, validation, verification

    assert xgent_evolve.run is study.run
    assert xgent_evolve.resume is study.resume
    assert xgent_evolve.apply is adoption.apply
    assert xgent_evolve.verify is verification.verify
    assert xgent_evolve.validate is validation.validate
    assert xgent_evolve.compute_report is recompute.compute_report
    assert xgent_evolve.compare_runs is run_comparison.compare_runs
    assert xgent_evolve.export_harbor is export.export_harbor
    assert set(dir(xgent_evolve)) >= {"freeze_correction", "validate", "__version__"}
    text = PAGE.read_text()
    assert all(f"`{name}`" in text for name in xgent_evolve.__all__ if name != "__version__")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        xgent_evolve.__getattr__("nothing")


def test_the_examples_of_reports_name_a_directory_that_is_no_run(
    example: Callable[[str], Names], tmp_path: Path
) -> None:
    """They run on real runs in tests/e2e/test_reports.py; here they reach the real functions."""
    publish = example("def publish")["publish"]
    names = example("def drift")
    drift, hand_over = names["drift"], names["hand_over"]
    assert callable(publish)
    assert callable(drift)
    assert callable(hand_over)
    for call in (
        lambda: publish(tmp_path, tmp_path / "page.html"),
        lambda: drift(tmp_path, tmp_path),
        lambda: hand_over(tmp_path, tmp_path / "jobs"),
    ):
        with pytest.raises(RefusedError, match="not a run directory"):
            call()
