from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.unit.report import studies
from xgent_evolve.report.inputs import Study
from xgent_evolve.report.model import json_bytes, report_document
from xgent_evolve.report.plots import difference_bars, interval_plot
from xgent_evolve.report.tables import inline
from xgent_evolve.report.text import report_text, summary_lines

GOLDEN = Path(__file__).parent / "golden"
STUDIES = {
    "kept": studies.kept,
    "undecided": studies.undecided,
    "invalid": studies.invalid,
    "smoked": studies.smoked,
}


def require_golden(name: str, found: str) -> None:
    """Compare with a golden file; XGENT_GOLDEN=write makes it anew."""
    path = GOLDEN / name
    if os.environ.get("XGENT_GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", STUDIES)
def test_the_report_is_the_golden_one(name: str) -> None:
    document = report_document(STUDIES[name]())
    require_golden(f"{name}.json", json_bytes(document).decode())
    require_golden(f"{name}.md", report_text(document))
    require_golden(f"{name}.summary.txt", "\n".join(summary_lines(document)) + "\n")


@pytest.mark.parametrize("name", STUDIES)
def test_the_text_can_be_made_again_from_the_json(name: str) -> None:
    document = report_document(STUDIES[name]())
    read = json.loads(json_bytes(document))
    assert report_text(read) == report_text(document)
    assert summary_lines(read) == summary_lines(document)


@pytest.mark.parametrize("name", STUDIES)
def test_a_summary_has_at_most_ten_lines_of_eighty_columns(name: str) -> None:
    lines = summary_lines(report_document(STUDIES[name]()))
    assert 6 <= len(lines) <= 10
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("verdict")


@pytest.mark.parametrize("name", ["kept", "undecided"])
def test_no_difference_stands_without_interval_n_and_missing(name: str) -> None:
    text = report_text(report_document(STUDIES[name]()))
    (line,) = [line for line in text.splitlines() if " points [" in line]
    assert re.search(r"\[[+-][\d.]+, [+-][\d.]+\] at 95 %; n = \d+ groups, \d+ cases; \d+ of", line)


def test_the_verdict_comes_before_any_number() -> None:
    text = report_text(report_document(studies.kept()))
    assert text.index("keep: candidate is better") < text.index("+62.5")


def test_text_from_outside_cannot_break_out_of_its_place() -> None:
    hostile = "\x1b[31mred\n# head | cell `code` <script>[link](javascript:x)\u202e"
    report = studies.smoked()
    study = Study(report.study.protocol_digest, "study", hostile, "smoke")
    text = report_text(report_document(studies.Report(study, report.digests, smoke=report.smoke)))
    quoted = next(line for line in text.splitlines() if line.startswith("> "))
    assert quoted == r"> red \# head \| cell \`code\` \<script\>\[link\](javascript:x)"
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_inline_text_stays_on_one_line() -> None:
    assert inline("a\n\n  b\tc") == "a b c"


def test_the_interval_plot_marks_ends_estimate_zero_and_gain() -> None:
    scale, line = interval_plot(0.5, 0.2, 0.8, min_gain=0.1)
    assert len(scale) == len(line) == 61
    assert (line.index("|"), line.index(":")) == (30, 33)
    assert (line.index("["), line.index("o"), line.index("]")) == (36, 45, 54)


def test_bars_go_left_for_losses_and_say_what_is_unpaired() -> None:
    bars = difference_bars([("a", -0.5), ("bb", 0.001), ("c", None), ("d", 0.0)])
    assert bars[0].endswith("█" * 10 + "|")
    assert bars[1].endswith("|█")
    assert bars[2].endswith("| unpaired")
    assert bars[3].endswith(" 0.0                     |")
    assert len({bar.index("|") for bar in bars}) == 1
