"""Sums that forget by the time of events, and the posterior that they give with a prior."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json, to_json

from tipbench.recommender.features.interface import Floats, category_number
from tipbench.recommender.features.v3 import DENSE
from tipbench.recommender.policies.posterior import WeightedSums
from tipbench.recommender.prior.interface import FLAT, Prior

SIX_HOURS_MS = 6 * 3_600_000
NEVER = {"before": 0.0, "at_last": 0, "last_ms": 0}
CATEGORIES = [f"c{number}" for number in range(4)]


def some_data(count: int, seed: int = 3) -> tuple[Floats, Floats, list[int]]:
    """Rows as they are seen, rewards, and times that are days apart."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (count, DENSE + 1))
    rows[:, 0] = 1.0
    rows[:, DENSE] = [category_number(CATEGORIES[number]) for number in generator.integers(0, 4, count)]
    return rows, generator.uniform(-1, 1, count), generator.integers(1, 40 * SIX_HOURS_MS, count).tolist()


def learned(rows: Floats, rewards: Floats, times: list[int], order: Any = None) -> WeightedSums:
    state = WeightedSums()
    for number, category in enumerate(CATEGORIES):
        state.shown.add(category, 1 + number)
    for place in range(len(rows)) if order is None else order:
        state.learn(rows[place], float(rewards[place]), times[place])
    return state


def a_prior(seed: int = 5) -> Prior:
    generator = np.random.default_rng(seed)
    root = generator.normal(size=(DENSE, DENSE))
    return Prior("0" * 16, generator.normal(size=DENSE), root @ root.T + np.eye(DENSE), 2.5, 0.3, {})


@pytest.mark.parametrize("prior", [FLAT, a_prior()])
def test_it_is_weighted_regression_with_a_column_for_each_category(prior: Prior) -> None:
    rows, rewards, times = some_data(60)
    now = max(times) + 3 * SIX_HOURS_MS
    posterior = learned(rows, rewards, times).posterior(prior, now)
    x = np.hstack((rows[:, :DENSE], [[row[DENSE] == category_number(one) for one in CATEGORIES] for row in rows]))
    weights = 0.99 ** ((now - np.array(times)) / SIX_HOURS_MS)
    penalty = np.zeros((DENSE + 4, DENSE + 4))
    penalty[:DENSE, :DENSE], penalty[DENSE:, DENSE:] = prior.precision, prior.intercept_precision * np.eye(4)
    regular = x.T @ (x * weights[:, None]) + penalty
    mean = np.concatenate((prior.mean, np.zeros(4)))
    theta = np.linalg.solve(regular, x.T @ (weights * rewards) + penalty @ mean)
    found, intercepts = posterior.coefficients()
    np.testing.assert_allclose(np.concatenate((found, intercepts[:4])), theta, atol=1e-12)
    slots = [CATEGORIES.index(next(one for one in CATEGORIES if category_number(one) == row[DENSE])) for row in rows]
    means, variances = posterior.rewards(rows[:, :DENSE], slots)
    np.testing.assert_allclose(means, x @ theta, atol=1e-12)
    np.testing.assert_allclose(variances, ((x @ np.linalg.inv(regular)) * x).sum(axis=1), atol=1e-12)


def test_a_category_that_was_never_met_is_as_uncertain_as_the_prior_says() -> None:
    rows, rewards, times = some_data(20)
    state, prior = learned(rows, rewards, times), a_prior()
    posterior = state.posterior(prior, max(times))
    theta, intercepts = posterior.coefficients()
    never_met = state.shown.slot(category_number("a category of its own"))
    assert intercepts[never_met] == 0
    means, variances = posterior.rewards(rows[:1, :DENSE], [never_met])
    assert means[0] == pytest.approx(rows[0, :DENSE] @ theta)
    dense = rows[0, :DENSE] @ np.linalg.solve(posterior.precision[:DENSE, :DENSE], rows[0, :DENSE])
    assert variances[0] == pytest.approx(dense + 1 / prior.intercept_precision)


@given(order=st.permutations(range(25)))
def test_the_order_in_which_rewards_arrive_does_not_matter(order: list[int]) -> None:
    rows, rewards, times = some_data(25)
    first, other = learned(rows, rewards, times), learned(rows, rewards, times, order)
    assert (first.n, first.at_ms) == (other.n, other.at_ms)
    np.testing.assert_allclose(first.sums, other.sums, atol=1e-12)


def test_a_state_that_was_stored_after_every_reward_is_the_same_to_the_bit() -> None:
    rows, rewards, times = some_data(40)
    stored = learned(rows[:0], rewards[:0], times)
    for row, reward, at_ms in zip(rows, rewards, times, strict=True):
        stored = WeightedSums.from_data(from_json(to_json(stored.as_data())))
        stored.shown.add("c2", at_ms)
        stored.learn(row, float(reward), at_ms)
    np.testing.assert_array_equal(stored.sums, learned(rows, rewards, times).sums)
    again = WeightedSums.from_data(stored.as_data())
    assert again.as_data() == stored.as_data()
    np.testing.assert_array_equal(again.sums, stored.sums)


def test_more_categories_than_there_is_room_for_survive_being_stored() -> None:
    state = WeightedSums()
    rows, rewards, _ = some_data(40)
    for number in range(40):
        state.shown.add(f"many-{number}", number + 1)
        rows[number, DENSE] = category_number(f"many-{number}")
        state.learn(rows[number], float(rewards[number]), number + 1)
    again = WeightedSums.from_data(from_json(to_json(state.as_data())))
    assert again.as_data() == state.as_data()
    assert len(state.as_data()["categories"]) == 33
    np.testing.assert_array_equal(again.sums, state.sums)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"at_ms": -1}, "at_ms is -1"),
        ({"at_ms": True}, "at_ms is True"),
        ({"xx": [0.0] * 119}, "xx is not a list of 120"),
        ({"xr": None}, "xr is not a list of 15"),
        ({"categories": None}, "categories is not a list"),
        ({"categories": [1]}, "categories is not a list"),
        ({"categories": [{"name": None, "shown": {}, "sums": []}]}, "categories has None in place 0"),
        ({"categories": [{"name": "a", "shown": {"before": "x"}}]}, "before is 'x', not a number"),
        ({"categories": [{"name": "a", "shown": NEVER, "sums": [0.0] * 15}]}, "sums is not a list of 16"),
        ({"categories": [{"name": "a", "shown": NEVER, "sums": [0.0] * 15 + [True]}]}, "sums is not a list of 16"),
    ],
)
def test_anything_else_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        WeightedSums.from_data(learned(*some_data(3)).as_data() | changes)


def test_a_category_that_stands_there_twice_is_refused() -> None:
    data = learned(*some_data(3)).as_data()
    with pytest.raises(ValueError, match="categories has 'c0' in place 4"):
        WeightedSums.from_data(data | {"categories": [*data["categories"], data["categories"][0]]})
