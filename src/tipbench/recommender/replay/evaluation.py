"""Train the candidate on the first part of the decisions, then evaluate it, frozen, on the rest.

It does not learn during the evaluation. It would learn from another policy's choices, so the estimate would describe a
policy that nobody can serve; frozen, every decision evaluates the same known policy. The policy that served did keep
learning, which puts the candidate at a disadvantage.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.replay.estimators import Estimate, Weights, doubly_robust, estimate, ips, snips, weights
from tipbench.recommender.replay.rounds import Round, Rounds, RowMask

FOLDS = 5
_RIDGE = 1.0


# The reward model of the doubly robust estimate: a ridge regression over all users.
#
# It uses version 2 of the features whatever the candidate uses: they extract the most from a request, whereas the
# baseline's single number encodes a name, which a regression can't use. Its predictions for a user are fitted on other
# users only (cross-fitting): fitted on their own decisions, it would already know some of the noise that it is there to
# correct.


class RewardModel:
    features = V2

    def __init__(self) -> None:
        self._folds = [Ridge(V2.dimensions, _RIDGE) for _ in range(FOLDS)]
        self._thetas: list[Floats] = []

    def learn(self, one: Round) -> Floats:
        """Learn from a round; return the features of all its candidates, for reuse."""
        features = self.features.matrix(one.request)
        self._folds[one.user % FOLDS].learn(features[one.chosen], one.reward)
        self._thetas = []
        return features

    def expected(self, user: int, features: Floats) -> Floats:
        """Return the expected reward of each row of features, fitted without this user's fold."""
        if not self._thetas:
            self._thetas = [self._fit_without(fold) for fold in range(FOLDS)]
        rewards: Floats = features @ self._thetas[user % FOLDS]
        return rewards

    def _fit_without(self, left_out: int) -> Floats:
        others = [sums for fold, sums in enumerate(self._folds) if fold != left_out]
        xx = np.sum([sums.xx for sums in others], axis=0) + _RIDGE * np.eye(V2.dimensions)
        theta: Floats = np.linalg.solve(xx, np.sum([sums.xr for sums in others], axis=0))
        return theta


# Training: the candidate learns from the first part of every user's decisions, although another policy chose.


@dataclass(frozen=True)
class Trained:
    """The candidate's state for each user after training, and the reward model."""

    states: Mapping[int, State]
    model: RewardModel


def first_part(rounds: Rounds, share: float) -> RowMask:
    """Return a mask of the rounds to train on: the earliest `share` of each user's rounds, rounded down."""
    order = np.lexsort((rounds.decided_ms, rounds.users))
    _, user_index, sizes = np.unique(rounds.users[order], return_inverse=True, return_counts=True)
    rank = np.arange(len(order)) - (np.cumsum(sizes) - sizes)[user_index]
    first = np.zeros(len(order), dtype=np.bool_)
    first[order] = rank < np.floor(share * sizes)[user_index]
    return first


def train(rounds: Rounds, candidate: Policy[Any], learned: NDArray[np.bool_]) -> Trained:
    """Train the candidate on the masked rounds, and the reward model on all.

    The order of rewards does not matter, as states are sums.
    """
    states: dict[int, State] = {}
    model = RewardModel()
    for one in rounds.read(np.ones(len(rounds), dtype=np.bool_)):
        features = model.learn(one)
        if not learned[one.row]:
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
    """One value for each decision that the candidate is evaluated on."""

    users: NDArray[np.intp]
    rewards: Floats
    logged: Floats  # propensity of the logged choice under the policy that made it
    target: Floats  # the same under the candidate
    expected_logged: Floats  # the model's expected reward of the logged choice
    expected_target: Floats  # the same, averaged over the candidate's choices


class Estimated:
    """The candidate's estimated reward per decision, and its gain over what was served, by each estimator."""

    def __init__(self, columns: Columns) -> None:
        self.weights: Weights = weights(columns.logged, columns.target)
        terms = {
            IPS: ips(columns.rewards, self.weights),
            SNIPS: snips(columns.rewards, self.weights),
            DR: doubly_robust(columns.rewards, self.weights, columns.expected_logged, columns.expected_target),
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
    with_profile: int  # evaluated decisions whose request has a profile by category


def evaluate(rounds: Rounds, candidate: Policy[Any], share: float) -> Evaluation:
    """Train on the first `share` of each user's decisions, and evaluate on the rest."""
    learned = first_part(rounds, share)
    columns, with_profile = _columns(rounds, candidate, train(rounds, candidate, learned), ~learned)
    return Evaluation(rounds, int(learned.sum()), columns, with_profile)


def _columns(rounds: Rounds, candidate: Policy[Any], known: Trained, rest: NDArray[np.bool_]) -> tuple[Columns, int]:
    """Return the columns, and how many of the decisions came with a profile by category."""
    found = np.empty((5, len(rounds)))
    nothing_known = candidate.new_state()
    with_profile = 0
    for one in rounds.read(rest):
        profile = one.request.profile_features
        with_profile += profile is not None and bool(profile.categories)
        state = known.states.get(one.user, nothing_known)
        generator = EventRng(candidate.name, one.request.user_id, one.request.event_id)
        choice = candidate.choose(state, one.request, generator)
        same = candidate.features is known.model.features
        seen = choice.features if same else known.model.features.matrix(one.request)
        expected = known.model.expected(one.user, seen)
        target = float(choice.propensities[one.chosen])
        expected_target = float(choice.propensities @ expected)
        found[:, one.row] = one.reward, one.propensity, target, float(expected[one.chosen]), expected_target
    return Columns(rounds.users[rest], *found[:, rest]), with_profile
