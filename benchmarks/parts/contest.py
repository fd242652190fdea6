"""Twelve rows in a simulated world, one of them the best: how far the others are behind it, and their scores.

Every simulation has random numbers of its own, which follow from what is simulated: a figure does not depend on what
else is run, and no two figures share their numbers.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from benchmarks.parts.score_worlds import HIGHEST, LOWEST, TIMES, WORLDS, Floats

ROWS = 12
SPAN = HIGHEST - LOWEST
RIVAL = 0.15  # points behind
SHAPES: dict[str, Floats] = {  # points that each row is behind the best
    "gap 2": np.array([0.0] + [2.0] * (ROWS - 1)),
    "gap 1": np.array([0.0] + [1.0] * (ROWS - 1)),
    "gap 0.5": np.array([0.0] + [0.5] * (ROWS - 1)),
    "stairs": 0.25 * np.arange(ROWS, dtype=np.float64),
}
_WRONG = 0.05
_MANY = 20_000  # items to learn a variance from


def random_for(*what: object) -> np.random.Generator:
    """Return the random numbers of a simulation."""
    return np.random.default_rng(list("/".join(map(str, what)).encode()))


class Contest:
    """Rows of which each is so many points behind the best, in a world.

    In worlds with two kinds of rows, a row's kind follows from its position, and its gap is exact for either kind.
    """

    def __init__(self, world: str, behind: Floats) -> None:
        self.behind = behind
        self._world = next(one for one in WORLDS if one.name == world)
        self._shifts = np.array([self._world.shifts(behind), self._world.shifts(behind, other=True)])

    def draw(
        self, random: np.random.Generator, order: NDArray[np.intp], personas: int, times: int = 1, candidates: int = 1
    ) -> Floats:
        """Draw scores of the rows in this order: rows × scenarios, so many times of day of each persona."""
        shifts = self._shifts[np.arange(len(order)) % 2, order]
        scores: Floats = replace(self._world, candidates=candidates).draw(random, 1, shifts, personas * TIMES)[0]
        return scores if times == TIMES else scores[:, ::TIMES]

    def items(self, random: np.random.Generator, order: NDArray[np.intp], items: int) -> Floats:
        """Draw one candidate of each row on one scenario of each persona: items × rows, from 0 to 1."""
        scores: Floats = (self.draw(random, order, items).T - LOWEST) / SPAN
        return scores

    def least(self) -> float:
        """Return the judgements that any method takes at least on average, if it is wrong at most 5 % of the time.

        That is T* · kl(0.05, 0.95) of Garivier and Kaufmann (2016), "Optimal best arm identification with fixed
        confidence", for normal scores of a known variance: here that of the worse rows, without what all rows share of
        an item. For scores that aren't normal it is a yardstick.

        1/T* is the smallest w_best · w / (w_best + w) · gap² / (2 · variance) over the other rows, for the shares w of
        judgements that make it as large as possible. There it is the same for all of them, so that with some c every
        w is w_best · c / (gap² − c), and T* = 2 · variance · (1 + sum of c / (gap² − c)) / c for the c that makes it
        smallest. If all gaps are equal, that is 2 · variance · (1 + √(rows − 1))² / gap².
        """
        scores = self.draw(random_for("least", self._world.name), np.arange(len(self.behind)), _MANY)[1:]
        own = scores - scores.mean(axis=0)
        variance = float((own**2).sum()) / (_MANY * (len(own) - 1))
        squares = self.behind[1:] ** 2
        smallest = float(squares.min())
        total = minimize_scalar(
            lambda c: (1 + (c / (squares - c)).sum()) / c, bounds=(0, smallest), method="bounded"
        ).fun
        return float(2 * variance * total * (1 - 2 * _WRONG) * np.log((1 - _WRONG) / _WRONG))
