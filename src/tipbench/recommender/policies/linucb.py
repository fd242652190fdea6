"""LinUCB: choose the candidate with the highest upper confidence bound.

Only ties are broken at random, so most propensities are 0 or 1: its decisions can't be reweighted afterwards, and
replay leaves them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.choosing import draw_choice
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.policies.ridge import Ridge, explain_ridge
from tipbench.recommender.records import Request


@dataclass(frozen=True)
class LinUcb:
    name: str
    features: Features
    ridge: float = 1.0
    alpha: float = 1.0

    @property
    def parameters(self) -> Mapping[str, float | str]:
        return {"ridge": self.ridge, "alpha": self.alpha}

    def with_features(self, features: Features) -> "LinUcb":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def new_state(self) -> Ridge:
        return Ridge(self.features.dimensions, self.ridge)

    def load_state(self, data: Mapping[str, Any]) -> Ridge:
        return Ridge.from_data(data, self.features.dimensions, self.ridge)

    def epsilon(self, state: Ridge) -> float:  # noqa: ARG002
        return 0.0

    def choose(self, state: Ridge, request: Request, generator: Generator, at_ms: int) -> Choice:  # noqa: ARG002
        features = self.features.matrix(request)
        uncertainty = np.sqrt(((features @ state.inverse) * features).sum(axis=1))
        return draw_choice(features @ state.theta + self.alpha * uncertainty, 0.0, features, generator)

    def show(self, state: Ridge, category: str, at_ms: int) -> None:
        """Nothing: its choices don't depend on what was shown."""

    def learn(self, state: Ridge, seen: Floats, reward: float, at_ms: int) -> None:  # noqa: ARG002
        state.learn(seen, reward)

    def explain(self, state: Ridge) -> dict[str, Any]:
        return explain_ridge(state, self.features)
