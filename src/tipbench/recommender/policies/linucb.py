"""LinUCB: the best that a candidate may be, given how little is known about such candidates.

Nothing is left to chance but ties, so most propensities are 0 or 1: what it serves can't be weighted afterwards, and
replay leaves its decisions out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.egreedy import explained
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.policies.ridge import Ridge, drawn
from tipbench.recommender.records import Request


@dataclass(frozen=True)
class LinUcb:
    name: str
    features: Features
    ridge: float = 1.0
    alpha: float = 1.0

    @property
    def parameters(self) -> Mapping[str, float]:
        return {"ridge": self.ridge, "alpha": self.alpha}

    def seeing(self, features: Features) -> "LinUcb":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def new_state(self) -> Ridge:
        return Ridge(self.features.dimensions, self.ridge)

    def state_of(self, data: Mapping[str, Any]) -> Ridge:
        return Ridge.of_data(data, self.features.dimensions, self.ridge)

    def epsilon(self, state: Ridge) -> float:  # noqa: ARG002
        return 0.0

    def choose(self, state: Ridge, request: Request, generator: Generator) -> Choice:
        features = self.features.matrix(request)
        unsure = np.sqrt(((features @ state.inverse) * features).sum(axis=1))
        return drawn(features @ state.theta + self.alpha * unsure, 0.0, features, generator)

    def learn(self, state: Ridge, seen: Floats, reward: float) -> None:
        state.learn(seen, reward)

    def explained(self, state: Ridge) -> dict[str, Any]:
        return explained(state, self.features)
