"""Simulated grids of scores: what a row's scores may look like, with the true mean known exactly.

A cell is a row (model × prompt) in a scenario. Its score is the mean over five candidates, each a whole number from 2
to 17; an answer without a usable candidate scores 2. Scenarios come in pairs, two times of day for one persona. Behind
every candidate stands a standard normal variable, the sum of what all rows share for the persona, what they share for
the scenario, what is the row's own for the persona and for the cell, and the candidate's own rest; the world's
distribution makes a score of it. So a candidate's distribution, and with it the true mean, is known without sampling,
whatever depends on whatever. A better row has that variable moved upwards; how often an answer is empty stays the same.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]
LOWEST, HIGHEST = 2, 17
TIMES = 2  # scenarios of one persona
_CANDIDATES = 5
_SCALE = np.arange(LOWEST, HIGHEST + 1)


@dataclass(frozen=True)
class Parts:
    """What the scatter of one candidate comes from, in shares that add up to 1."""

    shared_by_persona: float
    shared_by_scenario: float
    own_by_persona: float
    own_by_cell: float
    by_candidate: float


@dataclass(frozen=True)
class World:
    """One way for scores to come about."""

    name: str
    stands_for: str
    chances: Floats  # of the scores from 2 to 17, where the answer is not empty
    parts: Parts
    empty: float = 0.0  # the share of answers that score 2 because nothing in them is usable
    other_chances: Floats | None = None  # of every other row
    promised: bool = True
    candidates: int = _CANDIDATES  # of a cell that are scored
    upwards: bool = True  # where there is room for a gap; otherwise the worse rows are moved

    @cached_property
    def _limits(self) -> Floats:
        return _limits(self.chances)

    @cached_property
    def _other_limits(self) -> Floats:
        return self._limits if self.other_chances is None else _limits(self.other_chances)

    def mean(self, shift: float = 0.0, other: bool = False) -> float:
        """The true mean of a row; of every `other` one where there are two kinds."""
        usable = LOWEST + float(ndtr(shift - (self._other_limits if other else self._limits)).sum())
        return self.empty * LOWEST + (1 - self.empty) * usable

    def shift(self, gap: float, other: bool = False) -> float:
        """How far a row must be moved for its true mean to be so much higher (or lower) than without."""
        wanted = self.mean(other=other) + gap
        return float(brentq(lambda shift: self.mean(shift, other) - wanted, -12, 12)) if gap else 0.0

    def shifts(self, behind: Floats, other: bool = False) -> Floats:
        """The same for rows of which each lies so much behind the best."""
        offset = behind.max() if self.upwards else 0.0
        return np.array([self.shift(offset - one, other) for one in behind])

    def draw(self, random: np.random.Generator, grids: int, shifts: Floats, scenarios: int) -> Floats:
        """Scores: grids × rows × scenarios. Shifts are one a row, or grids × rows."""
        parts, rows, personas = self.parts, shifts.shape[-1], scenarios // TIMES

        def normal(share: float, *shape: int) -> Floats | float:
            return float(np.sqrt(share)) * random.standard_normal((grids, *shape)) if share else 0.0

        def together() -> Floats:
            total = np.zeros((grids, rows, personas, TIMES))
            total += normal(parts.shared_by_persona, 1, personas, 1)
            total += normal(parts.shared_by_scenario, 1, personas, TIMES)
            total += normal(parts.own_by_persona, rows, personas, 1)
            total += normal(parts.own_by_cell, rows, personas, TIMES)
            return total

        scores = np.empty((grids, rows, personas, TIMES))
        behind = together() + shifts[..., np.newaxis, np.newaxis]
        candidates = behind[..., np.newaxis] + normal(parts.by_candidate, rows, personas, TIMES, self.candidates)
        for start, limits in enumerate((self._limits, self._other_limits)):
            scores[:, start::2] = LOWEST + np.searchsorted(limits, candidates[:, start::2]).mean(axis=-1)
        if self.empty:
            hazard = together() / np.sqrt(1 - parts.by_candidate)
            scores[hazard < ndtri(self.empty)] = LOWEST
        return scores.reshape(grids, rows, scenarios)


def personas(scenarios: int) -> NDArray[np.intp]:
    """The persona of each scenario."""
    return np.arange(scenarios) // TIMES


def _limits(chances: Floats) -> Floats:
    """Where the standard normal variable goes over to the next score."""
    limits: Floats = ndtri(np.clip(np.cumsum(chances)[:-1], 0, 1))
    return limits


def _rounded_normal(mean: float, deviation: float) -> Floats:
    steps = ndtr((_SCALE[:-1] + 0.5 - mean) / deviation)
    return np.diff(np.concatenate([[0.0], steps, [1.0]]))


def _only(chances: dict[int, float]) -> Floats:
    return np.array([chances.get(int(score), 0.0) for score in _SCALE])


def _tail(ratio: float) -> Floats:
    chances: Floats = np.power(ratio, _SCALE - LOWEST, dtype=np.float64)
    shares: Floats = chances / chances.sum()
    return shares


_SLIPS = _only({17: 0.90, 16: 0.04, 15: 0.02, 14: 0.015, 12: 0.01, 10: 0.01, 8: 0.005})
_ALONE = Parts(0.0, 0.3, 0.0, 0.45, 0.25)  # scenarios do not depend on each other through their persona
_MILD = Parts(0.09, 0.21, 0.15, 0.30, 0.25)
_STRONG = Parts(0.21, 0.09, 0.35, 0.10, 0.25)

WORLDS = (
    World("even", "The middle of the scale, about normal: what textbooks assume.", _rounded_normal(9.5, 2.5), _ALONE),
    World(
        "ceiling",
        "Good models on easy scenarios: most are at 17, few slip by some points, and 2 % of the answers are empty.",
        _SLIPS,
        _ALONE,
        empty=0.02,
        upwards=False,
    ),
    World(
        "slips by persona",
        "As ceiling, but a row that slips with one persona tends to do so at both times of day.",
        _SLIPS,
        Parts(0.0, 0.1, 0.6, 0.1, 0.2),
        empty=0.02,
        upwards=False,
    ),
    World("skewed", "Weak models: mostly near the minimum, with a long tail of good candidates.", _tail(0.7), _ALONE),
    World(
        "often empty",
        "Small models: one answer in five has no usable candidate and scores 2, the rest lie around 12.",
        _rounded_normal(12, 2),
        _ALONE,
        empty=0.2,
    ),
    World(
        "personas 0.3",
        "Personas are hard or easy for all rows, and each row suits some personas better: intraclass correlation 0.3.",
        _rounded_normal(9.5, 3),
        _MILD,
    ),
    World("personas 0.7", "The same with 0.7.", _rounded_normal(9.5, 3), _STRONG),
    World(
        "all or nothing",
        "A persona is answered at 17 (six times in ten) or at 2, at both times of day: dependence at its worst.",
        _only({17: 0.6, 2: 0.4}),
        Parts(0.0, 0.0, 1.0, 0.0, 0.0),
    ),
    World(
        "scatter 2×",
        "Equal means, but every other row scatters twice as much. Equal rows are not exchangeable then: no promise.",
        _rounded_normal(9.5, 1.7),
        _MILD,
        other_chances=_rounded_normal(9.5, 3.4),
        promised=False,
    ),
    World(
        "scatter 6×",
        "The same, six times as much: no promise.",
        _rounded_normal(9.5, 0.7),
        _MILD,
        other_chances=_rounded_normal(9.5, 4.2),
        promised=False,
    ),
)

SCATTERING = World(
    "scattering", "Usable models; the scores of a row scatter by 1.5 or so.", _rounded_normal(9.5, 1.7), _MILD
)
STEADY = (
    World("never vary", "Models that never write anything usable: 2 throughout.", _only({2: 1.0}), _MILD),
    World(
        "hardly vary", "Models that hardly ever do: one candidate in twenty scores 3.", _only({2: 0.95, 3: 0.05}), _MILD
    ),
)
