"""ε-greedy: usually the candidate with the best predicted reward, sometimes a random one, less often as n grows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.choosing import draw_choice
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.policies.ridge import Ridge, explain_ridge
from tipbench.recommender.records import Request


@dataclass(frozen=True)
class Decay:
    """The exploration rate ε after n rewards: first/(1 + n/half_after), but at least `floor`."""

    first: float = 0.3
    half_after: float = 50.0
    floor: float = 0.05

    def after(self, n: int) -> float:
        return max(self.floor, self.first / (1 + n / self.half_after))


DECAY = Decay()


@dataclass(frozen=True)
class EGreedy:
    name: str
    features: Features
    ridge: float = 1.0
    decay: Decay = DECAY

    @property
    def parameters(self) -> Mapping[str, float | str]:
        return {"ridge": self.ridge, **{f"epsilon_{name}": value for name, value in vars(self.decay).items()}}

    def with_features(self, features: Features) -> "EGreedy":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def new_state(self) -> Ridge:
        return Ridge(self.features.dimensions, self.ridge)

    def load_state(self, data: Mapping[str, Any]) -> Ridge:
        return Ridge.from_data(data, self.features.dimensions, self.ridge)

    def epsilon(self, state: Ridge) -> float:
        return self.decay.after(state.n)

    def choose(self, state: Ridge, request: Request, generator: Generator, at_ms: int) -> Choice:  # noqa: ARG002
        features = self.features.matrix(request)
        return draw_choice(features @ state.theta, self.epsilon(state), features, generator)

    def show(self, state: Ridge, category: str, at_ms: int) -> None:
        """Nothing: its choices don't depend on what was shown."""

    def learn(self, state: Ridge, seen: Floats, reward: float, at_ms: int) -> None:  # noqa: ARG002
        state.learn(seen, reward)

    def explain(self, state: Ridge) -> dict[str, Any]:
        return explain_ridge(state, self.features)
