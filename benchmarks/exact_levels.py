"""How often `keep` and `passed` are said with one trial a group and condition: sums, no simulation.

Then a group's difference is -1, 0 or 1, so a study is one of few counts of gains and losses, and a
rate is a sum over the counts that the product's own interval and rule accept.

    python benchmarks/exact_levels.py table
    python benchmarks/exact_levels.py picture > docs/power.svg
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np

from xgent_evolve.measure.bootstrap import RESAMPLES, interval_ends
from xgent_evolve.measure.comparison import Interval
from xgent_evolve.measure.decide import lean

type Counts = list[tuple[int, int]]

CHANCES = [step / 100 for step in range(1, 26)]
"""Without an effect a gain and a loss have one chance, p(1 - p) on average: at most 1/4."""
GROUPS = (6, 8, 12, 24, 48)
GAINS = [step / 20 for step in range(15)]
SUCCESS = 0.3
"""Mean success rate of the baseline; cases vary as in `simulated_search.py`."""


def kept_counts(groups: int, *, confidence: float = 0.95, seed: int = 0) -> Counts:
    """Return the counts (gains, losses) of which `keep` follows when the smallest gain is 0."""
    counts = [(a, b) for a in range(groups + 1) for b in range(min(a, groups + 1 - a))]
    samples = np.array([[1.0] * a + [-1.0] * b + [0.0] * (groups - a - b) for a, b in counts])
    ends = interval_ends(
        samples, np.ones(groups), confidence=confidence, seed=seed, resamples=RESAMPLES
    )
    sides = zip(counts, *(side.tolist() for side in ends), strict=True)
    return [count for count, low, high in sides if lean(Interval(low, high), 0.0) == "keep"]


def chance_of(kept: Counts, groups: int, gain: float, loss: float) -> float:
    """Return the chance of `keep` when a group gains, and loses, with these chances."""
    return math.fsum(
        math.comb(groups, a)
        * math.comb(groups - a, b)
        * gain**a
        * loss**b
        * (1 - gain - loss) ** (groups - a - b)
        for a, b in kept
    )


def false_keep(groups: int, *, confidence: float = 0.95, seed: int = 0) -> float:
    """Return the rate of `keep` without an effect, at the chance that is worst."""
    kept = kept_counts(groups, confidence=confidence, seed=seed)
    return max(chance_of(kept, groups, chance, chance) for chance in CHANCES)


def power(kept: Counts, groups: int, gain: float) -> float:
    """Return the chance that a text with this true gain is kept, and then confirmed.

    Search and confirmation have as many groups each, and no group in common.
    """
    loss = (1 - gain / (1 - SUCCESS)) * _variation(SUCCESS)
    return chance_of(kept, groups, loss + gain, loss) ** 2


def _variation(mean: float) -> float:
    """Return the mean of p(1 - p) over cases: Beta around groups that are Beta around `mean`."""
    square = mean * mean + mean * (1 - mean) / 5
    return (mean - square) * 6 / 7


def table() -> str:
    """Return levels and power as Markdown."""
    counts = [*range(6, 25), 30, 40]
    lines = ["| Groups | 0.95 | 0.9 | 0.8 |", "| --- | --- | --- | --- |"]
    for groups in counts:
        rates = [f"{false_keep(groups, confidence=level):.4f}" for level in (0.95, 0.9, 0.8)]
        lines.append(f"| {groups} | " + " | ".join(rates) + " |")
    shown = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    lines += ["", "| Groups | " + " | ".join(f"+{gain * 100:.0f}" for gain in shown) + " |"]
    lines.append("| --- |" + " --- |" * len(shown))
    for groups in GROUPS:
        kept = kept_counts(groups)
        rates = [f"{power(kept, groups, gain):.2f}" for gain in shown]
        lines.append(f"| {groups} | " + " | ".join(rates) + " |")
    return "\n".join(lines)


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 400, 56, 20, 110, 52
STROKES = ("#b91c1c", "#c2410c", "#4d7c0f", "#1d4ed8", "#6d28d9")


def picture() -> str:
    """Return the power curves as SVG; every curve bears its name."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="t" font-family="sans-serif" font-size="12">',
        '<title id="t">Chance that a useful text is kept and confirmed, by its true gain</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for step in range(6):
        parts.append(_line([(0, step / 5), (GAINS[-1], step / 5)], "#ddd"))
        parts.append(_text(-0.01, step / 5 - 0.012, f"{step / 5:.1f}", "end"))
    parts += [_text(step / 10, -0.06, f"{step * 10}", "middle") for step in range(8)]
    parts.append(_text(GAINS[-1] / 2, -0.13, "true gain in points", "middle"))
    for groups, stroke in zip(GROUPS, STROKES, strict=True):
        kept = kept_counts(groups)
        points = [(gain, power(kept, groups, gain)) for gain in GAINS]
        parts.append(_line(points, stroke, 2))
        half = min(points, key=lambda point: abs(point[1] - 0.55))
        place = half if groups > GROUPS[0] else points[-1]
        parts.append(_text(place[0] + 0.012, place[1] - 0.012, f"{groups} groups", "start", stroke))
    return "\n".join([*parts, "</svg>", ""])


def _place(point: tuple[float, float]) -> tuple[float, float]:
    across = LEFT + point[0] / GAINS[-1] * (WIDTH - LEFT - RIGHT)
    return round(across, 1), round(TOP + (1 - point[1]) * (HEIGHT - TOP - BOTTOM), 1)


def _line(points: list[tuple[float, float]], stroke: str, width: float = 1) -> str:
    path = " ".join(f"{x},{y}" for x, y in map(_place, points))
    return f'<polyline points="{path}" fill="none" stroke="{stroke}" stroke-width="{width}"/>'


def _text(across: float, up: float, text: str, anchor: str, fill: str = "#333") -> str:
    x, y = _place((across, up))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{fill}">{text}</text>'


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=("table", "picture"))
    action = parser.parse_args().action
    sys.stdout.write(picture() if action == "picture" else table() + "\n")


if __name__ == "__main__":
    main()
