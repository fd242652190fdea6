"""Oracles that know a part of what a simulated user thinks of the tips that are offered, and choose by that alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.user_model import Life, draw_life
from tipbench.recommender.simulation.world import World

TIP = ("quality", "length", "effort")
EVERYTHING, RANDOM = "oracle", "random"
ORACLES: Mapping[str, Sequence[str]] = {
    EVERYTHING: ("taste", "hour", "focus", *TIP, "fatigue"),
    "category taste": ("taste",),
    "hour": ("hour",),
    "focus": ("focus",),
    "tip": TIP,
    "fatigue": ("fatigue",),
    RANDOM: (),
}


class OpenLife(Life):
    """A life that shows what the user thinks."""

    def utilities(self, step: int, parts: Sequence[str]) -> Floats:
        """Return these parts' share in the utility of each offered tip, as things stand at this step."""
        if self._user.fatigue:
            self._tire(step, self._hours[step])
        found = np.zeros(len(self._offered[step]))
        for part in parts:
            found += self._varying[step] if part == "fatigue" else self._parts[part][step]
        return found


@dataclass(frozen=True)
class Oracles:
    """Lets each oracle serve a life; called with a persona's number and a seed, it returns the rewards by oracle."""

    world: World
    steps: int
    offered: int

    def __call__(self, task: tuple[int, int]) -> list[float]:
        persona, seed = task
        draws = draw_life(self.world, self.world.personas[persona], seed, self.steps, self.offered)
        return [self._mean_reward(OpenLife(self.world, draws), parts) for parts in ORACLES.values()]

    def _mean_reward(self, life: OpenLife, parts: Sequence[str]) -> float:
        """The first of equals is drawn at random: tips are offered in random order."""
        chosen = (int(life.utilities(step, parts).argmax()) for step in range(self.steps))
        return float(np.mean([life.show(step, position).reward for step, position in enumerate(chosen)]))
