"""Version 3 policies: the best by the posterior mean, plus some of its standard deviation, and sometimes any candidate.

With an ε floor every candidate has a chance, so its propensities are exact and its decisions can be replayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Features, Floats, matrix_of
from tipbench.recommender.features.v3 import DENSE, V3, fill_in
from tipbench.recommender.policies.choosing import draw_choice
from tipbench.recommender.policies.egreedy import Decay
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.policies.posterior import REMEMBERED, WeightedSums
from tipbench.recommender.prior.interface import FLAT, Prior
from tipbench.recommender.records import Request


@dataclass(frozen=True)
class Ucb:
    """`sds` posterior standard deviations are added to a candidate's expected reward."""

    name: str
    sds: float
    decay: Decay
    features: Features = V3
    prior: Prior = FLAT

    @property
    def parameters(self) -> Mapping[str, float | str]:
        decay = {f"epsilon_{name}": value for name, value in vars(self.decay).items()}
        prior: dict[str, float | str] = {"ridge": 1.0} if self.prior.digest is None else {"prior": self.prior.digest}
        return {"sds": self.sds, **decay, "remembered_6h": REMEMBERED, **prior}

    def with_features(self, features: Features) -> "Ucb":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def with_prior(self, prior: Prior) -> "Ucb":
        return replace(self, prior=prior)

    def new_state(self) -> WeightedSums:
        return WeightedSums()

    def load_state(self, data: Mapping[str, Any]) -> WeightedSums:
        return WeightedSums.from_data(data)

    def epsilon(self, state: WeightedSums) -> float:
        return self.decay.after(state.n)

    def choose(self, state: WeightedSums, request: Request, generator: Generator, at_ms: int) -> Choice:
        rows = self.features.rows(request)
        slots = fill_in(rows, request, state.shown, self.prior.tips, at_ms)
        features = matrix_of(rows)
        means, variances = state.posterior(self.prior, at_ms).rewards(features[:, :DENSE], slots)
        scores = means + np.sqrt(self.sds**2 * self.prior.noise * variances) if self.sds else means
        return draw_choice(scores, self.epsilon(state), features, generator)

    def show(self, state: WeightedSums, category: str, at_ms: int) -> None:
        state.shown.add(category, at_ms)

    def learn(self, state: WeightedSums, seen: Floats, reward: float, at_ms: int) -> None:
        state.learn(seen, reward, at_ms)

    def explain(self, state: WeightedSums) -> dict[str, Any]:
        """Return the coefficients as they are at the time of the latest event."""
        posterior = state.posterior(self.prior, state.at_ms)
        theta, intercepts = posterior.coefficients()
        by_category = {f"category {name or 'others'}": float(intercepts[slot]) for slot, name in state.shown.met()}
        return {
            "lambda": self.prior.intercept_precision,
            "theta": dict(zip(self.features.names, theta.tolist(), strict=False)) | by_category,
            "condition": posterior.condition(),
        }
