"""Weighted by how unlikely they were, chosen values tell what all on offer are like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipbench.statistics.bounded import inverse_propensity_mean

PAIRS = st.lists(st.tuples(st.floats(-1, 1), st.floats(1e-3, 1)), min_size=1, max_size=30)


def test_what_the_choice_depended_on_is_taken_out() -> None:
    """Good occasions are chosen ten times as often: the plain mean says so, the weighted one doesn't."""
    random = np.random.default_rng(7)
    good = random.random(40_000) < 0.5
    propensities = np.where(good, 0.5, 0.05)
    values = np.where(good, 1.0, -1.0)
    chosen = random.random(40_000) < propensities
    found = inverse_propensity_mean(values[chosen], propensities[chosen])
    assert values[chosen].mean() > 0.75
    assert found.mean == pytest.approx(0.0, abs=0.08)
    assert found.effective < chosen.sum() / 2


@given(PAIRS)
def test_the_mean_lies_among_the_values_and_no_sample_is_worth_more_than_its_size(
    pairs: list[tuple[float, float]],
) -> None:
    values, propensities = np.array(pairs).T
    found = inverse_propensity_mean(values, propensities)
    assert values.min() - 1e-12 <= found.mean <= values.max() + 1e-12
    assert 1 - 1e-9 <= found.effective <= len(values) * (1 + 1e-9)


def test_equal_chances_are_no_weights() -> None:
    values = np.array([1.0, 0.0, -0.5])
    found = inverse_propensity_mean(values, np.full(3, 1e-300))
    assert found == pytest.approx((values.mean(), 3))


@pytest.mark.parametrize("propensities", [[0.0], [1.5], [-0.1], [float("nan")]])
def test_what_is_no_probability_is_refused(propensities: list[float]) -> None:
    with pytest.raises(ValueError, match="outside"):
        inverse_propensity_mean(np.ones(1), np.array(propensities))


def test_of_nothing_there_is_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        inverse_propensity_mean(np.array([]), np.array([]))
