"""Regression of rewards on version 3 of the features, with a prior, forgetting, and an intercept for each category.

The state is weighted sums. A reward's weight is 0.99 for every six hours between its event and the user's latest one,
so the order in which rewards arrive does not matter. The prior is no part of the state: another one needs no other
sums.

A row has one category, so the sums of the intercepts are diagonal. They are eliminated first (a Schur complement), and
what is left to solve has 15 dimensions, however many categories a user has met.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tipbench.recommender.features.interface import Floats, category_number
from tipbench.recommender.features.v3 import CATEGORY, DENSE, MOST_CATEGORIES, Shown
from tipbench.recommender.policies.choosing import read_counts
from tipbench.recommender.policies.ridge import read_number, read_numbers, upper_triangle
from tipbench.recommender.prior.interface import Prior

_SLOTS = MOST_CATEGORIES + 2  # with one for all other categories, and an empty one for those that were never met
REMEMBERED = 0.99  # of a weight, after six hours
_PERIOD_MS = 6 * 3_600_000


class Posterior(NamedTuple):
    """The distribution of one user's coefficients: of the dense features, and of the intercept of each slot."""

    precision: Floats  # of the dense coefficients, times the noise, with what they predict of rewards as a last column
    intercept_variance: Floats  # by slot, given the dense coefficients, in units of the noise
    shift: Floats  # by slot: how the intercept depends on the dense coefficients; last, what it is without them

    def rewards(self, features: Floats, slots: list[int]) -> tuple[Floats, Floats]:
        """Return the expected reward of each row, and its variance in units of the noise."""
        of_rows = np.array(slots)
        shift = self.shift.take(of_rows, axis=0)
        apart = features - shift[:, :DENSE]
        spread = apart @ np.linalg.inv(self.precision[:, :DENSE])
        means: Floats = spread @ self.precision[:, DENSE] + shift[:, DENSE]
        variances: Floats = np.vecdot(spread, apart) + self.intercept_variance.take(of_rows)
        return means, variances

    def coefficients(self) -> tuple[Floats, Floats]:
        """Return the means: of the dense coefficients, and of the intercept of each slot."""
        theta: Floats = np.linalg.solve(self.precision[:, :DENSE], self.precision[:, DENSE])
        return theta, self.shift[:, DENSE] - self.shift[:, :DENSE] @ theta


class WeightedSums:
    """One user's sums, as they are at the time of the latest event.

    They are in one array: rows are dense features, then slots; columns are dense features, then the reward. The first
    feature is always 1, so a slot's first column is also its sum of weights.
    """

    def __init__(self) -> None:
        self.n = 0
        self.reward_sum = 0.0
        self.at_ms = 0
        self.shown = Shown()
        self.sums: Floats = np.zeros((DENSE + _SLOTS, DENSE + 1))

    def learn(self, seen: Floats, reward: float, at_ms: int) -> None:
        row = seen.copy()
        row[CATEGORY] = reward  # both are last
        products = row[:DENSE, None] * row  # in this order it stays symmetric to the bit
        if at_ms >= self.at_ms:
            self.sums *= remembered(at_ms - self.at_ms)
            self.at_ms = at_ms
        else:
            weight = remembered(self.at_ms - at_ms)
            products *= weight
            row *= weight
        self.sums[:DENSE] += products
        self.sums[DENSE + self.shown.slot(float(seen[CATEGORY]))] += row
        self.n += 1
        self.reward_sum += reward

    def posterior(self, prior: Prior, at_ms: int) -> Posterior:
        """Return what is known at this time, with the prior."""
        sums = self.sums[: DENSE + len(self.shown.impressions) + 1]  # the last slot stands for what was never met
        if at_ms > self.at_ms:
            sums = sums * remembered(at_ms - self.at_ms)
        slots = sums[DENSE:]
        variance = 1 / (slots[:, 0] + prior.intercept_precision)
        shift = slots * variance[:, None]
        return Posterior(sums[:DENSE] - slots[:, :DENSE].T @ shift + prior.pull, variance, shift)

    def as_data(self) -> dict[str, Any]:
        shown = self.shown
        return {
            "n": self.n,
            "reward_sum": self.reward_sum,
            "at_ms": self.at_ms,
            "xx": self.sums[upper_triangle(DENSE)].tolist(),
            "xr": self.sums[:DENSE, DENSE].tolist(),
            "categories": [
                {
                    "name": name,  # None: all categories beyond the first 32
                    "shown": vars(shown.impressions[slot]),
                    "sums": self.sums[DENSE + slot].tolist(),
                }
                for slot, name in shown.met()
            ],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "WeightedSums":
        """Load sums from what `as_data` returned; raise ValueError for anything else."""
        state = cls()
        state.n, state.reward_sum = read_counts(data)
        state.at_ms = _read_count(data, "at_ms")
        upper = upper_triangle(DENSE)
        xx = state.sums[:DENSE, :DENSE]
        xx[upper] = read_numbers(data, "xx", len(upper[0]))
        xx.T[upper] = xx[upper]
        state.sums[:DENSE, DENSE] = read_numbers(data, "xr", DENSE)
        for slot, one in enumerate(_read_list(data, "categories")):
            state._meet(slot, one)
        return state

    def _meet(self, slot: int, data: Mapping[str, Any]) -> None:
        """Load a category of the state's data."""
        name, shown = data.get("name"), data.get("shown")
        fits = isinstance(name, str) if slot < MOST_CATEGORIES else slot == MOST_CATEGORIES and name is None
        if not fits or self.shown.slot(category_number(name or "")) < slot or not isinstance(shown, dict):
            raise ValueError(f"categories has {name!r} in place {slot}")
        impressions = self.shown.meet(name)
        impressions.before = read_number(shown, "before")
        impressions.at_last, impressions.last_ms = _read_count(shown, "at_last"), _read_count(shown, "last_ms")
        self.sums[DENSE + slot] = read_numbers(data, "sums", DENSE + 1)


def _read_count(data: Mapping[str, Any], key: str) -> int:
    found = data.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise ValueError(f"{key} is {found!r}, not a count")
    return found


def _read_list(data: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = data.get(key)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ValueError(f"{key} is not a list of objects")
    return found


def remembered(ms: int) -> float:
    """Return the weight that a reward has after this time."""
    return float(REMEMBERED ** (ms / _PERIOD_MS))
