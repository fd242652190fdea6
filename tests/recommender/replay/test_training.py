"""The candidate learns from the first part of each user's decisions, and from nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recommender.replay.logs import some_rounds
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.replay.evaluation import first_part, train

USERS = st.lists(st.integers(0, 4), max_size=30)


@given(USERS, st.floats(0.01, 0.99))
def test_the_earliest_of_each_user(users: list[int], share: float) -> None:
    first = first_part(some_rounds(users), share)
    for user in set(users):
        own = [bool(first[place]) for place, other in enumerate(users) if other == user]
        learned = int(share * len(own))
        assert own == [True] * learned + [False] * (len(own) - learned)


def test_time_decides_and_not_the_order_in_the_log() -> None:
    rounds = some_rounds([0, 1, 0, 1])
    backwards = replace(rounds, decided_ms=np.array([4, 3, 2, 1]))
    assert first_part(rounds, 0.5).tolist() == [True, True, False, False]
    assert first_part(backwards, 0.5).tolist() == [False, False, True, True]


@pytest.mark.parametrize("name", list(POLICIES))
def test_states_are_those_of_a_policy_that_was_there(name: str) -> None:
    policy, users = POLICIES[name], [0, 1, 1, 0, 2, 0, 1, 0]
    rounds = some_rounds(users)
    learned = np.array([True, True, False, True, False, False, False, True])
    known = train(rounds, policy, learned)
    assert set(known.states.by_user) == {0, 1}
    for user, state in known.states.by_user.items():
        there = policy.new_state()
        last = max(row for row in np.flatnonzero(learned) if users[row] == user)
        for one in rounds.read((np.array(users) == user) & (np.arange(len(users)) <= last)):
            seen = policy.choose(there, one.request, EventRng("any", "chance", "will-do"), one.at_ms).features
            policy.show(there, one.request.candidates[one.chosen].category, one.at_ms)
            if learned[one.row]:
                policy.learn(there, seen[one.chosen], one.reward, one.at_ms)
        assert state.as_data() == there.as_data()
