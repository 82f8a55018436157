"""How often a search would say `passed` wrongly, and how often rightly: a table and a picture.

    nice -n 19 python benchmarks/search_levels.py run [--studies 2000] [--results FILE]
    python benchmarks/search_levels.py table [--results FILE]
    python benchmarks/search_levels.py picture > docs/power.svg

`run` appends a line of JSON for every cell to the results and passes over cells that are there, so
it can be stopped and started again. The seed of a cell comes from its name: cells do not depend on
their order. See `simulated_search.py` for what is drawn and what is real.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from scipy.stats import binomtest
from simulated_search import (
    Cell,
    careless,
    idle,
    overfitting,
    planted,
    remembered_streams,
    simulate,
    simulate_confirmations,
    uneven,
)

type Kind = Literal["search", "overfitted", "confirmation", "further", "power"]

RESULTS = Path(__file__).with_suffix(".jsonl")
LEVEL = 0.025
"""Nominal one-sided level of an interval of 0.95."""
GAINS = (0.1, 0.2, 0.3, 0.4, 0.6)
MIDDLE, TWELVE = 0.5, 12


@dataclass(frozen=True, slots=True)
class Question:
    """A cell and its place in the tables."""

    kind: Kind
    label: str
    """Unique within its kind."""
    cell: Cell
    gain: float = 0.0
    """What the useful proposal gains, as the tables show it."""

    @property
    def seed(self) -> int:
        """A number that belongs to this cell alone."""
        digest = hashlib.sha256(f"{self.kind}/{self.label}".encode()).digest()
        return int.from_bytes(digest[:6], "big")

    def ask(self, studies: int) -> dict[str, Any]:
        """Draw the studies and return what they came to."""
        call: Callable[..., Any] = simulate_confirmations if self.alone else simulate
        started = time.perf_counter()
        tally = asdict(call(self.cell, studies, self.seed))
        seconds = round(time.perf_counter() - started, 1)
        return {
            "kind": self.kind,
            "label": self.label,
            "groups": self.cell.groups,
            "repeats": self.cell.repeats,
            "success": self.cell.success,
            "gain": self.gain,
            **tally,
            "seconds": seconds,
        }

    @property
    def alone(self) -> bool:
        """Whether the confirmation is asked without a search before it."""
        return self.kind == "confirmation"


def questions() -> Iterator[Question]:
    """Yield every cell, the most important first."""
    for groups in (12, 6, 24, 8):
        for success, repeats in ((MIDDLE, 1), (MIDDLE, 3), (0.2, 1), (0.8, 1)):
            label = f"{groups} groups, success {success}, {_repeats(repeats)}"
            cell = Cell(idle, groups, success, repeats)
            yield Question("confirmation", label, cell)
            # Beside the middle the confirmation alone is asked, which costs a fifth.
            if success == MIDDLE or groups == TWELVE:
                yield Question("search", label, cell)
        for repeats in (3, 1) if groups >= TWELVE else (3,):
            cell = Cell(overfitting, groups, MIDDLE, repeats)
            yield Question("overfitted", f"{groups} groups, {_repeats(repeats)}", cell)
    for gain in GAINS:
        for groups in (12, 24, 6):
            label = f"{groups} groups, 3 repeats, gain {gain}"
            cell = Cell(planted(gain), groups, 0.3, repeats=3, proposals=2)
            yield Question("power", label, cell, gain)
    yield from _further()


def _further() -> Iterator[Question]:
    cells = {
        "proposals that change nothing or harm": Cell(careless, 12, MIDDLE, 3),
        "proposals that help some groups and harm as many": Cell(uneven, 12, MIDDLE, 3),
        "three cases a group": Cell(idle, 12, MIDDLE, 1, cases=3),
        "2 % of trials lost": Cell(idle, 12, MIDDLE, 3, lost=0.02),
        "30 % of a candidate's failures lost": Cell(idle, 12, MIDDLE, 3, lost_failures=0.3),
        "overfitted, three cases a group": Cell(overfitting, 12, MIDDLE, 1, cases=3),
    }
    for label, cell in cells.items():
        yield Question("further", label, cell)


def _repeats(number: int) -> str:
    return f"{number} repeat{'s' if number > 1 else ''}"


def run(results: Path, studies: int) -> None:
    """Ask every question that has no answer yet."""
    known = {(found["kind"], found["label"]) for found in read(results)}
    for question in questions():
        if (question.kind, question.label) in known:
            continue
        with remembered_streams():
            found = question.ask(studies)
        with results.open("a") as stream:
            stream.write(json.dumps(found) + "\n")
        sys.stderr.write(f"{question.kind}: {question.label}: {found['seconds']} s\n")


def read(results: Path) -> list[dict[str, Any]]:
    """Return the answers in the order of the questions."""
    lines = results.read_text().splitlines() if results.exists() else []
    order = {(item.kind, item.label): number for number, item in enumerate(questions())}
    found = [json.loads(line) for line in lines]
    return sorted(found, key=lambda item: order[item["kind"], item["label"]])


def rate(count: int, studies: int) -> str:
    """Return a share with its exact 95 % interval (Clopper and Pearson)."""
    if not studies:
        return "none"
    low, high = binomtest(count, studies).proportion_ci(0.95, "exact")
    return f"{count / studies:.4f} ({low:.4f} to {high:.4f})"


def exceeds(count: int, studies: int, level: float = LEVEL, confidence: float = 0.95) -> bool:
    """Say whether the whole exact interval of a share lies above `level`."""
    return bool(studies) and binomtest(count, studies).proportion_ci(confidence).low > level


def table(found: list[dict[str, Any]]) -> str:
    """Return every answer as Markdown."""
    return "\n\n".join(
        "\n".join(lines)
        for lines in (
            _errors(found, "search"),
            _errors(found, "confirmation"),
            _errors(found, "overfitted"),
            _errors(found, "further"),
            _power(found),
        )
    )


def _errors(found: list[dict[str, Any]], kind: Kind) -> list[str]:
    lines = [f"{kind}:", "", "| Cell | Confirmed | False `passed`, of all | of the confirmed |"]
    lines.append("| --- | --- | --- | --- |")
    for item in found:
        if item["kind"] == kind:
            wrong, all_studies, opened = item["false_passed"], item["studies"], item["confirmed"]
            mark = " above" if exceeds(wrong, all_studies) else ""
            lines.append(
                f"| {item['label']} | {opened / all_studies:.3f} |"
                f" {rate(wrong, all_studies)}{mark} | {rate(wrong, opened)} |"
            )
    return lines


def _curves(found: list[dict[str, Any]]) -> dict[str, dict[float, float]]:
    curves: dict[str, dict[float, float]] = {}
    for item in found:
        if item["kind"] == "power":
            name = f"{item['groups']} groups, {_repeats(item['repeats'])}"
            curves.setdefault(name, {})[item["gain"]] = item["passed"] / item["studies"]
    return curves


def _power(found: list[dict[str, Any]]) -> list[str]:
    lines = ["| Groups, repeats | " + " | ".join(f"+{gain * 100:.0f}" for gain in GAINS) + " |"]
    lines.append("| --- |" + " --- |" * len(GAINS))
    for name, curve in _curves(found).items():
        cells = [f"{curve[gain]:.2f}" if gain in curve else "" for gain in GAINS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 56, 20, 170, 48
STROKES = {"6": "#c2410c", "12": "#a16207", "24": "#1d4ed8"}
LARGEST = 0.7


def picture(found: list[dict[str, Any]]) -> str:
    """Return the power curves as SVG; no curve is told by its colour alone."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="t" font-family="sans-serif" font-size="12">',
        '<title id="t">Share of searches that end with passed, by the gain of the one useful'
        " proposal</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for step in range(6):
        parts.append(_line([(0, step / 5), (LARGEST, step / 5)], "#ddd"))
        parts.append(_text(-0.008, step / 5 - 0.012, f"{step / 5:.1f}", "end"))
    parts += [_text(step / 10, -0.06, f"{step * 10}", "middle") for step in range(8)]
    parts.append(_text(LARGEST / 2, -0.125, "true gain, points", "middle"))
    for name, curve in _curves(found).items():
        stroke, dash = STROKES[name.split()[0]], "" if "3 repeats" in name else "5 4"
        points = sorted(curve.items())
        parts.append(_line(points, stroke, 2, dash))
        parts += [_dot(point, stroke) for point in points]
        parts.append(_text(points[-1][0] + 0.012, points[-1][1] - 0.012, name, "start", stroke))
    return "\n".join([*parts, "</svg>", ""])


def _place(point: tuple[float, float]) -> tuple[float, float]:
    across = LEFT + point[0] / LARGEST * (WIDTH - LEFT - RIGHT)
    return round(across, 1), round(TOP + (1 - point[1]) * (HEIGHT - TOP - BOTTOM), 1)


def _line(points: list[tuple[float, float]], stroke: str, width: float = 1, dash: str = "") -> str:
    path = " ".join(f"{x},{y}" for x, y in map(_place, points))
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"{dashes}/>'
    )


def _dot(point: tuple[float, float], fill: str) -> str:
    x, y = _place(point)
    return f'<circle cx="{x}" cy="{y}" r="3" fill="{fill}"/>'


def _text(across: float, up: float, text: str, anchor: str, fill: str = "#333") -> str:
    x, y = _place((across, up))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{text}</text>'


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("run", "table", "picture"))
    parser.add_argument("--studies", type=int, default=2_000)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.action == "run":
        run(options.results, options.studies)
    if options.action == "picture":
        sys.stdout.write(picture(read(options.results)))
    else:
        sys.stdout.write(table(read(options.results)) + "\n")


if __name__ == "__main__":
    main()
