"""The ground truth: what a simulated user thinks of a tip. Policies see only the reactions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.core.identity import data_digest
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.history import Reaction
from tipbench.recommender.simulation.world import Dwell, Persona, Quality, Spread, World

EVENTS_A_DAY = 4
_WITH_FOCUS = 0.7
_LONGEST_S = 600.0
_LOG_LONGEST = math.log(1 + _LONGEST_S)
_TIRED_FOR_H = 18.0  # time constant: after it, a third of the tiredness is left
_STALE_FOR_H = 24.0
_DWELL_S = 20.0
_DWELL = Dwell()
_WEIGHTS = ("hour_weight", "length_weight", "effort_weight", "focus_weight", "quality_weight")
_DRIFTS_IN = 200  # decisions
_COMPOSITE, _COMPOSITE_SPREAD, _WORST, _BEST = 11.0, 2.5, 2, 17  # of judged tips, on the scale of the rubric tip-v1


# All random numbers of one simulated life, drawn before it begins.
#
# Policies that serve the same life get the same hours, candidates and luck, and differ only in what they choose. That
# makes a difference between them visible with few seeds.


class Tips(NamedTuple):
    """The pool of tips, as columns. From version 3 on it is the same in every life of a world."""

    category: NDArray[np.intp]
    length: NDArray[np.intp]
    effort_min: Floats
    quality: Floats
    judged: Floats  # from 0 to 1; NaN where no judge saw it


class Draws(NamedTuple):
    """All random numbers of a life; one row per step, at which one tip is shown."""

    tips: Tips
    user: Persona  # as drawn; without a spread, the persona itself
    at_hours: Floats  # since the life began; ascending
    focus: NDArray[np.intp]  # a category's index, or -1
    offered: NDArray[np.intp]  # indexes of the tips to choose from
    luck: Floats  # uniform; decides the reaction
    dwell: Floats  # standard normal
    moods: Floats  # standard normal, by category
    drift: Floats  # how far each taste has moved by then, by category
    arrives: Floats  # when the reward arrives, in hours since the life began; infinite if it never does

    @property
    def hours(self) -> Floats:
        """The hour of the day."""
        return self.at_hours % 24

    def due(self) -> list[list[int]]:
        """Return, for each step, the steps whose rewards arrive between it and the next one, in order of arrival."""
        found: list[list[int]] = [[] for _ in self.at_hours]
        after = self.at_hours.searchsorted(self.arrives, side="right") - 1
        for step in self.arrives.argsort(kind="stable").tolist():
            if self.arrives[step] < math.inf:
                found[after[step]].append(step)
        return found


def draw_life(world: World, persona: Persona, seed: int, steps: int, offered: int) -> Draws:
    """Draw a life. It depends on the persona, but not on which others are simulated along with it."""
    generator = _generator("life", world.simulator, world.shared_data, persona.character, seed, steps, offered)
    if world.simulator == 2:
        tips, user = _tips(world, generator), persona
    else:
        tips, user = shared_tips(world), draw_user(persona, world.categories, generator)
    days = np.arange(steps) // EVENTS_A_DAY
    hours_of_day = np.sort(generator.uniform(user.wakes, user.sleeps, (days[-1] + 1, EVENTS_A_DAY)), axis=1)
    at_hours = days * 24 + hours_of_day.ravel()[:steps]
    focus = generator.integers(0, len(world.categories), steps)
    focus[generator.random(steps) >= _WITH_FOCUS] = -1
    order = generator.random((steps, len(tips.category))).argsort(axis=1, kind="stable")  # the same on every processor
    return Draws(
        tips=tips,
        user=user,
        at_hours=at_hours,
        focus=focus,
        offered=order[:, :offered],
        luck=generator.random(steps),
        dwell=generator.standard_normal(steps),
        moods=generator.standard_normal((steps, len(world.categories))),
        drift=_drift(user.drift, steps, len(world.categories), generator),
        arrives=at_hours + _delays(world, steps, generator),
    )


def shared_tips(world: World) -> Tips:
    """Draw the tips that all lives of the world share."""
    return _tips(world, _generator("tips", world.simulator, world.shared_data))


def draw_user(persona: Persona, categories: Sequence[str], generator: np.random.Generator) -> Persona:
    """Draw a user of this persona, who is a persona without a spread."""
    spread, normal = persona.spread or Spread(), generator.standard_normal

    def tastes(mean: Mapping[str, float]) -> dict[str, float]:
        return {category: mean.get(category, 0.0) + spread.taste * normal() for category in categories}

    changed: dict[str, Any] = {name: getattr(persona, name) + spread.weights * normal() for name in _WEIGHTS}
    changed |= {
        "base": persona.base + spread.base * normal(),
        "fatigue": persona.fatigue * math.exp(spread.fatigue * normal()),
        "best_hours": {
            category: (hour + spread.hours * normal()) % 24 for category, hour in persona.best_hours.items()
        },
        "taste": tastes(persona.taste),
        "taste_after": None if persona.taste_after is None else tastes(persona.taste_after),
        "spread": None,
    }
    return persona.model_copy(update=changed)


def _generator(*seed_data: Any) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int(data_digest(list(seed_data))[:32], 16)))


def _drift(deviation: float, steps: int, categories: int, generator: np.random.Generator) -> Floats:
    """Return a random walk for each category."""
    if not deviation:
        return np.zeros((steps, categories))
    moves: Floats = generator.standard_normal((steps, categories)) * (deviation / math.sqrt(_DRIFTS_IN))
    return moves.cumsum(axis=0)


def _delays(world: World, steps: int, generator: np.random.Generator) -> Floats:
    """Return how many hours after its event each reward arrives."""
    if world.feedback is None:
        return np.zeros(steps)
    fate, delay = generator.random(steps), generator.exponential(world.feedback.mean_delay_h, steps)
    late = fate < world.feedback.missing + world.feedback.late
    return np.where(fate < world.feedback.missing, np.inf, np.where(late, delay, 0.0))


def _tips(world: World, generator: np.random.Generator) -> Tips:
    pool, count = world.pool, world.pool.tips_per_category * len(world.categories)
    length = generator.integers(pool.shortest, pool.longest + 1, count)
    effort_min = np.round(generator.uniform(1, pool.most_effort_min, count))
    quality = generator.standard_normal(count) if pool.quality else np.zeros(count)
    return Tips(
        category=np.repeat(np.arange(len(world.categories)), pool.tips_per_category),
        length=length,
        effort_min=effort_min,
        quality=quality,
        judged=_judged(pool.quality, quality, generator) if pool.quality else np.full(count, np.nan),
    )


def _judged(shape: Quality, quality: Floats, generator: np.random.Generator) -> Floats:
    """Return judged composites, from 0 to 1, of some tips; they go along with the quality as far as `shape` says."""
    count, noise = len(quality), math.sqrt(1 - shape.correlation**2)
    impression = shape.correlation * quality + noise * generator.standard_normal(count)
    composite = np.clip(np.round(_COMPOSITE + _COMPOSITE_SPREAD * impression), _WORST, _BEST)
    seen = generator.permutation(count) < round(shape.judged * count)
    return np.where(seen, (composite - _WORST) / (_BEST - _WORST), np.nan)


COMPLETED, DISMISSED, LOOKED = 1.0, -0.5, 0.2
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


class Outcome(NamedTuple):
    reaction: Reaction
    dwell_s: float
    reward: float


class Life:
    """One simulated user from the first tip to the last."""

    def __init__(self, world: World, draws: Draws) -> None:
        steps, categories, user = len(draws.luck), world.categories, draws.user
        self.draws = draws
        self._user = user
        self._dwell = world.dwell
        self._steps = steps
        self._parts = self._lasting_parts(categories)
        self._lasting: Floats = sum(self._parts.values(), np.array(user.base))
        self.fixed = self._lasting + user.moods * np.take_along_axis(
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
        if self._user.fatigue:
            self._tire(step, now)
        outcome = self._outcome(step, float(self.fixed[step, position] + self._varying[step, position]))
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
            -self._user.fatigue * (self._tiredness[self._categories[other]] + self._staleness(other, now))
            for other in self._offered[step]
        ]

    def expected(self) -> tuple[Floats, Floats]:
        """Return the expected reward of the shown tip and of the best offered tip, for every step.

        The expectation knows everything about the user except moods, which nobody can know.
        """
        rewards = expected_reward(self._lasting + self._varying, self._user.moods, self._dwell)
        return rewards[np.arange(self._steps), self._chosen], rewards.max(axis=1)

    def _staleness(self, tip: int, now: float) -> float:
        shown = self._shown_at.get(tip)
        return 0.0 if shown is None else math.exp(-(now - shown) / _STALE_FOR_H)

    def _outcome(self, step: int, utility: float) -> Outcome:
        luck, chance = self._chances[step]
        completes, dismisses = reaction_odds(utility)
        dwell_s = dwell(utility, chance, self._dwell)
        if luck < completes:
            return Outcome("completed", dwell_s, COMPLETED)
        if luck < completes + dismisses:
            return Outcome("dismissed", dwell_s, DISMISSED)
        return Outcome("ignored", dwell_s, LOOKED * math.log(1 + min(dwell_s, _LONGEST_S)) / _LOG_LONGEST)

    def _lasting_parts(self, categories: tuple[str, ...]) -> dict[str, Floats]:
        """Return the parts of the utility of every offered tip that neither moods nor earlier impressions change."""
        user, draws = self._user, self.draws
        tastes = np.array(
            [[user.tastes(second).get(category, 0.0) for category in categories] for second in (False, True)]
        )
        best = np.array([user.best_hours.get(category, np.nan) for category in categories])
        offered_categories = draws.tips.category[draws.offered]
        half = (np.arange(self._steps) >= self._steps / 2).astype(np.intp)
        aligned = np.nan_to_num(np.cos(math.tau * (draws.hours[:, None] - best[offered_categories]) / 24))
        lengths = np.log1p(draws.tips.length[draws.offered]) / math.log(2001)
        return {
            "taste": tastes[half[:, None], offered_categories]
            + np.take_along_axis(draws.drift, offered_categories, axis=1),
            "hour": user.hour_weight * aligned,
            "length": user.length_weight * (2 * lengths - 1),
            "effort": user.effort_weight * (2 * np.minimum(draws.tips.effort_min[draws.offered] / 60, 1) - 1),
            "focus": user.focus_weight * (offered_categories == draws.focus[:, None]),
            "quality": user.quality_weight * draws.tips.quality[draws.offered],
        }


def reaction_odds(utility: float) -> tuple[float, float]:
    """Return the probabilities of completing and of dismissing; otherwise the tip is viewed and ignored."""
    completes = 1 / (1 + math.exp(-utility))
    return completes, (1 - completes) / (1 + math.exp(utility + 1))


def dwell(utility: float, chance: float, shape: Dwell = _DWELL) -> float:
    return _DWELL_S * math.exp(shape.slope * utility + shape.spread * chance)


def expected_reward(utilities: Floats, moods: float = 0.0, shape: Dwell = _DWELL) -> Floats:
    """Return the expected reward over luck, dwell and moods, by Gauss-Hermite quadrature with nine nodes each."""
    if moods:
        by_node = expected_reward(utilities[..., None] + moods * _NODES, shape=shape)
        averaged: Floats = (by_node * _NODE_WEIGHTS).sum(axis=-1)
        return averaged
    completes = 1 / (1 + np.exp(-utilities))
    dismisses = (1 - completes) / (1 + np.exp(utilities + 1))
    dwells = _DWELL_S * np.exp(shape.slope * utilities[..., None] + shape.spread * _NODES)
    looked = (np.log1p(np.minimum(dwells, _LONGEST_S)) * _NODE_WEIGHTS).sum(axis=-1) / _LOG_LONGEST
    rewards: Floats = COMPLETED * completes + DISMISSED * dismisses + LOOKED * looked * (1 - completes - dismisses)
    return rewards
