"""The truth: what a simulated user thinks of a tip. No policy sees any of it but the reactions."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import data_digest
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.history import Reaction
from tipbench.recommender.simulation.world import Persona, World

SIMULATOR = 2  # to be raised when the same seed gives other lives
EVENTS_A_DAY = 4
_WITH_FOCUS = 0.7
_LONGEST_S = 600.0
_LOG_LONGEST = math.log(1 + _LONGEST_S)
_TIRED_FOR_H = 18.0  # after which a third of the tiredness is left
_STALE_FOR_H = 24.0
_DWELL_S = 20.0
_DWELL_SPREAD = 0.8


# All chance of one simulated life, drawn before it begins.
#
# Policies that serve the same life meet the same hours, candidates and luck; they differ in what they choose, and in
# nothing else. That is what makes a difference between them visible with few seeds.


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


COMPLETED, DISMISSED, LOOKED = 1.0, -0.5, 0.2
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Outcome(NamedTuple):
    reaction: Reaction
    dwell_s: float
    reward: float


class Life:
    """One user from the first tip to the last."""

    def __init__(self, world: World, persona: Persona, draws: Draws) -> None:
        steps, categories = len(draws.luck), world.categories
        self.draws = draws
        self._persona = persona
        self._steps = steps
        self._lasting = self._lasting_utilities(categories)
        self._fixed = self._lasting + persona.moods * np.take_along_axis(
            draws.moods, draws.tips.category[draws.offered], axis=1
        )
        self._tiredness = [0.0] * len(categories)
        self._shown_at: dict[int, float] = {}
        self._at = 0.0
        self._varying = np.zeros((steps, draws.offered.shape[1]))
        self._chosen = np.zeros(steps, dtype=np.intp)
        # lists, because single numbers are taken out of them
        self._offered: list[list[int]] = draws.offered.tolist()
        self._categories: list[int] = draws.tips.category.tolist()
        self._hours: list[float] = draws.at_hours.tolist()
        self._chances: list[tuple[float, float]] = list(zip(draws.luck.tolist(), draws.dwell.tolist(), strict=True))

    def hours_since_shown(self, step: int) -> list[float | None]:
        """Of each tip that is offered."""
        now, shown_at = self._hours[step], self._shown_at
        return [None if tip not in shown_at else now - shown_at[tip] for tip in self._offered[step]]

    def show(self, step: int, place: int) -> Outcome:
        """The one at this place of the offered ones is shown, and the user reacts."""
        tip, now = self._offered[step][place], self._hours[step]
        if self._persona.fatigue:
            self._tire(step, now)
        outcome = self._outcome(step, float(self._fixed[step, place] + self._varying[step, place]))
        self._tiredness[self._categories[tip]] += 1.0
        self._shown_at[tip] = now
        self._chosen[step] = place
        return outcome

    def _tire(self, step: int, now: float) -> None:
        """What was shown lately is liked less, the tip itself and all of its category."""
        fade = math.exp(-(now - self._at) / _TIRED_FOR_H)
        self._at = now
        self._tiredness = [tired * fade for tired in self._tiredness]
        self._varying[step] = [
            -self._persona.fatigue * (self._tiredness[self._categories[other]] + self._staleness(other, now))
            for other in self._offered[step]
        ]

    def expected(self) -> tuple[Floats, Floats]:
        """Of every step: the reward that was to be expected of what was shown, and of the best that was offered.

        By who knows the user well. A mood is known to nobody."""
        rewards = expected_reward(self._lasting + self._varying, self._persona.moods)
        return rewards[np.arange(self._steps), self._chosen], rewards.max(axis=1)

    def _staleness(self, tip: int, now: float) -> float:
        shown = self._shown_at.get(tip)
        return 0.0 if shown is None else math.exp(-(now - shown) / _STALE_FOR_H)

    def _outcome(self, step: int, utility: float) -> Outcome:
        luck, chance = self._chances[step]
        completes, dismisses = reaction_odds(utility)
        dwell_s = dwell(utility, chance)
        if luck < completes:
            return Outcome("completed", dwell_s, COMPLETED)
        if luck < completes + dismisses:
            return Outcome("dismissed", dwell_s, DISMISSED)
        return Outcome("ignored", dwell_s, LOOKED * math.log(1 + min(dwell_s, _LONGEST_S)) / _LOG_LONGEST)

    def _lasting_utilities(self, categories: tuple[str, ...]) -> Floats:
        """Of everything that is offered, but for moods and for what depends on what was shown before."""
        persona, draws = self._persona, self.draws
        tastes = np.array(
            [[persona.tastes(second).get(category, 0.0) for category in categories] for second in (False, True)]
        )
        best = np.array([persona.best_hours.get(category, np.nan) for category in categories])
        of = draws.tips.category[draws.offered]
        half = (np.arange(self._steps) >= self._steps / 2).astype(np.intp)
        aligned = np.nan_to_num(np.cos(math.tau * (draws.hours[:, None] - best[of]) / 24))
        lengths = np.log1p(draws.tips.length[draws.offered]) / math.log(2001)
        utilities: Floats = (
            persona.base
            + tastes[half[:, None], of]
            + persona.hour_weight * aligned
            + persona.length_weight * (2 * lengths - 1)
            + persona.effort_weight * (2 * np.minimum(draws.tips.effort_min[draws.offered] / 60, 1) - 1)
            + persona.focus_weight * (of == draws.focus[:, None])
        )
        return utilities


def reaction_odds(utility: float) -> tuple[float, float]:
    """Of completing, and of dismissing; otherwise the tip is looked at and left."""
    completes = 1 / (1 + math.exp(-utility))
    return completes, (1 - completes) / (1 + math.exp(utility + 1))


def dwell(utility: float, chance: float) -> float:
    return _DWELL_S * math.exp(0.5 * utility + _DWELL_SPREAD * chance)


def expected_reward(utilities: Floats, moods: float = 0.0) -> Floats:
    """Over all luck and moods, by nine nodes for the dwell's and for theirs."""
    if moods:
        in_each = expected_reward(utilities[..., None] + moods * _NODES)
        over_all: Floats = (in_each * _NODE_WEIGHTS).sum(axis=-1)
        return over_all
    completes = 1 / (1 + np.exp(-utilities))
    dismisses = (1 - completes) / (1 + np.exp(utilities + 1))
    dwells = _DWELL_S * np.exp(0.5 * utilities[..., None] + _DWELL_SPREAD * _NODES)
    looked = (np.log1p(np.minimum(dwells, _LONGEST_S)) * _NODE_WEIGHTS).sum(axis=-1) / _LOG_LONGEST
    rewards: Floats = COMPLETED * completes + DISMISSED * dismisses + LOOKED * looked * (1 - completes - dismisses)
    return rewards
