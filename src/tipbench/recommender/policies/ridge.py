"""Ridge regression of rewards on features, one vector at a time.

The state is the sums X'X and X'r: the order of rewards does not matter, and the sums of two states can be added. θ is
computed from them on demand and cached until the next reward. For a dozen dimensions that costs no more than updating
an inverse incrementally, rounding errors don't accumulate, and the same sums give the same θ everywhere.
"""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.choosing import read_counts

_NUMBERS = frozenset((int, float))


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
        upper = self.xx[upper_triangle(len(self.xr))]
        return {"n": self.n, "reward_sum": self.reward_sum, "xx": upper.tolist(), "xr": self.xr.tolist()}

    @classmethod
    def from_data(cls, data: Mapping[str, Any], dimensions: int, ridge: float) -> "Ridge":
        state = cls(dimensions, ridge)
        state.n, state.reward_sum = read_counts(data)
        state.xx = read_symmetric(data, "xx", dimensions)
        state.xr = read_numbers(data, "xr", dimensions)
        return state


@lru_cache
def upper_triangle(dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the upper triangle, which determines a symmetric matrix."""
    rows, columns = np.triu_indices(dimensions)
    return rows, columns


@lru_cache
def _places_in_upper_triangle(dimensions: int) -> NDArray[np.intp]:
    upper = upper_triangle(dimensions)
    places = np.zeros((dimensions, dimensions), dtype=np.intp)
    places[upper] = places.T[upper] = np.arange(len(upper[0]))
    return places


def read_symmetric(data: Mapping[str, Any], key: str, dimensions: int) -> Floats:
    """Return the matrix whose upper triangle is stored, row by row."""
    return read_numbers(data, key, len(upper_triangle(dimensions)[0])).take(_places_in_upper_triangle(dimensions))


def read_number(data: Mapping[str, Any], key: str) -> float:
    found = data.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float) or not math.isfinite(found):
        raise ValueError(f"{key} is {found!r}, not a number")
    return float(found)


def read_numbers(data: Mapping[str, Any], key: str, length: int) -> Floats:
    found = data.get(key)
    if isinstance(found, list) and len(found) == length and _NUMBERS.issuperset(map(type, found)):
        values = np.array(found, dtype=np.float64)
        if np.isfinite(values).all():
            return values
    raise ValueError(f"{key} is not a list of {length} numbers")


def explain_ridge(state: Ridge, features: Features) -> dict[str, Any]:
    return {
        "lambda": state.ridge,
        "theta": dict(zip(features.names, state.theta.tolist(), strict=True)),
        "condition": state.condition(),
    }
