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

    theta: Floats
    intercepts: Floats
    covariance: Floats  # of the dense coefficients, without the noise's factor
    shift: Floats  # by slot: how the intercept depends on the dense coefficients
    intercept_variance: Floats  # by slot, given the dense coefficients

    def means(self, features: Floats, slots: list[int]) -> Floats:
        means: Floats = features @ self.theta + self.intercepts[slots]
        return means

    def variances(self, features: Floats, slots: list[int]) -> Floats:
        apart = features - self.shift[slots]
        variances: Floats = ((apart @ self.covariance) * apart).sum(axis=1) + self.intercept_variance[slots]
        return variances


class WeightedSums:
    """One user's sums, as they are at the time of the latest event."""

    def __init__(self) -> None:
        self.n = 0
        self.reward_sum = 0.0
        self.at_ms = 0
        self.shown = Shown()
        self.xx: Floats = np.zeros((DENSE, DENSE))
        self.xr: Floats = np.zeros(DENSE)
        self.crossed: Floats = np.zeros((_SLOTS, DENSE))  # by slot: the sum of its rows
        self.weights: Floats = np.zeros(_SLOTS)
        self.rewards: Floats = np.zeros(_SLOTS)

    def learn(self, seen: Floats, reward: float, at_ms: int) -> None:
        weight = 1.0
        if at_ms > self.at_ms:
            self._fade(at_ms)
        else:
            weight = remembered(self.at_ms - at_ms)
        x = seen[:DENSE]
        weighted = weight * x
        slot = self.shown.slot(float(seen[CATEGORY]))
        self.xx += weighted[:, None] * x
        self.xr += reward * weighted
        self.crossed[slot] += weighted
        self.weights[slot] += weight
        self.rewards[slot] += weight * reward
        self.n += 1
        self.reward_sum += reward

    def posterior(self, prior: Prior, at_ms: int) -> Posterior:
        """Return what is known at this time, with the prior."""
        kept = remembered(max(0, at_ms - self.at_ms)) if self.n else 0.0
        precision = kept * self.weights + prior.intercept_precision
        crossed = kept * self.crossed
        rewards = kept * self.rewards
        shift = crossed / precision[:, None]
        covariance = np.linalg.inv(kept * self.xx + prior.precision - crossed.T @ shift)
        theta = covariance @ (kept * self.xr + prior.pull - rewards @ shift)
        return Posterior(theta, (rewards - crossed @ theta) / precision, covariance, shift, 1 / precision)

    def as_data(self) -> dict[str, Any]:
        shown = self.shown
        return {
            "n": self.n,
            "reward_sum": self.reward_sum,
            "at_ms": self.at_ms,
            "xx": self.xx[upper_triangle(DENSE)].tolist(),
            "xr": self.xr.tolist(),
            "categories": [
                {
                    "name": name,  # None: all categories beyond the first 32
                    "shown": vars(shown.impressions[slot]),
                    "sums": [float(self.weights[slot]), float(self.rewards[slot]), *self.crossed[slot].tolist()],
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
        state.xx[upper] = read_numbers(data, "xx", len(upper[0]))
        state.xx.T[upper] = state.xx[upper]
        state.xr[:] = read_numbers(data, "xr", DENSE)
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
        sums = read_numbers(data, "sums", DENSE + 2)
        self.weights[slot], self.rewards[slot], self.crossed[slot] = sums[0], sums[1], sums[2:]

    def _fade(self, at_ms: int) -> None:
        if self.n:
            kept = remembered(at_ms - self.at_ms)
            for sums in (self.xx, self.xr, self.crossed, self.weights, self.rewards):
                sums *= kept
        self.at_ms = at_ms


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
