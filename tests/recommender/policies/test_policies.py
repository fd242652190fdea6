"""What all policies have in common, and what each is for."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from tests.recommender.making import a_profile, a_request, candidates
from tipbench.recommender.features.interface import category_number
from tipbench.recommender.policies.catalog import POLICIES, SERVED, takes_prior
from tipbench.recommender.policies.category_mean import CategoryMean
from tipbench.recommender.policies.egreedy import Decay
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.records import Request
from tipbench.recommender.shadows.runner import SHADOWS

HOUR_MS = 3_600_000
NOW_MS = 300 * HOUR_MS
every_policy = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES.keys())


def taught(policy: Policy[Any], count: int = 60) -> State:
    """Rewards that depend on what was shown, so that there is something to learn."""
    state: State = policy.new_state()
    generator = np.random.default_rng(4)
    for number in range(count):
        request = a_request(hour=number % 24, profile=a_profile())
        choice = policy.choose(state, request, generator, number * HOUR_MS)
        policy.show(state, request.candidates[choice.position].category, number * HOUR_MS)
        liked = request.candidates[choice.position].category == "rest"
        policy.learn(state, choice.seen, 1.0 if liked else -0.5, number * HOUR_MS)
    return state


def test_the_contracts_policies() -> None:
    versions = {name: policy.features.version for name, policy in SERVED.items()}
    assert {"egreedy": "v1", "egreedy/v2": "v2", "linucb": "v1"}.items() <= versions.items()
    assert "category-mean" in set(POLICIES) - set(SERVED)
    assert all(policy.name == name for name, policy in POLICIES.items())


def test_no_name_ends_in_another() -> None:
    """The names of files are <user>_<policy>: two users must never share one."""
    names = [f"_{name.replace('/', '_')}" for name in (*POLICIES, *SHADOWS)]
    assert [(a, b) for a in names for b in names if a != b and a.endswith(b)] == []


@every_policy
@pytest.mark.parametrize("count", [1, 2, 20, 200])
def test_propensities_of_every_candidate_sum_to_one(policy: Policy[Any], count: int) -> None:
    request = a_request(of=candidates(count), profile=a_profile())
    for state in (policy.new_state(), taught(policy)):
        choice = policy.choose(state, request, np.random.default_rng(0), NOW_MS)
        assert choice.propensities.shape == choice.scores.shape == (count,)
        assert choice.propensities.sum() == pytest.approx(1, abs=1e-12)
        assert choice.propensity == choice.propensities[choice.position] > 0
        if not takes_prior(policy):  # those fill in what a request does not tell
            np.testing.assert_array_equal(choice.features, policy.features.matrix(request))
        np.testing.assert_array_equal(choice.seen, choice.features[choice.position])


@every_policy
def test_choices_are_as_frequent_as_they_are_likely(policy: Policy[Any]) -> None:
    request, state, generator = a_request(profile=a_profile()), taught(policy), np.random.default_rng(7)
    choices = [policy.choose(state, request, generator, NOW_MS) for _ in range(3000)]
    likely = choices[0].propensities
    counts = np.bincount([choice.position for choice in choices], minlength=len(likely))
    assert counts[likely == 0].sum() == 0
    if np.count_nonzero(likely) > 1:
        assert chisquare(counts[likely > 0], likely[likely > 0] * 3000).pvalue > 0.001


@every_policy
def test_somebody_new_gets_anything(policy: Policy[Any]) -> None:
    request = a_request(of=candidates(1))
    assert policy.choose(policy.new_state(), request, np.random.default_rng(0), NOW_MS).propensity == 1.0
    if policy.epsilon(policy.new_state()) > 0 and policy.name != "ucb/v3":  # which tries what it knows least about
        choice = policy.choose(policy.new_state(), a_request(), np.random.default_rng(0), NOW_MS)
        assert choice.propensities.tolist() == pytest.approx([0.1] * 10)


@every_policy
def test_a_state_survives_being_stored(policy: Policy[Any]) -> None:
    state = taught(policy)
    again = policy.load_state(state.as_data())
    request = a_request(profile=a_profile())
    one, other = (policy.choose(each, request, np.random.default_rng(1), NOW_MS) for each in (state, again))
    np.testing.assert_allclose(one.scores, other.scores, atol=1e-12)
    assert again.as_data() == state.as_data()
    assert policy.explain(again).keys() == policy.explain(state).keys()


@every_policy
@pytest.mark.parametrize("data", [{}, {"n": 1}, {"n": -1, "reward_sum": 0.0}, {"n": 0, "reward_sum": "1"}])
def test_a_state_that_is_none_is_refused(policy: Policy[Any], data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"n is|reward_sum"):
        policy.load_state(data)


@pytest.mark.parametrize("name", ["egreedy", "egreedy/v2", "linucb", "category-mean"])
@pytest.mark.parametrize("data", [{"n": 1, "reward_sum": 0.0}, {"n": 0, "reward_sum": 0.0, "sums": [1]}])
def test_a_state_without_its_sums_is_refused(name: str, data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"xx|sums"):
        POLICIES[name].load_state(data)


@pytest.mark.parametrize("name", ["egreedy/v2", "category-mean"])
def test_what_is_liked_is_learned(name: str) -> None:
    policy = POLICIES[name]
    request: Request = a_request(hour=5.0, profile=a_profile())
    best = policy.choose(taught(policy, 300), request, np.random.default_rng(0), NOW_MS).scores.argmax()
    assert request.candidates[best].category == "rest"


def test_less_is_left_to_chance_the_more_is_known() -> None:
    decay = Decay()
    assert decay.after(0) == 0.3
    assert decay.after(50) == 0.15
    assert decay.after(250) == pytest.approx(0.05)
    assert decay.after(10**9) == 0.05
    policy = POLICIES["egreedy"]
    assert policy.epsilon(taught(policy, 50)) == 0.15
    assert POLICIES["linucb"].epsilon(taught(POLICIES["linucb"])) == 0.0


def test_linucb_adds_what_it_does_not_know() -> None:
    policy = POLICIES["linucb"]
    state = taught(policy)
    request = a_request()
    choice = policy.choose(state, request, np.random.default_rng(0), NOW_MS)
    x = policy.features.matrix(request)
    expected = [row @ state.theta + 1.0 * np.sqrt(row @ state.inverse @ row) for row in x]  # type: ignore[attr-defined]
    np.testing.assert_allclose(choice.scores, expected)
    assert choice.position == choice.scores.argmax()
    assert choice.propensity == 1.0


def test_the_baseline_is_the_mean_of_a_category_drawn_towards_nought() -> None:
    policy = CategoryMean()
    state = policy.new_state()
    for reward in (1.0, 0.5):
        policy.learn(state, np.array([category_number("rest")]), reward, NOW_MS)
    scores = policy.choose(state, a_request(), np.random.default_rng(0), NOW_MS).scores
    assert scores[4] == 1.5 / 3
    assert scores[0] == 0.0
    assert (state.n, state.reward_sum) == (2, 1.5)


@every_policy
def test_parameters_are_numbers(policy: Policy[Any]) -> None:
    assert all(isinstance(value, float) for value in policy.parameters.values())
