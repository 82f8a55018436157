"""A whole search on real parts: proposals by Codex, measurement, confirmation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

type Json = Any


def report(run: Path) -> dict[str, Json]:
    return json.loads((run / "report.json").read_text())


@pytest.mark.codex
def test_a_search_finds_the_useful_change_and_refuses_the_harmful_one(
    make_search_study: Callable[..., Any], containers: Callable[[Path], list[str]]
) -> None:
    study = make_search_study()
    run = study.directory / "run"
    study.call("run", "--spec", study.spec, "--output", run)
    document = report(run)
    harmful, useful = document["search"]["candidates"]
    assert (harmful["decision"], useful["decision"]) == ("discard", "keep")
    assert document["search"]["best"] == "candidate-2"
    assert document["confirmation"]["status"] == "passed"
    assert containers(run) == []
