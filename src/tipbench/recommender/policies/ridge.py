"""Ridge regression of rewards on features, one vector at a time.

The state is the sums X'X and X'r: the order of rewards does not matter, and the sums of two states can be added. θ is
computed from them on demand and cached until the next reward. For a dozen dimensions that costs no more than updating
an inverse incrementally, rounding errors don't accumulate, and the same sums give the same θ everywhere.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.choosing import read_counts


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
        upper = upper_triangle(dimensions)
        state.xx[upper] = read_numbers(data, "xx", len(upper[0]))
        state.xx.T[upper] = state.xx[upper]
        state.xr[:] = read_numbers(data, "xr", dimensions)
        return state


@lru_cache
def upper_triangle(dimensions: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the indices of the upper triangle, which determines a symmetric matrix."""
    rows, columns = np.triu_indices(dimensions)
    return rows, columns


def read_number(data: Mapping[str, Any], key: str) -> float:
    return float(read_numbers({key: [data.get(key)]}, key, 1)[0])


def read_numbers(data: Mapping[str, Any], key: str, length: int) -> Floats:
    found = data.get(key)
    fits = isinstance(found, list) and len(found) == length and all(type(value) in (int, float) for value in found)
    values = np.array(found if fits else [], dtype=np.float64)
    if len(values) != length or not np.isfinite(values).all():
        raise ValueError(f"{key} is not a list of {length} numbers")
    return values


def explain_ridge(state: Ridge, features: Features) -> dict[str, Any]:
    return {
        "lambda": state.ridge,
        "theta": dict(zip(features.names, state.theta.tolist(), strict=True)),
        "condition": state.condition(),
    }
