"""Off-policy estimates of a target policy's mean reward from decisions that another policy made and logged.

Each estimator takes columns with one value per decision: the reward, and the importance weight, which is the propensity
of the logged choice under the target policy divided by its propensity under the logging policy. The doubly robust one
also takes a reward model's expectations: for the logged choice, and averaged over the target policy's choices.

Each returns terms, again one value per decision: their mean is the estimate, and their spread gives its error. So the
difference between two estimates on the same decisions is the mean of the differences of their terms.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.statistics.drift import t_quantile


class Weights(NamedTuple):
    """The importance weight of each logged decision, and how much information the weighted sample holds."""

    values: Floats

    @property
    def effective_sample(self) -> float:
        """The number of equally weighted decisions that would be as informative (Kish)."""
        squares = float((self.values**2).sum())
        return float(self.values.sum()) ** 2 / squares if squares else 0.0

    @property
    def largest(self) -> float:
        return float(self.values.max(initial=0.0))


class Estimate(NamedTuple):
    value: float
    error: float  # standard error; nan for a single user
    users: int

    @property
    def margin(self) -> float:
        """Half the width of the 95 % interval, by Student's t with users as the units."""
        return t_quantile(self.users - 1) * self.error if self.users > 1 else float("nan")

    @property
    def interval(self) -> tuple[float, float]:
        return self.value - self.margin, self.value + self.margin


def weights(logged: Floats, target: Floats) -> Weights:
    """Return the importance weights; raise ValueError if a logged propensity is not positive."""
    if not (logged > 0).all():
        raise ValueError("the log has a choice with probability 0; it can't be weighted")
    return Weights(target / logged)


def ips(rewards: Floats, weighting: Weights) -> Floats:
    """Inverse propensity scoring: unbiased, but large weights give it a high variance."""
    terms: Floats = weighting.values * rewards
    return terms


def snips(rewards: Floats, weighting: Weights) -> Floats:
    """Self-normalised IPS: slightly biased with few decisions, with a much lower variance.

    The terms are those of its first-order expansion around the estimate; nan if all weights are 0.
    """
    mean_weight = float(weighting.values.mean())
    if not mean_weight:
        return np.full_like(rewards, np.nan)
    value = float((weighting.values * rewards).mean()) / mean_weight
    terms: Floats = value + weighting.values * (rewards - value) / mean_weight
    return terms


def doubly_robust(rewards: Floats, weighting: Weights, expected_logged: Floats, expected_target: Floats) -> Floats:
    """A model's expectation, corrected by its weighted residuals: unbiased if either model or propensities hold."""
    terms: Floats = expected_target + weighting.values * (rewards - expected_logged)
    return terms


def estimate(terms: Floats, users: NDArray[np.integer]) -> Estimate:
    """Return the mean of the terms with its standard error.

    The terms of one user are correlated, so users are the observations, however many decisions each has. The error is
    the jackknife estimate: how far the mean moves as each user in turn is left out.
    """
    mean = float(terms.mean())
    _, user_index, sizes = np.unique(users, return_inverse=True, return_counts=True)
    count = len(sizes)
    if count < 2:
        return Estimate(mean, float("nan"), count)
    moved = np.bincount(user_index, weights=terms - mean) / (len(terms) - sizes)
    return Estimate(mean, float(np.sqrt((moved**2).sum() * (count - 1) / count)), count)
