"""What the model expects of a user comes from other users, and is ridge regression."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from tests.recommender.replay.logs import some_rounds
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.replay.evaluation import FOLDS, RewardModel
from tipbench.recommender.replay.rounds import Round

USERS = [number % 12 for number in range(150)]


def learned(rounds: list[Round]) -> RewardModel:
    model = RewardModel()
    for one in rounds:
        model.learn(one)
    return model


@pytest.fixture(scope="module")
def rounds() -> list[Round]:
    return list(some_rounds(USERS).read(np.ones(len(USERS), dtype=np.bool_)))


@pytest.mark.parametrize("user", [0, 3, 7, 11])
def test_it_is_ridge_regression_over_the_other_folds(rounds: list[Round], user: int) -> None:
    others = [one for one in rounds if one.user % FOLDS != user % FOLDS]
    regression = Ridge(alpha=1.0, fit_intercept=False)
    regression.fit([V2.rows(one.request)[one.chosen] for one in others], [one.reward for one in others])
    features = V2.matrix(rounds[0].request)
    found = learned(rounds).expected(user, features)
    assert found.tolist() == pytest.approx(regression.predict(features).tolist(), abs=1e-9)


def test_a_users_own_luck_changes_nothing_of_what_is_expected_of_them(rounds: list[Round]) -> None:
    features = V2.matrix(rounds[0].request)
    lucky = [one._replace(reward=1.0) if one.user == 4 else one for one in rounds]
    before, after = learned(rounds), learned(lucky)
    assert after.expected(4, features).tolist() == before.expected(4, features).tolist()
    assert after.expected(5, features).tolist() != before.expected(5, features).tolist()


def test_what_it_learns_later_counts(rounds: list[Round]) -> None:
    features = V2.matrix(rounds[0].request)
    model = learned(rounds[:100])
    model.expected(0, features)
    for one in rounds[100:]:
        model.learn(one)
    assert model.expected(0, features).tolist() == learned(rounds).expected(0, features).tolist()


def test_nothing_is_expected_by_one_that_has_seen_nothing(rounds: list[Round]) -> None:
    assert RewardModel().expected(0, V2.matrix(rounds[0].request)).tolist() == [0.0] * 10
