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
from tipbench.recommender.policies.ridge import read_number, read_numbers, read_symmetric, upper_triangle
from tipbench.recommender.prior.interface import Prior

_FIRST_SLOT = DENSE + 1
_SLOTS = MOST_CATEGORIES + 2  # with one for all other categories, and an empty one for those that were never met
REMEMBERED = 0.99  # of a weight, after six hours
_PERIOD_MS = 6 * 3_600_000


class Posterior(NamedTuple):
    """The distribution of one user's coefficients: of the dense features, and of the intercept of each slot.

    `precision` is [[P, b], [0, 1]], with P the precision of the dense coefficients times the noise, and b what they
    predict of rewards. Its inverse, [[P⁻¹, −P⁻¹b], [0, 1]], has their covariance and, with the sign turned, their mean.
    """

    precision: Floats
    shift: Floats  # by slot: how the intercept depends on the dense coefficients; last, what it is without them
    intercept_precision: float  # of the prior

    def rewards(self, features: Floats, slots: list[int]) -> tuple[Floats, Floats]:
        """Return the expected reward of each row, and its variance in units of the noise."""
        shift = self.shift.take(slots, axis=0)
        apart = features - shift[:, :DENSE]
        spread = apart @ np.linalg.inv(self.precision)[:DENSE]
        means: Floats = shift[:, DENSE] - spread[:, DENSE]
        # An intercept's own variance is 1/(w + λ), w being its sum of weights. The first of `apart` is 1 − w/(w + λ).
        variances: Floats = np.vecdot(spread[:, :DENSE], apart) + apart[:, 0] / self.intercept_precision
        return means, variances

    def coefficients(self) -> tuple[Floats, Floats]:
        """Return the means: of the dense coefficients, and of the intercept of each slot."""
        theta: Floats = -np.linalg.inv(self.precision)[:DENSE, DENSE]
        return theta, self.shift[:, DENSE] - self.shift[:, :DENSE] @ theta

    def condition(self) -> float:
        """Return the condition number of the dense coefficients' precision."""
        return float(np.linalg.cond(self.precision[:DENSE, :DENSE]))


class WeightedSums:
    """One user's sums, as they are at the time of the latest event.

    They are in one array: rows are dense features, one that stays 0, then slots; columns are dense features, then the
    reward. The first feature is always 1, so a slot's first column is also its sum of weights.
    """

    def __init__(self) -> None:
        self.n = 0
        self.reward_sum = 0.0
        self.at_ms = 0
        self.shown = Shown()
        self.sums: Floats = np.zeros((_FIRST_SLOT + _SLOTS, DENSE + 1))

    def learn(self, seen: Floats, reward: float, at_ms: int) -> None:
        sums = self._used()
        row = seen.copy()
        row[CATEGORY] = reward  # both are last
        products = row[:DENSE, None] * row  # in this order it stays symmetric to the bit
        if at_ms >= self.at_ms:
            sums *= remembered(at_ms - self.at_ms)
            self.at_ms = at_ms
        else:
            products *= remembered(self.at_ms - at_ms)
        dense, slot = sums[:DENSE], sums[_FIRST_SLOT + self.shown.slot(float(seen[CATEGORY]))]
        dense += products
        slot += products[0]  # the row, weighted
        self.n += 1
        self.reward_sum += reward

    def posterior(self, prior: Prior, at_ms: int) -> Posterior:
        """Return what is known at this time, with the prior."""
        sums = self._used()
        if at_ms > self.at_ms:
            sums = sums * remembered(at_ms - self.at_ms)
        slots = sums[_FIRST_SLOT:]
        shift = slots / (slots[:, :1] + prior.intercept_precision)
        precision = sums[:_FIRST_SLOT] + prior.pull
        dense = precision[:DENSE]
        dense -= slots[:, :DENSE].T @ shift
        return Posterior(precision, shift, prior.intercept_precision)

    def _used(self) -> Floats:
        """Return the rows up to the first slot without a category, which stands for those that were never met."""
        return self.sums[: _FIRST_SLOT + len(self.shown.impressions) + 1]

    def as_data(self) -> dict[str, Any]:
        shown = self.shown
        slots = self._used()[_FIRST_SLOT:].tolist()
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
                    "sums": slots[slot],
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
        state.sums[:DENSE, :DENSE] = read_symmetric(data, "xx", DENSE)
        state.sums[:DENSE, DENSE] = read_numbers(data, "xr", DENSE)
        categories = _read_list(data, "categories")
        numbers = [number for slot, one in enumerate(categories) for number in state._meet(slot, one)]
        rows = read_numbers({"sums": numbers}, "sums", len(numbers)).reshape(-1, DENSE + 1)
        state.sums[_FIRST_SLOT : _FIRST_SLOT + len(rows)] = rows
        return state

    def _meet(self, slot: int, data: Mapping[str, Any]) -> list[Any]:
        """Load a category of the state's data, and return its sums, which are read all at once."""
        name, shown, sums = data.get("name"), data.get("shown"), data.get("sums")
        fits = isinstance(name, str) if slot < MOST_CATEGORIES else slot == MOST_CATEGORIES and name is None
        if not fits or self.shown.slot(category_number(name or "")) < slot or not isinstance(shown, dict):
            raise ValueError(f"categories has {name!r} in place {slot}")
        impressions = self.shown.meet(name)
        impressions.before = read_number(shown, "before")
        impressions.at_last, impressions.last_ms = _read_count(shown, "at_last"), _read_count(shown, "last_ms")
        if not isinstance(sums, list) or len(sums) != DENSE + 1:
            raise ValueError(f"sums is not a list of {DENSE + 1} numbers")
        return sums


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
