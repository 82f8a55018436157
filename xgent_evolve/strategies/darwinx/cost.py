"""What a search pays in executions of tasks; the identities hold exactly (requirement I4)."""

from __future__ import annotations

from dataclasses import dataclass

from xgent_evolve.strategies.darwinx.population import StepKind


@dataclass(frozen=True, slots=True)
class Prices:
    """What every stage costs, in executions of tasks; retries aside."""

    tasks: int
    screen_size: int
    """As asked for; a screening never has more tasks than there are."""
    screen_samples: int
    confirm_samples: int

    @property
    def start(self) -> int:
        """The measurement of the first version."""
        return self.tasks * self.confirm_samples

    def step(self, kind: StepKind, *, measured: bool, passed_screen: bool) -> int:
        """Return what a step costs; an edit that was not measured costs nothing."""
        if not measured:
            return 0
        sides = 3 if kind == "recombination" else 2
        screening = sides * min(self.screen_size, self.tasks) * self.screen_samples
        return screening + (sides * self.start if passed_screen else 0)

    def most(self, steps: int, merge_every: int) -> int:
        """Return what `steps` steps cost when each of them is confirmed."""
        merges = steps // merge_every if merge_every else 0
        kinds: dict[StepKind, int] = {"recombination": merges, "mutation": steps - merges}
        paid = (
            count * self.step(kind, measured=True, passed_screen=True)
            for kind, count in kinds.items()
        )
        return self.start + sum(paid)
