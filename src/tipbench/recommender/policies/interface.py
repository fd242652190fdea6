"""The interface of a policy, and the choice it returns."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.records import Request


class Generator(Protocol):
    """A source of random numbers; numpy's generators and the standard library's both fit."""

    def random(self) -> float: ...


class Choice(NamedTuple):
    """The chosen candidate, and how likely each candidate was to be chosen."""

    position: int  # of the chosen one among the request's candidates
    scores: Floats  # the higher, the better; answers list the candidates in their order
    propensities: Floats  # exact, and they sum to 1. With 0 and 1 alone, replay can't use the decision
    epsilon: float  # the share of choices that was left to chance
    features: Floats  # one row per candidate; the policy learns from the chosen one's

    @property
    def seen(self) -> Floats:
        """The features of the chosen candidate."""
        chosen: Floats = self.features[self.position]
        return chosen

    @property
    def propensity(self) -> float:
        return float(self.propensities[self.position])


class State(Protocol):
    """What a policy has learned about one user."""

    n: int  # number of rewards learned
    reward_sum: float

    def as_data(self) -> dict[str, Any]:
        """Return the state as plain data that JSON can hold: `n`, `reward_sum` and sums, which two states can add."""
        ...


StateT = TypeVar("StateT", bound=State)


class Policy(Protocol[StateT]):
    """A policy is stateless: one instance serves all users, in any thread, with states that the caller holds."""

    @property
    def name(self) -> str: ...

    @property
    def features(self) -> Features: ...

    @property
    def parameters(self) -> Mapping[str, float | str]:
        """Everything that its choices depend on, except the features."""
        ...

    def with_features(self, features: Features) -> "Policy[StateT]":
        """Return the same policy on other features, under another name."""
        ...

    def new_state(self) -> StateT:
        """Return the state of a user whom nothing is known about."""
        ...

    def load_state(self, data: Mapping[str, Any]) -> StateT:
        """Load a state from what `as_data` returned; raise ValueError for anything else."""
        ...

    def choose(self, state: StateT, request: Request, generator: Generator, at_ms: int) -> Choice:
        """Choose a candidate; leave the state as it is. `at_ms` is the time at which the event was scored first.

        The choice may depend on nothing but the arguments: a request that is sent again is chosen for again, and has
        to get the same answer.
        """
        ...

    def show(self, state: StateT, category: str, at_ms: int) -> None:
        """Update the state with the category of what is shown, once for each event, before its reward is learned."""
        ...

    def learn(self, state: StateT, seen: Floats, reward: float, at_ms: int) -> None:
        """Update the state with a reward for a candidate that had these features, `Choice.seen`.

        `at_ms` is the time at which the event was scored, so that the order in which rewards arrive does not matter.
        """
        ...

    def epsilon(self, state: StateT) -> float:
        """Return the share of choices that are made at random."""
        ...

    def explain(self, state: StateT) -> dict[str, Any]:
        """Return what was learned, in a form for people."""
        ...
