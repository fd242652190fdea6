"""What is a choice worth, whoever makes it? A ridge regression over all users, for the doubly robust estimate.

It sees version 2 of the features whatever the candidate sees: the most that can be made of a request, while the
baseline's single number stands for a name, which a regression can't use. What it expects of a user's decisions comes
from other users only (cross-fitting): from their own, it would know some of the luck that it is there to correct.
"""

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.replay.rounds import Round

FOLDS = 5
_RIDGE = 1.0


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
