"""Ridge regression of rewards on features, one vector at a time.

What is kept are sums, X'X and X'r: they commute, so the order of rewards does not matter, and those of two places can
be added. θ is derived from them when it is asked for after something was learned. For a dozen dimensions that costs
what updating an inverse along would cost, rounding can't add up, and the same sums give the same θ everywhere.
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
_SPARE_BITS = 11  # of 64; a float holds 53
_ONE = 1 << 53


class Ridge:
    """One user's regression."""

    def __init__(self, dimensions: int, ridge: float) -> None:
        self.n = 0
        self.reward_sum = 0.0
        self.ridge = ridge
        self.xx: Floats = np.zeros((dimensions, dimensions))
        self.xr: Floats = np.zeros(dimensions)
        self._ridges: Floats = ridge * np.eye(dimensions)
        self._inverse: Floats | None = None
        self._theta: Floats | None = None

    @property
    def inverse(self) -> Floats:
        """Of X'X + λI."""
        if self._inverse is None:
            self._inverse = np.linalg.inv(self._regular())
        return self._inverse

    @property
    def theta(self) -> Floats:
        if self._theta is None:
            self._theta = np.linalg.solve(self._regular(), self.xr)
        return self._theta

    def learn(self, x: Floats, reward: float) -> None:
        self.xx += x[:, None] * x
        self.xr += reward * x
        self.n += 1
        self.reward_sum += reward
        self._inverse = self._theta = None

    def condition(self) -> float:
        """How far from singular: the larger, the less sure is what θ says of single dimensions."""
        return float(np.linalg.cond(self._regular()))

    def _regular(self) -> Floats:
        return self.xx + self._ridges

    def as_data(self) -> dict[str, Any]:
        upper = self.xx[_upper(len(self.xr))]
        return {"n": self.n, "reward_sum": self.reward_sum, "xx": upper.tolist(), "xr": self.xr.tolist()}

    @classmethod
    def of_data(cls, data: Mapping[str, Any], dimensions: int, ridge: float) -> "Ridge":
        state = cls(dimensions, ridge)
        state.n, state.reward_sum = counted(data)
        upper = _upper(dimensions)
        state.xx[upper] = numbers(data, "xx", len(upper[0]))
        state.xx.T[upper] = state.xx[upper]
        state.xr[:] = numbers(data, "xr", dimensions)
        return state


@lru_cache
def _upper(dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where the upper triangle of a symmetric matrix is: all that there is to know about it."""
    rows, columns = np.triu_indices(dimensions)
    return rows, columns


def counted(data: Mapping[str, Any]) -> tuple[int, float]:
    """How many rewards a state holds, and their sum."""
    n, total = data.get("n"), data.get("reward_sum")
    if not isinstance(n, int) or isinstance(n, bool) or n < 0:
        raise ValueError(f"n is {n!r}, not a count")
    if not isinstance(total, int | float) or not math.isfinite(total):
        raise ValueError(f"reward_sum is {total!r}, not a number")
    return n, float(total)


def numbers(data: Mapping[str, Any], key: str, length: int) -> Floats:
    found = data.get(key)
    fits = isinstance(found, list) and len(found) == length and all(type(value) in (int, float) for value in found)
    values = np.array(found if fits else [], dtype=np.float64)
    if len(values) != length or not np.isfinite(values).all():
        raise ValueError(f"{key} is not a list of {length} numbers")
    return values


# From scores to a choice: how likely each candidate is, and the draw.


def drawn(scores: Floats, epsilon: float, features: Floats, generator: Generator) -> Choice:
    """Mostly one of the best, each as likely as the others; with a chance of ε, any candidate at all."""
    propensities = mostly_best(scores, epsilon)
    up_to = propensities.cumsum()
    place = int(up_to.searchsorted(generator.random() * up_to[-1], side="right"))
    return Choice(place, scores, propensities, epsilon, features)


def mostly_best(scores: Floats, epsilon: float) -> Floats:
    """Exact propensities. Scores that are equal but for rounding share what the best gets."""
    best = scores >= scores.max() - _TIE
    propensities: Floats = best * ((1 - epsilon) / np.count_nonzero(best))
    propensities += epsilon / len(scores)
    return propensities


class EventRng:
    """Chance that is the same for the same event, on every machine: a request that is sent again is answered as before.

    Each number is a digest of the event and of how many were drawn before: a fifth of the time that seeding a usual
    generator takes, and the same whichever version of it is installed.
    """

    def __init__(self, policy: str, user_id: str, event_id: str) -> None:
        self._event = "\n".join((policy, user_id, event_id)).encode()
        self._drawn = 0

    def random(self) -> float:
        self._drawn += 1
        digest = blake2b(self._event, digest_size=8, salt=self._drawn.to_bytes(8, "little")).digest()
        return (int.from_bytes(digest, "little") >> _SPARE_BITS) / _ONE
