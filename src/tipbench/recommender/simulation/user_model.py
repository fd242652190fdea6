"""The ground truth: what a simulated user thinks of a tip. Policies see only the reactions."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import data_digest
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.history import Reaction
from tipbench.recommender.simulation.world import Persona, World

SIMULATOR = 2  # version; raise it when the same seed gives different lives
EVENTS_A_DAY = 4
_WITH_FOCUS = 0.7
_LONGEST_S = 600.0
_LOG_LONGEST = math.log(1 + _LONGEST_S)
_TIRED_FOR_H = 18.0  # time constant: after it, a third of the tiredness is left
_STALE_FOR_H = 24.0
_DWELL_S = 20.0
_DWELL_SPREAD = 0.8


# All random numbers of one simulated life, drawn before it begins.
#
# Policies that serve the same life get the same hours, candidates and luck, and differ only in what they choose. That
# makes a difference between them visible with few seeds.


class Tips(NamedTuple):
    """The pool of tips, as columns."""

    category: NDArray[np.intp]
    length: NDArray[np.intp]
    effort_min: Floats


class Draws(NamedTuple):
    """All random numbers of a life; one row per step, at which one tip is shown."""

    tips: Tips
    at_hours: Floats  # since the life began; ascending
    focus: NDArray[np.intp]  # a category's index, or -1
    offered: NDArray[np.intp]  # indexes of the tips to choose from
    luck: Floats  # uniform; decides the reaction
    dwell: Floats  # standard normal
    moods: Floats  # standard normal, by category

    @property
    def hours(self) -> Floats:
        """The hour of the day."""
        return self.at_hours % 24


def draw_life(world: World, persona: Persona, seed: int, steps: int, offered: int) -> Draws:
    """Draw a life. It depends on the persona, but not on which others are simulated along with it."""
    seed_data = ["life", SIMULATOR, world.shared_data, persona.character, seed, steps, offered]
    generator = np.random.Generator(np.random.PCG64(int(data_digest(seed_data)[:32], 16)))
    tips = _tips(world, generator)
    days = np.arange(steps) // EVENTS_A_DAY
    hours_of_day = np.sort(generator.uniform(persona.wakes, persona.sleeps, (days[-1] + 1, EVENTS_A_DAY)), axis=1)
    focus = generator.integers(0, len(world.categories), steps)
    focus[generator.random(steps) >= _WITH_FOCUS] = -1
    order = generator.random((steps, len(tips.category))).argsort(axis=1, kind="stable")  # the same on every processor
    return Draws(
        tips=tips,
        at_hours=days * 24 + hours_of_day.ravel()[:steps],
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
    """One simulated user from the first tip to the last."""

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
        # lists, because reading single numbers from them is faster
        self._offered: list[list[int]] = draws.offered.tolist()
        self._categories: list[int] = draws.tips.category.tolist()
        self._hours: list[float] = draws.at_hours.tolist()
        self._chances: list[tuple[float, float]] = list(zip(draws.luck.tolist(), draws.dwell.tolist(), strict=True))

    def hours_since_shown(self, step: int) -> list[float | None]:
        """Return the hours since each offered tip was shown; None if it never was."""
        now, shown_at = self._hours[step], self._shown_at
        return [None if tip not in shown_at else now - shown_at[tip] for tip in self._offered[step]]

    def show(self, step: int, position: int) -> Outcome:
        """Show the offered tip at this position; return the user's reaction."""
        tip, now = self._offered[step][position], self._hours[step]
        if self._persona.fatigue:
            self._tire(step, now)
        outcome = self._outcome(step, float(self._fixed[step, position] + self._varying[step, position]))
        self._tiredness[self._categories[tip]] += 1.0
        self._shown_at[tip] = now
        self._chosen[step] = position
        return outcome

    def _tire(self, step: int, now: float) -> None:
        """Lower the utility of what was shown recently, both the tip itself and its whole category."""
        fade = math.exp(-(now - self._at) / _TIRED_FOR_H)
        self._at = now
        self._tiredness = [tired * fade for tired in self._tiredness]
        self._varying[step] = [
            -self._persona.fatigue * (self._tiredness[self._categories[other]] + self._staleness(other, now))
            for other in self._offered[step]
        ]

    def expected(self) -> tuple[Floats, Floats]:
        """Return the expected reward of the shown tip and of the best offered tip, for every step.

        The expectation knows everything about the user except moods, which nobody can know.
        """
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
        """Return the utility of every offered tip, without moods and without the effect of earlier impressions."""
        persona, draws = self._persona, self.draws
        tastes = np.array(
            [[persona.tastes(second).get(category, 0.0) for category in categories] for second in (False, True)]
        )
        best = np.array([persona.best_hours.get(category, np.nan) for category in categories])
        offered_categories = draws.tips.category[draws.offered]
        half = (np.arange(self._steps) >= self._steps / 2).astype(np.intp)
        aligned = np.nan_to_num(np.cos(math.tau * (draws.hours[:, None] - best[offered_categories]) / 24))
        lengths = np.log1p(draws.tips.length[draws.offered]) / math.log(2001)
        utilities: Floats = (
            persona.base
            + tastes[half[:, None], offered_categories]
            + persona.hour_weight * aligned
            + persona.length_weight * (2 * lengths - 1)
            + persona.effort_weight * (2 * np.minimum(draws.tips.effort_min[draws.offered] / 60, 1) - 1)
            + persona.focus_weight * (offered_categories == draws.focus[:, None])
        )
        return utilities


def reaction_odds(utility: float) -> tuple[float, float]:
    """Return the probabilities of completing and of dismissing; otherwise the tip is viewed and ignored."""
    completes = 1 / (1 + math.exp(-utility))
    return completes, (1 - completes) / (1 + math.exp(utility + 1))


def dwell(utility: float, chance: float) -> float:
    return _DWELL_S * math.exp(0.5 * utility + _DWELL_SPREAD * chance)


def expected_reward(utilities: Floats, moods: float = 0.0) -> Floats:
    """Return the expected reward over luck, dwell and moods, by Gauss-Hermite quadrature with nine nodes each."""
    if moods:
        by_node = expected_reward(utilities[..., None] + moods * _NODES)
        averaged: Floats = (by_node * _NODE_WEIGHTS).sum(axis=-1)
        return averaged
    completes = 1 / (1 + np.exp(-utilities))
    dismisses = (1 - completes) / (1 + np.exp(utilities + 1))
    dwells = _DWELL_S * np.exp(0.5 * utilities[..., None] + _DWELL_SPREAD * _NODES)
    looked = (np.log1p(np.minimum(dwells, _LONGEST_S)) * _NODE_WEIGHTS).sum(axis=-1) / _LOG_LONGEST
    rewards: Floats = COMPLETED * completes + DISMISSED * dismisses + LOOKED * looked * (1 - completes - dismisses)
    return rewards
