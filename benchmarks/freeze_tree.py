"""The tree that the freeze is measured on: seeded, like a large source repository."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

from startup import write_spec

LARGE_BYTES = 6_000_000
"""Size of the largest files."""
MEDIAN_BYTES, SPREAD = 5_900, 1.542
"""Median and log-scale deviation of the others: 99 of 100 are below 213 kB."""
_MOST_BYTES = 2_000_000
_PER_DIRECTORY = 25


def write_tree(root: Path, files: int, seed: int = 1) -> int:
    """Write `files` files below `root` and return their bytes.

    One of 500 has 6 MB, one of 100 is a link that leads nowhere, one of 10 repeats an earlier
    file; four of five are text.
    """
    dice = random.Random(seed)
    pools = (text_pool(dice), dice.randbytes(2 * LARGE_BYTES))
    written: list[bytes] = []
    total = 0
    for number in range(files):
        path = root / place(dice, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        if number % 100 == 7:
            path.symlink_to(f"absent-{number}")
            continue
        if written and number % 10 == 3:
            content = dice.choice(written)
        else:
            large = number % 500 == 11
            size = LARGE_BYTES if large else round(dice.lognormvariate(0, SPREAD) * MEDIAN_BYTES)
            pool = pools[dice.random() < 0.2]
            start = dice.randrange(len(pool) - LARGE_BYTES)
            content = b"%d\n" % number + pool[start : start + min(size, _size_limit(large=large))]
            if not large:
                written.append(content)
        path.write_bytes(content)
        total += len(content)
    return total


def write_study(directory: Path, files: int) -> tuple[Path, int]:
    """Write a JobSpec whose target repository holds the tree, committed; return it and its size."""
    spec = write_spec(directory)
    document = json.loads(spec.read_text())
    repository = spec.parent / document["target"]["repo"]
    size = write_tree(repository / "tree", files)
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "tree")
    head = git(repository, "rev-parse", "HEAD").strip()
    document["target"]["base_commit"] = head
    document["source"]["paths"].append("tree")
    document["authority"]["export_paths"].append("tree")
    document["cases"][0] |= {
        "source": {"kind": "repo", "repo": document["target"]["repo"], "base": head},
    }
    spec.write_text(json.dumps(document))
    return spec, size


def git(repository: Path, *arguments: str) -> str:
    """Run git there, without compression, and return what it says."""
    options = ("-c", "core.compression=0", "-c", "user.name=b", "-c", "user.email=b@example.org")
    words = ["git", "-C", str(repository), *options, *arguments]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def place(dice: random.Random, number: int) -> str:
    """Return the path of a file: directories nest up to four deep."""
    directory = number // _PER_DIRECTORY
    parts = [f"d{directory % 7}", f"e{directory % 31}", f"f{directory}"][: dice.choice((2, 3, 3))]
    return "/".join([*parts, f"n{number}.{dice.choice(('py', 'md', 'c', 'json', 'bin'))}"])


def text_pool(dice: random.Random) -> bytes:
    """Return text to cut files from."""
    words = ["".join(dice.choices("etaoinshrdlucmfwypvbgkqjxz", k=n)) for n in word_sizes(dice)]
    marks = (" ", " ", " ", " ", "_", "-", ".", ", ", "(", ") ", "\n", "\n    ", " = ", "/")
    pieces: list[str] = []
    size = 0
    while size < 2 * LARGE_BYTES:
        piece = dice.choice(words) + dice.choice(marks)
        pieces.append(piece)
        size += len(piece)
    return "".join(pieces).encode()


def word_sizes(dice: random.Random) -> Iterator[int]:
    """Yield the lengths of the words of a vocabulary."""
    return (dice.randint(2, 11) for _ in range(5_000))


def _size_limit(*, large: bool) -> int:
    return LARGE_BYTES if large else _MOST_BYTES
