"""Ridge regression of rewards on features, one vector at a time.

The state is the sums X'X and X'r: the order of rewards does not matter, and the sums of two states can be added. θ is
computed from them on demand and cached until the next reward. For a dozen dimensions that costs no more than updating
an inverse incrementally, rounding errors don't accumulate, and the same sums give the same θ everywhere.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.policies.interface import Choice, Generator

_TIE = 1e-9
_SPARE_BITS = 11  # of 64; a float's mantissa holds 53
_ONE = 1 << 53


class Ridge:
    """One user's regression."""

    def __init__(self, dimensions: int, ridge: float) -> None:
        self.n = 0
        self.reward_sum = 0.0
        self.ridge = ridge
        self.xx: Floats = np.zeros((dimensions, dimensions))
        self.xr: Floats = np.zeros(dimensions)
        self._penalty: Floats = ridge * np.eye(dimensions)
        self._inverse: Floats | None = None
        self._theta: Floats | None = None

    @property
    def inverse(self) -> Floats:
        """The inverse of X'X + λI."""
        if self._inverse is None:
            self._inverse = np.linalg.inv(self._regularised())
        return self._inverse

    @property
    def theta(self) -> Floats:
        if self._theta is None:
            self._theta = np.linalg.solve(self._regularised(), self.xr)
        return self._theta

    def learn(self, x: Floats, reward: float) -> None:
        self.xx += x[:, None] * x
        self.xr += reward * x
        self.n += 1
        self.reward_sum += reward
        self._inverse = self._theta = None

    def condition(self) -> float:
        """Return the condition number of X'X + λI: the larger, the less reliable are single coefficients of θ."""
        return float(np.linalg.cond(self._regularised()))

    def _regularised(self) -> Floats:
        return self.xx + self._penalty

    def as_data(self) -> dict[str, Any]:
        upper = self.xx[_upper_triangle(len(self.xr))]
        return {"n": self.n, "reward_sum": self.reward_sum, "xx": upper.tolist(), "xr": self.xr.tolist()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], dimensions: int, ridge: float) -> "Ridge":
        state = cls(dimensions, ridge)
        state.n, state.reward_sum = read_counts(data)
        upper = _upper_triangle(dimensions)
        state.xx[upper] = read_numbers(data, "xx", len(upper[0]))
        state.xx.T[upper] = state.xx[upper]
        state.xr[:] = read_numbers(data, "xr", dimensions)
        return state


@lru_cache
def _upper_triangle(dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the upper triangle, which determines a symmetric matrix."""
    rows, columns = np.triu_indices(dimensions)
    return rows, columns


def read_counts(data: Mapping[str, Any]) -> tuple[int, float]:
    """Return the number of rewards in a state's data, and their sum; raise ValueError if either is malformed."""
    n, total = data.get("n"), data.get("reward_sum")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n is {n!r}, not a count")
    if not isinstance(total, int | float) or not math.isfinite(total):
        raise ValueError(f"reward_sum is {total!r}, not a number")
    return n, float(total)


def read_numbers(data: Mapping[str, Any], key: str, length: int) -> Floats:
    found = data.get(key)
    fits = isinstance(found, list) and len(found) == length and all(type(value) in (int, float) for value in found)
    values = np.array(found if fits else [], dtype=np.float64)
    if len(values) != length or not np.isfinite(values).all():
        raise ValueError(f"{key} is not a list of {length} numbers")
    return values


# From scores to a choice.


def draw_choice(scores: Floats, epsilon: float, features: Floats, generator: Generator) -> Choice:
    """Draw one of the best candidates, or with probability ε any candidate; uniformly in both cases."""
    propensities = epsilon_greedy_propensities(scores, epsilon)
    cumulative = propensities.cumsum()
    position = int(cumulative.searchsorted(generator.random() * cumulative[-1], side="right"))
    return Choice(position, scores, propensities, epsilon, features)


def epsilon_greedy_propensities(scores: Floats, epsilon: float) -> Floats:
    """Return the exact propensities. Scores that are equal up to rounding are tied."""
    best = scores >= scores.max() - _TIE
    propensities: Floats = best * ((1 - epsilon) / np.count_nonzero(best))
    propensities += epsilon / len(scores)
    return propensities


class EventRng:
    """Random numbers that depend only on the event, on every machine, so that a retried request gets the same answer.

    Each number is a digest of the event and a counter. That takes a fifth of the time of seeding a regular generator,
    and does not depend on the installed version of one.
    """

    def __init__(self, policy: str, user_id: str, event_id: str) -> None:
        self._event = "\n".join((policy, user_id, event_id)).encode()
        self._drawn = 0

    def random(self) -> float:
        self._drawn += 1
        digest = blake2b(self._event, digest_size=8, salt=self._drawn.to_bytes(8, "little")).digest()
        return (int.from_bytes(digest, "little") >> _SPARE_BITS) / _ONE
