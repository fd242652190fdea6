"""Mean reward per category, shrunk towards 0: the baseline that any policy with more features has to beat."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import CATEGORY, Features, Floats
from tipbench.recommender.policies.choosing import draw_choice, read_counts
from tipbench.recommender.policies.egreedy import DECAY, Decay
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.records import Request


@dataclass
class Means:
    """Reward sums and counts, keyed by `category_number`."""

    n: int = 0
    reward_sum: float = 0.0
    sums: dict[float, tuple[float, int]] = field(default_factory=dict)

    def as_data(self) -> dict[str, Any]:
        rows = [[category, total, count] for category, (total, count) in sorted(self.sums.items())]
        return {"n": self.n, "reward_sum": self.reward_sum, "sums": rows}


@dataclass(frozen=True)
class CategoryMean:
    name: str = "category-mean"
    features: Features = CATEGORY
    ridge: float = 1.0
    decay: Decay = DECAY

    @property
    def parameters(self) -> Mapping[str, float | str]:
        return {"ridge": self.ridge, **{f"epsilon_{name}": value for name, value in vars(self.decay).items()}}

    def with_features(self, features: Features) -> "CategoryMean":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def new_state(self) -> Means:
        return Means()

    def load_state(self, data: Mapping[str, Any]) -> Means:
        n, total = read_counts(data)
        try:
            sums = {float(category): (float(reward), int(count)) for category, reward, count in data["sums"]}
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError("sums is not a list of categories") from error
        return Means(n, total, sums)

    def epsilon(self, state: Means) -> float:
        return self.decay.after(state.n)

    def choose(self, state: Means, request: Request, generator: Generator, at_ms: int) -> Choice:  # noqa: ARG002
        features = self.features.matrix(request)
        scores = np.array([self._mean(state, category) for category in features[:, 0].tolist()])
        return draw_choice(scores, self.epsilon(state), features, generator)

    def show(self, state: Means, category: str, at_ms: int) -> None:
        """Nothing: its choices don't depend on what was shown."""

    def learn(self, state: Means, seen: Floats, reward: float, at_ms: int) -> None:  # noqa: ARG002
        total, count = state.sums.get(float(seen[0]), (0.0, 0))
        state.sums[float(seen[0])] = (total + reward, count + 1)
        state.n += 1
        state.reward_sum += reward

    def explain(self, state: Means) -> dict[str, Any]:
        return {"lambda": self.ridge, "categories": len(state.sums)}

    def _mean(self, state: Means, category: float) -> float:
        total, count = state.sums.get(category, (0.0, 0))
        return total / (count + self.ridge)
