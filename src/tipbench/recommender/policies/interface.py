"""What a policy is, and what it decides."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.records import Request


class Generator(Protocol):
    """Where chance comes from: numpy's generators and the standard library's both will do."""

    def random(self) -> float: ...


class Choice(NamedTuple):
    """One of the candidates, and how likely each of them was to be chosen."""

    place: int  # among the candidates
    scores: Floats
    propensities: Floats
    epsilon: float
    features: Floats  # a row a candidate; the chosen one's is what the policy learns from

    @property
    def seen(self) -> Floats:
        chosen: Floats = self.features[self.place]
        return chosen

    @property
    def propensity(self) -> float:
        return float(self.propensities[self.place])


class State(Protocol):
    """What a policy has learned about one user."""

    n: int  # rewards learned
    reward_sum: float

    def as_data(self) -> dict[str, Any]:
        """Plain data, of sums: those of two states can be added."""
        ...


StateT = TypeVar("StateT", bound=State)


class Policy(Protocol[StateT]):
    """Holds no user's state, and none of its own: one policy serves everybody, in any thread."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> Features: ...

    @property
    def parameters(self) -> Mapping[str, float]:
        """Everything but the features that its choices depend on."""
        ...

    def seeing(self, features: Features) -> "Policy[StateT]":
        """The same policy on other features, under a name of its own."""
        ...

    def new_state(self) -> StateT: ...

    def state_of(self, data: Mapping[str, Any]) -> StateT:
        """What `as_data` gave; raises ValueError for anything else."""
        ...

    def choose(self, state: StateT, request: Request, generator: Generator) -> Choice: ...

    def learn(self, state: StateT, seen: Floats, reward: float) -> None: ...

    def epsilon(self, state: StateT) -> float:
        """The share of choices that are left to chance."""
        ...

    def explained(self, state: StateT) -> dict[str, Any]:
        """What it has learned, for people."""
        ...
