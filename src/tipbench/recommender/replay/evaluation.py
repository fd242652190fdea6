"""The candidate, as it is after the first part, is put to the decisions of the rest.

It learns no more there. What it would go on to learn from are the choices of another policy, so that what comes out
would belong to no policy that anybody can serve; frozen, every decision is a clean question to one known policy. The
policy that was there did go on learning, which is to the candidate's disadvantage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.policies.ridge import EventRng, Ridge
from tipbench.recommender.replay.estimators import Estimate, Weights, doubly_robust, estimate, ips, snips, weights
from tipbench.recommender.replay.rounds import Round, Rounds, Wanted

FOLDS = 5
_RIDGE = 1.0


# What is a choice worth, whoever makes it? A ridge regression over all users, for the doubly robust estimate.
#
# It sees version 2 of the features whatever the candidate sees: the most that can be made of a request, while the
# baseline's single number stands for a name, which a regression can't use. What it expects of a user's decisions
# comes from other users only (cross-fitting): from their own, it would know some of the luck that it is there to
# correct.


class RewardModel:
    features = V2

    def __init__(self) -> None:
        self._folds = [Ridge(V2.dimensions, _RIDGE) for _ in range(FOLDS)]
        self._thetas: list[Floats] = []

    def learn(self, one: Round) -> Floats:
        """The features of all candidates, which were made for it."""
        features = self.features.matrix(one.request)
        self._folds[one.user % FOLDS].learn(features[one.chosen], one.reward)
        self._thetas = []
        return features

    def expected(self, user: int, features: Floats) -> Floats:
        """Of each candidate's features: the reward, by what others did."""
        if not self._thetas:
            self._thetas = [self._of_others(fold) for fold in range(FOLDS)]
        rewards: Floats = features @ self._thetas[user % FOLDS]
        return rewards

    def _of_others(self, left_out: int) -> Floats:
        others = [sums for fold, sums in enumerate(self._folds) if fold != left_out]
        xx = np.sum([sums.xx for sums in others], axis=0) + _RIDGE * np.eye(V2.dimensions)
        theta: Floats = np.linalg.solve(xx, np.sum([sums.xr for sums in others], axis=0))
        return theta


# The candidate learns from the first part of every user's decisions, as if it had been there and others had chosen.


@dataclass(frozen=True)
class Trained:
    """What the candidate knows about each user by then, and what rewards are like in general."""

    states: Mapping[int, State]
    model: RewardModel


def first_part(rounds: Rounds, share: float) -> Wanted:
    """Which rounds are learned from: so large a share of each user's, the earliest ones, rounded down."""
    order = np.lexsort((rounds.decided_ms, rounds.users))
    _, place, sizes = np.unique(rounds.users[order], return_inverse=True, return_counts=True)
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[place]
    first = np.zeros(len(order), dtype=np.bool_)
    first[order] = rank < np.floor(share * sizes)[place]
    return first


def trained(rounds: Rounds, candidate: Policy[Any], learned: NDArray[np.bool_]) -> Trained:
    """The order of rewards makes no difference to what is learned: states are sums."""
    states: dict[int, State] = {}
    model = RewardModel()
    for one in rounds.read(np.ones(len(rounds), dtype=np.bool_)):
        features = model.learn(one)
        if not learned[one.place]:
            continue
        state = states.get(one.user)
        if state is None:
            state = states[one.user] = candidate.new_state()
        if candidate.features is not model.features:
            features = candidate.features.matrix(one.request)
        candidate.learn(state, features[one.chosen], one.reward)
    return Trained(states, model)


IPS, SNIPS, DR = "IPS", "SNIPS", "DR"


@dataclass(frozen=True)
class Columns:
    """A value for each decision that the candidate is evaluated on."""

    users: NDArray[np.intp]
    rewards: Floats
    logged: Floats  # propensity of the logged choice, to the policy that made it
    asked: Floats  # the same to the candidate
    expected_of_choice: Floats
    expected_of_asked: Floats


class Estimated:
    """What the candidate would have earned a decision, and how much more than what was served, by each estimator."""

    def __init__(self, columns: Columns) -> None:
        self.weights: Weights = weights(columns.logged, columns.asked)
        terms = {
            IPS: ips(columns.rewards, self.weights),
            SNIPS: snips(columns.rewards, self.weights),
            DR: doubly_robust(columns.rewards, self.weights, columns.expected_of_choice, columns.expected_of_asked),
        }
        self.served: Estimate = estimate(columns.rewards, columns.users)
        self.values: Mapping[str, Estimate] = {name: estimate(of, columns.users) for name, of in terms.items()}
        self.gains: Mapping[str, Estimate] = {
            name: estimate(of - columns.rewards, columns.users) for name, of in terms.items()
        }


@dataclass(frozen=True)
class Evaluation:
    rounds: Rounds
    learned: int  # decisions that the candidate was trained on
    columns: Columns
    told: int  # evaluated decisions whose request says what the user did with some category


def evaluated(rounds: Rounds, candidate: Policy[Any], share: float) -> Evaluation:
    """`share` is the part of each user's decisions that the candidate learns from."""
    learned = first_part(rounds, share)
    columns, told = _columns(rounds, candidate, trained(rounds, candidate, learned), ~learned)
    return Evaluation(rounds, int(learned.sum()), columns, told)


def _columns(rounds: Rounds, candidate: Policy[Any], known: Trained, rest: NDArray[np.bool_]) -> tuple[Columns, int]:
    """And how many of the decisions came with a profile by category."""
    found = np.empty((5, len(rounds)))
    nothing_known = candidate.new_state()
    told = 0
    for one in rounds.read(rest):
        profile = one.request.profile_features
        told += profile is not None and bool(profile.categories)
        state = known.states.get(one.user, nothing_known)
        generator = EventRng(candidate.name, one.request.user_id, one.request.event_id)
        choice = candidate.choose(state, one.request, generator)
        same = candidate.features is known.model.features
        seen = choice.features if same else known.model.features.matrix(one.request)
        expected = known.model.expected(one.user, seen)
        asked = float(choice.propensities[one.chosen])
        of_asked = float(choice.propensities @ expected)
        found[:, one.place] = one.reward, one.propensity, asked, float(expected[one.chosen]), of_asked
    return Columns(rounds.users[rest], *found[:, rest]), told
