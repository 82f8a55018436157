"""What a search draws: parents, cases of a reflection, and seeds that both sides share."""

from __future__ import annotations

from typing import Protocol

from xgent_evolve.strategies.streams import run_stream, stream

_SEED_BITS = 63


class Draws(Protocol):
    """The draws of a search; the real ones do not depend on each other."""

    def validation_seed(self) -> int:
        """Return the seed of every evaluation on validation cases."""
        ...

    def parent(self, iteration: int, parents: list[str]) -> str:
        """Return one of the list, evenly."""
        ...

    def minibatch(self, iteration: int, cases: list[str], size: int) -> list[str]:
        """Return `size` of the cases in random order, each once."""
        ...

    def paired_seed(self, iteration: int) -> int:
        """Return the seed that parent and child share."""
        ...

    def holdout_seed(self) -> int:
        """Return the seed of the evaluations on held-out cases."""
        ...


class StreamDraws:
    """Draws from a stream of its own for every iteration (counted from 0) and purpose."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def validation_seed(self) -> int:
        """Return the seed of every evaluation on validation cases."""
        return run_stream(self._seed, "validation").getrandbits(_SEED_BITS)

    def parent(self, iteration: int, parents: list[str]) -> str:
        """Return one of the list, evenly."""
        return parents[stream(self._seed, iteration, "parent").randrange(len(parents))]

    def minibatch(self, iteration: int, cases: list[str], size: int) -> list[str]:
        """Return `size` of the cases in random order, each once."""
        chosen = stream(self._seed, iteration, "minibatch").sample(range(len(cases)), size)
        return [cases[index] for index in chosen]

    def paired_seed(self, iteration: int) -> int:
        """Return the seed that parent and child share."""
        return stream(self._seed, iteration, "paired").getrandbits(_SEED_BITS)

    def holdout_seed(self) -> int:
        """Return the seed of the evaluations on held-out cases."""
        return run_stream(self._seed, "holdout").getrandbits(_SEED_BITS)
