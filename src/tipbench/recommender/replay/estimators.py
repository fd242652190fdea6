"""Off-policy estimates of a policy's mean reward from decisions that another policy made.

Each takes columns with a value a decision: the reward, and how much the decision counts for the policy that is asked
about, which is how likely the logged choice would have been to it over how likely it was to the policy that made it.
The doubly robust one also takes what a model of rewards expects: of the logged choice, and on average over what the
asked one would choose.

Each gives terms, a value a decision again: their mean is the estimate, and how they scatter tells its error. So the
difference between two estimates on the same decisions is the mean of the difference of their terms.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.statistics.drift import t_quantile


class Weights(NamedTuple):
    """How much each logged decision counts for the asked policy, and how much that leaves."""

    values: Floats

    @property
    def effective_sample(self) -> float:
        """As many decisions of equal weight would say as much (Kish)."""
        squares = float((self.values**2).sum())
        return float(self.values.sum()) ** 2 / squares if squares else 0.0

    @property
    def largest(self) -> float:
        return float(self.values.max(initial=0.0))


class Estimate(NamedTuple):
    value: float
    error: float  # standard error, nan for one user alone
    users: int

    @property
    def margin(self) -> float:
        """How far the 95 % interval reaches to either side, by Student's t with users as the units."""
        return t_quantile(self.users - 1) * self.error if self.users > 1 else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        return self.value - self.margin, self.value + self.margin


def weights(logged: Floats, asked: Floats) -> Weights:
    if not (logged > 0).all():
        raise ValueError("a choice that could not be made was logged; its weight can't be told")
    return Weights(asked / logged)


def ips(rewards: Floats, weighting: Weights) -> Floats:
    """Inverse propensity scores: right on average, and scattered by large weights."""
    terms: Floats = weighting.values * rewards
    return terms


def snips(rewards: Floats, weighting: Weights) -> Floats:
    """Self-normalised: a little off with few decisions, and much less scattered. Its terms are those of its first-order
    expansion around the estimate; nan where no decision counts."""
    mean_weight = float(weighting.values.mean())
    if not mean_weight:
        return np.full_like(rewards, np.nan)
    value = float((weighting.values * rewards).mean()) / mean_weight
    terms: Floats = value + weighting.values * (rewards - value) / mean_weight
    return terms


def doubly_robust(rewards: Floats, weighting: Weights, expected_of_choice: Floats, expected_of_asked: Floats) -> Floats:
    """What a model expects, corrected by where it was wrong: right if either the model or the propensities are."""
    terms: Floats = expected_of_asked + weighting.values * (rewards - expected_of_choice)
    return terms


def estimate(terms: Floats, users: NDArray[np.integer]) -> Estimate:
    """The mean of the terms. Those of one user hang together, so users are the observations; they may have made few or
    many decisions. The error is the jackknife's: how far the mean moves when one user is left out, and then another."""
    mean = float(terms.mean())
    _, place, sizes = np.unique(users, return_inverse=True, return_counts=True)
    count = len(sizes)
    if count < 2:
        return Estimate(mean, float("nan"), count)
    moved = np.bincount(place, weights=terms - mean) / (len(terms) - sizes)
    return Estimate(mean, float(np.sqrt((moved**2).sum() * (count - 1) / count)), count)
