"""All chance of one simulated life, drawn before it begins.

Policies that serve the same life meet the same hours, candidates and luck; they differ in what they choose, and in
nothing else. That is what makes a difference between them visible with few seeds.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import data_digest
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.world import Persona, World

SIMULATOR = 2  # to be raised when the same seed gives other lives
EVENTS_A_DAY = 4
_WITH_FOCUS = 0.7


class Tips(NamedTuple):
    """The pool, as columns."""

    category: NDArray[np.intp]
    length: NDArray[np.intp]
    effort_min: Floats


class Draws(NamedTuple):
    """A row for each time that something is shown."""

    tips: Tips
    at_hours: Floats  # since the life began; rising
    focus: NDArray[np.intp]  # a category, or -1
    offered: NDArray[np.intp]  # which tips are to choose from
    luck: Floats  # whether the user reacts, and how
    dwell: Floats  # standard normal
    moods: Floats  # standard normal, by category

    @property
    def hours(self) -> Floats:
        """Of the day."""
        return self.at_hours % 24


def drawn_life(world: World, persona: Persona, seed: int, steps: int, offered: int) -> Draws:
    """Depends on the persona, and not on which others are simulated with it."""
    words = ["life", SIMULATOR, world.surroundings, persona.character, seed, steps, offered]
    generator = np.random.Generator(np.random.PCG64(int(data_digest(words)[:32], 16)))
    tips = _tips(world, generator)
    days = np.arange(steps) // EVENTS_A_DAY
    of_day = np.sort(generator.uniform(persona.wakes, persona.sleeps, (days[-1] + 1, EVENTS_A_DAY)), axis=1)
    focus = generator.integers(0, len(world.categories), steps)
    focus[generator.random(steps) >= _WITH_FOCUS] = -1
    order = generator.random((steps, len(tips.category))).argsort(axis=1, kind="stable")  # alike on every processor
    return Draws(
        tips=tips,
        at_hours=days * 24 + of_day.ravel()[:steps],
        focus=focus,
        offered=order[:, :offered],
        luck=generator.random(steps),
        dwell=generator.standard_normal(steps),
        moods=generator.standard_normal((steps, len(world.categories))),
    )


def _tips(world: World, generator: np.random.Generator) -> Tips:
    pool, count = world.pool, world.pool.tips_per_category * len(world.categories)
    return Tips(
        category=np.repeat(np.arange(len(world.categories)), pool.tips_per_category),
        length=generator.integers(pool.shortest, pool.longest + 1, count),
        effort_min=np.round(generator.uniform(1, pool.most_effort_min, count)),
    )
