"""Fit a population prior to users' sums: expectation-maximisation with a weak hyperprior (MAP-EM).

Users' dense coefficients are N(μ, Σ), their intercepts N(0, τ²) with one variance for all categories and independent of
everything else: categories are exchangeable, so the prior holds for categories that it never saw. The hyperprior counts
as some users who are what λ = 1 assumes, so that no users give exactly that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v3 import DENSE
from tipbench.recommender.policies.posterior import WeightedSums, remembered

_ASSUMED = 5.0  # users, or intercepts, that the hyperprior counts as
_ROUNDS = 200
_TOLERANCE = 1e-5


@dataclass
class UserSums:
    """One user's sums, and the sum of squared rewards with the same weights."""

    sums: WeightedSums
    squares: float = 0.0

    def learn(self, seen: Floats, reward: float, at_ms: int) -> None:
        """Learn a reward; those of one user have to come in the order of their events."""
        self.squares = self.squares * remembered(at_ms - self.sums.at_ms) + reward**2
        self.sums.learn(seen, reward, at_ms)


class Fitted(NamedTuple):
    mean: Floats
    precision: Floats  # in units of the noise: noise · Σ⁻¹
    intercept_precision: float
    noise: float


def fit_users(users: Sequence[UserSums]) -> Fitted:
    """Return the prior that explains these users best; λ = 1 if there are none."""
    fitted = Fitted(np.zeros(DENSE), np.eye(DENSE), 1.0, 1.0)
    if not users:
        return fitted
    data = _Columns(users)
    fitted = fitted._replace(noise=max(1e-6, float(data.squares.sum() / data.weights.sum())))
    for _ in range(_ROUNDS):
        before, fitted = fitted, data.improved(fitted)
        if _distance(before, fitted) < _TOLERANCE:
            break
    return fitted


class _Columns:
    """The sums of all users as arrays, whose first axis is the user."""

    def __init__(self, users: Sequence[UserSums]) -> None:
        sums = np.array([user.sums.sums for user in users])
        slots = sums[:, DENSE:]
        slots = slots[:, slots[:, :, 0].any(axis=0)]  # those that anybody has met
        self.xx, self.xr = sums[:, :DENSE, :DENSE], sums[:, :DENSE, DENSE]
        self.crossed, self.weights, self.rewards = slots[:, :, :DENSE], slots[:, :, 0], slots[:, :, DENSE]
        self.squares = np.array([user.squares for user in users])
        self.met = self.weights > 0

    def improved(self, prior: Fitted) -> Fitted:
        """Return the prior after one round: the users' posteriors under it, and the prior that fits them."""
        precision = self.weights + prior.intercept_precision
        shift = self.crossed / precision[:, :, None]
        covariance = np.linalg.inv(self.xx + prior.precision - np.swapaxes(self.crossed, 1, 2) @ shift)
        pulled = self.xr + prior.precision @ prior.mean - (self.rewards[:, None] @ shift)[:, 0]
        theta = (covariance @ pulled[:, :, None])[:, :, 0]
        intercepts = (self.rewards - (self.crossed @ theta[:, :, None])[:, :, 0]) / precision
        along = shift @ covariance  # minus the covariance of intercepts and dense coefficients
        intercept_squares = prior.noise * (1 / precision + (along * shift).sum(axis=2)) + intercepts**2

        users, assumed = len(self.squares), _ASSUMED
        mean = theta.sum(axis=0) / (users + assumed)
        apart = theta - mean
        spread = prior.noise * covariance.sum(axis=0) + apart.T @ apart + assumed * np.outer(mean, mean)
        spread = (spread + assumed * prior.noise * np.eye(DENSE)) / (users + assumed)
        variance = (intercept_squares[self.met].sum() + assumed * prior.noise) / (self.met.sum() + assumed)

        explained = (theta * self.xr).sum() + (intercepts * self.rewards).sum()
        second = prior.noise * covariance + theta[:, :, None] * theta[:, None]
        both = theta[:, None] * intercepts[:, :, None] - prior.noise * along
        fitted_squares = (
            (self.xx * second).sum() + 2 * (self.crossed * both).sum() + (self.weights * intercept_squares).sum()
        )
        noise = float((self.squares.sum() - 2 * explained + fitted_squares) / self.weights.sum())
        noise = max(1e-6, noise)
        return Fitted(mean, noise * np.linalg.inv(spread), float(noise / variance), noise)


def _distance(one: Fitted, other: Fitted) -> float:
    """Return the largest relative change of a coefficient's mean or variance, in standard deviations."""
    deviations = np.sqrt(other.noise * np.diag(np.linalg.inv(other.precision)))
    before = np.sqrt(one.noise * np.diag(np.linalg.inv(one.precision)))
    return float(
        max(
            np.abs((one.mean - other.mean) / deviations).max(),
            np.abs(before / deviations - 1).max(),
            abs(one.intercept_precision / other.intercept_precision - 1),
            abs(one.noise / other.noise - 1),
        )
    )
