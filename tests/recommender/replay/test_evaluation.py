"""The candidate's own propensities, after its training, on the rest of the log."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.recommender.replay.logs import ANYTHING, log_of_chance, some_rounds
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.replay.evaluation import DR, IPS, SNIPS, Estimated, evaluate, first_part, train
from tipbench.recommender.replay.rounds import load_rounds

USERS = [0, 1, 0, 2, 1, 0, 0, 1, 3, 0]


@pytest.mark.parametrize("name", list(POLICIES))
def test_columns_are_what_the_frozen_candidate_would_have_done(name: str) -> None:
    rounds, candidate = some_rounds(USERS), POLICIES[name]
    found = evaluate(rounds, candidate, 0.5)
    learned = first_part(rounds, 0.5)
    known = train(rounds, candidate, learned)
    assert found.learned == learned.sum() == 3
    rest = list(rounds.read(~learned))
    for place, one in enumerate(rest):
        state: Any = known.states.at(one)
        choice = candidate.choose(state, one.request, EventRng("any", "chance", "will-do"), one.at_ms)
        expected = known.model.expected(one.user, known.model.features.matrix(one.request))
        assert found.columns.users[place] == one.user
        assert found.columns.rewards[place] == one.reward
        assert found.columns.logged[place] == one.propensity
        assert found.columns.target[place] == choice.propensities[one.chosen]
        assert found.columns.expected_logged[place] == expected[one.chosen]
        assert found.columns.expected_target[place] == pytest.approx(choice.propensities @ expected)


def test_rewards_of_the_rest_change_nothing_of_what_the_candidate_would_do() -> None:
    rounds = some_rounds(USERS)
    columns = evaluate(rounds, POLICIES["egreedy/v2"], 0.5).columns
    first = first_part(rounds, 0.5)
    one_by_one = list(rounds.read(np.ones(len(rounds), dtype=np.bool_)))
    changed = type(rounds)(
        rounds.users,
        rounds.decided_ms,
        lambda wanted: (
            one if first[one.row] else one._replace(reward=-one.reward) for one in one_by_one if wanted[one.row]
        ),
    )
    again = evaluate(changed, POLICIES["egreedy/v2"], 0.5).columns
    assert again.rewards.tolist() == (-columns.rewards).tolist()
    assert again.target.tolist() == columns.target.tolist()


def test_whoever_served_gains_nothing_over_themselves(tmp_path: Path) -> None:
    """Chance is asked about a log of chance: all weights are 1, and no estimator sees a difference."""
    log_of_chance(tmp_path, 12, 20)
    found = Estimated(evaluate(load_rounds(tmp_path), ANYTHING, 0.5).columns)
    assert found.weights.values.tolist() == pytest.approx([1.0] * 120)
    assert found.weights.effective_sample == pytest.approx(120)
    for name in (IPS, SNIPS):
        assert found.gains[name].value == pytest.approx(0, abs=1e-12)
        assert found.gains[name].error == pytest.approx(0, abs=1e-12)
        assert found.values[name] == pytest.approx(found.served)
    low, high = found.gains[DR].interval  # not 0: a model's errors on chosen and on others differ by chance
    assert low < 0 < high


def test_nothing_comes_of_nothing() -> None:
    found = evaluate(some_rounds([]), POLICIES["egreedy"], 0.5)
    assert (found.learned, len(found.columns.rewards)) == (0, 0)
