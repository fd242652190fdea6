"""Ridge regression one vector at a time is ridge regression."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic_core import from_json, to_json

from tipbench.recommender.policies.ridge import Ridge

Floats = NDArray[np.float64]


def closed_form(x: Floats, rewards: Floats, ridge: float) -> Floats:
    return np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ rewards).astype(np.float64)


def random_data(seed: int, count: int, dimensions: int) -> tuple[Floats, Floats]:
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, (count, dimensions))
    x[:, 0] = 1.0
    return x, np.clip(x @ generator.normal(size=dimensions) / 3 + generator.normal(size=count), -1, 1)


@pytest.mark.parametrize("dimensions", [7, 12])
@pytest.mark.parametrize("ridge", [0.1, 1.0, 25.0])
def test_after_3000_updates_theta_is_that_of_the_closed_form(dimensions: int, ridge: float) -> None:
    x, rewards = random_data(8, 3000, dimensions)
    state = Ridge(dimensions, ridge)
    largest = 0.0
    for number, (row, reward) in enumerate(zip(x, rewards, strict=True), 1):
        state.learn(row, float(reward))
        if number % 250 == 0:
            expected = closed_form(x[:number], rewards[:number], ridge)
            largest = max(largest, float(np.abs(state.theta - expected).max()))
    assert state.n == 3000
    assert largest < 1e-9
    regular = x.T @ x + ridge * np.eye(dimensions)
    assert np.abs(state.inverse @ regular - np.eye(dimensions)).max() < 1e-9


def test_rounding_does_not_add_up_where_vectors_repeat() -> None:
    """Two directions, twenty thousand times each: badly conditioned on purpose."""
    x = np.tile(random_data(3, 2, 12)[0], (20_000, 1))
    rewards = np.tile([1.0, -1.0], 20_000)
    state = Ridge(12, 1.0)
    for row, reward in zip(x, rewards, strict=True):
        state.learn(row, float(reward))
    np.testing.assert_allclose(state.theta, closed_form(x, rewards, 1.0), atol=1e-9)


def test_a_state_that_was_stored_after_every_reward_is_the_same_to_the_bit() -> None:
    x, rewards = random_data(2, 200, 12)
    in_memory, stored = Ridge(12, 1.0), Ridge(12, 1.0)
    for row, reward in zip(x, rewards, strict=True):
        in_memory.learn(row, float(reward))
        stored = Ridge.from_data(from_json(to_json(stored.as_data())), 12, 1.0)
        stored.learn(row, float(reward))
        assert (stored.theta == in_memory.theta).all()
        assert (stored.inverse == in_memory.inverse).all()


def test_what_is_kept_brings_back_the_same_state() -> None:
    x, rewards = random_data(1, 50, 12)
    state = Ridge(12, 1.0)
    for row, reward in zip(x, rewards, strict=True):
        state.learn(row, float(reward))
    again = Ridge.from_data(state.as_data(), 12, 1.0)
    assert again.as_data() == state.as_data()
    np.testing.assert_array_equal(again.xx, again.xx.T)
    np.testing.assert_allclose(again.theta, state.theta, atol=1e-12)
    assert again.n == 50
    assert again.reward_sum == pytest.approx(rewards.sum())


@given(order=st.permutations(range(12)))
def test_the_order_of_rewards_does_not_matter(order: list[int]) -> None:
    x, rewards = random_data(5, 12, 7)
    states = Ridge(7, 1.0), Ridge(7, 1.0)
    for state, numbers in zip(states, (range(12), order), strict=True):
        for number in numbers:
            state.learn(x[number], float(rewards[number]))
    np.testing.assert_allclose(states[0].theta, states[1].theta, atol=1e-12)


def test_the_condition_of_a_new_state_is_perfect() -> None:
    assert Ridge(7, 1.0).condition() == 1.0


@pytest.mark.parametrize(
    "changes",
    [
        {"n": -1},
        {"n": 1.5},
        {"n": True},
        {"reward_sum": None},
        {"reward_sum": float("nan")},
        {"xx": [0.0] * 77},
        {"xx": [0.0] * 77 + ["1"]},
        {"xx": [0.0] * 77 + [float("inf")]},
        {"xx": None},
        {"xr": [0.0] * 7},
        {"xr": [[0.0] * 12]},
    ],
)
def test_anything_else_is_refused_and_never_padded(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(changes))):
        Ridge.from_data(Ridge(12, 1.0).as_data() | changes, 12, 1.0)


def test_a_state_of_fewer_dimensions_is_refused() -> None:
    with pytest.raises(ValueError, match="xx is not a list of 78 numbers"):
        Ridge.from_data(Ridge(7, 1.0).as_data(), 12, 1.0)
