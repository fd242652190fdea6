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
from tipbench.recommender.policies.interface import Choice, Policy, State
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.replay.estimators import Estimate, Weights, doubly_robust, estimate, ips, snips, weights
from tipbench.recommender.replay.rounds import Impressions, Round, Rounds, RowMask

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


class StatesInTime:
    """The candidate's state for each user, told of everything that the user was shown up to the round in hand.

    What was shown is a fact of the situation, whoever chose it, so it also reaches a candidate that no longer learns.
    """

    def __init__(self, candidate: Policy[Any], impressions: Impressions) -> None:
        self._candidate = candidate
        self._impressions = impressions
        self.by_user: dict[int, State] = {}
        self._next: dict[int, int] = {}  # by user: the first impression that the state was not told of

    def at(self, one: Round) -> State:
        """Return the state of a round's user at its time. Rounds of one user have to come in the order of time."""
        state = self.by_user.get(one.user)
        if state is None:
            state = self.by_user[one.user] = self._candidate.new_state()
            self._next[one.user] = int(np.searchsorted(self._impressions.users, one.user))
        users, at_ms, categories = self._impressions
        place = self._next[one.user]
        while place < len(users) and users[place] == one.user and at_ms[place] <= one.at_ms:
            self._candidate.show(state, categories[place], int(at_ms[place]))
            place += 1
        self._next[one.user] = place
        return state


@dataclass(frozen=True)
class Trained:
    """The candidate's state for each user after training, and the reward model."""

    states: StatesInTime
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
    """Train the candidate on the masked rounds, and the reward model on all."""
    states = StatesInTime(candidate, rounds.impressions)
    model = RewardModel()
    for one in rounds.read(np.ones(len(rounds), dtype=np.bool_)):
        features = model.learn(one)
        if not learned[one.row]:
            continue
        state = states.at(one)
        if candidate.features is not model.features:
            features = _choice(candidate, state, one).features
        candidate.learn(state, features[one.chosen], one.reward, one.at_ms)
    return Trained(states, model)


def _choice(candidate: Policy[Any], state: State, one: Round) -> Choice:
    generator = EventRng(candidate.name, one.request.user_id, one.request.event_id)
    return candidate.choose(state, one.request, generator, one.at_ms)


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
    fitted: int = 0  # decisions that were not evaluated, because the candidate's prior was fitted to them


def evaluate(rounds: Rounds, candidate: Policy[Any], share: float, fitted_until_ms: int = -1) -> Evaluation:
    """Train on the first `share` of each user's decisions, and evaluate on the rest.

    Decisions up to `fitted_until_ms` are not evaluated: the candidate's prior knows their rewards.
    """
    learned = first_part(rounds, share)
    fitted = ~learned & (rounds.decided_ms <= fitted_until_ms)
    rest = ~learned & ~fitted
    columns, with_profile = _columns(rounds, candidate, train(rounds, candidate, learned), rest)
    return Evaluation(rounds, int(learned.sum()), columns, with_profile, int(fitted.sum()))


def _columns(rounds: Rounds, candidate: Policy[Any], known: Trained, rest: NDArray[np.bool_]) -> tuple[Columns, int]:
    """Return the columns, and how many of the decisions came with a profile by category."""
    found = np.empty((5, len(rounds)))
    with_profile = 0
    for one in rounds.read(rest):
        profile = one.request.profile_features
        with_profile += profile is not None and bool(profile.categories)
        choice = _choice(candidate, known.states.at(one), one)
        same = candidate.features is known.model.features
        seen = choice.features if same else known.model.features.matrix(one.request)
        expected = known.model.expected(one.user, seen)
        target = float(choice.propensities[one.chosen])
        expected_target = float(choice.propensities @ expected)
        found[:, one.row] = one.reward, one.propensity, target, float(expected[one.chosen]), expected_target
    return Columns(rounds.users[rest], *found[:, rest]), with_profile
