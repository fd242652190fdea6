"""The candidate learns from the first part of every user's decisions, as if it had been there and others had chosen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.replay.reward_model import RewardModel
from tipbench.recommender.replay.rounds import Rounds, Wanted


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
