"""Who is compared."""

import numpy as np
import pytest

from tests.recommender.making import a_profile
from tests.recommender.making import a_request as a_score_request
from tests.recommender.simulation.worlds import a_world
from tipbench.core.errors import InvalidInput
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.simulation.rollout import ARM_NAMES, ARMS, FLAT, arm, placebo_of


def test_every_policy_can_be_simulated() -> None:
    assert set(POLICIES) <= set(ARMS) < set(ARM_NAMES)
    assert [arm(name, world=a_world()).name for name in ARM_NAMES] == list(ARM_NAMES)
    with pytest.raises(InvalidInput, match="no policy 'thompson' to simulate; there are egreedy, egreedy/v2, linucb"):
        arm("thompson")


def test_arms_that_one_service_may_serve_are_different_users() -> None:
    assert len({(one.policy.name, one.luck) for one in ARMS.values()}) == len(ARMS)
    assert FLAT.policy is POLICIES["egreedy/v2"]


def test_a_placebo_sees_the_same_numbers_for_the_wrong_tips() -> None:
    placebo = placebo_of(arm("egreedy/v2"), arm("egreedy"))
    assert placebo
    request = a_score_request(profile=a_profile())
    real, false = V2.matrix(request), placebo.policy.features.matrix(request)
    assert np.array_equal(real[:, :7], false[:, :7])
    assert not np.array_equal(real[:, 7:], false[:, 7:])
    assert sorted(map(tuple, real[:, 7:].tolist())) == sorted(map(tuple, false[:, 7:].tolist()))
    assert np.array_equal(false, placebo.policy.features.matrix(request))
    other = placebo.policy.features.matrix(a_score_request("e2", profile=a_profile()))
    assert not np.array_equal(false, other)
    assert placebo.policy.name != "egreedy/v2"


def test_who_sees_nothing_new_has_no_placebo() -> None:
    assert placebo_of(arm("linucb"), arm("egreedy")) is None
    assert placebo_of(arm("egreedy"), arm("egreedy/v2")) is None
