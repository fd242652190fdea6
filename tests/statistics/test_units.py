"""Means and standard errors over units are numpy's and scipy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tipbench.statistics.units import (
    NEGLIGIBLE,
    PRIOR_DEGREES,
    Paired,
    max_abs_t,
    means_and_errors,
    paired,
    zero_rounding_errors,
)

Floats = NDArray[np.float64]


@st.composite
def scores_in_units(draw: st.DrawFn) -> tuple[Floats, list[int]]:
    scenarios = draw(st.integers(1, 30))
    row = st.lists(st.integers(-5, 5), min_size=scenarios, max_size=scenarios)
    scores = np.array(draw(st.lists(row, min_size=1, max_size=4)), dtype=np.float64)
    return scores, draw(st.lists(st.integers(0, 6), min_size=scenarios, max_size=scenarios))


@settings(max_examples=100)
@given(given_scores=scores_in_units(), most=st.integers(1, 12))
def test_putting_scenarios_together_keeps_the_means(given_scores: tuple[Floats, list[int]], most: int) -> None:
    scores, units = given_scores
    data = paired(scores, units)
    expected = {unit: scores[:, [place for place, u in enumerate(units) if u == unit]] for unit in dict.fromkeys(units)}
    assert data.scores == pytest.approx(np.column_stack([part.mean(axis=1) for part in expected.values()]))
    assert data.weights == pytest.approx([part.shape[1] / len(units) for part in expected.values()])
    assert (data.rows, data.units) == (len(scores), len(expected))
    for same in (data, paired(scores), data.coarser(most), paired(scores).coarser(most)):
        assert same.means == pytest.approx(scores.mean(axis=1), abs=1e-12)
        assert same.weights.sum() == pytest.approx(1)
    assert data.coarser(most).units == min(most, data.units)


def test_coarser_puts_neighbours_together() -> None:
    data = Paired(np.array([[1.0, 2.0, 3.0, 8.0]]), np.array([0.1, 0.3, 0.2, 0.4]))
    found = data.coarser(2)
    assert found.scores == pytest.approx(np.array([[0.7 / 0.4, 3.8 / 0.6]]))
    assert found.weights == pytest.approx([0.4, 0.6])
    assert data.coarser(4) is data
    assert Paired(np.zeros((1, 200)), np.full(200, 0.005)).coarser().units == 32


def test_some_of_the_rows() -> None:
    data = paired(np.arange(6.0).reshape(3, 2))
    assert data.only([2, 0]).scores.tolist() == [[4, 5], [0, 1]]
    assert data.scores.tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    "scores", [np.empty((2, 0)), np.empty((0, 2)), np.array([[1, np.nan]]), np.array([[np.inf, 1]])]
)
def test_what_cannot_be_compared_is_refused(scores: Floats) -> None:
    with pytest.raises(ValueError, match=r"no scores|not a number"):
        paired(scores)


def test_units_of_other_scenarios_are_refused() -> None:
    with pytest.raises(ValueError, match="units of 1 scenarios"):
        paired(np.ones((2, 3)), ["a"])


@pytest.mark.parametrize("units", [2, 3, 10, 40])
def test_the_error_of_a_single_row_is_scipys(units: int) -> None:
    values = np.random.default_rng(units).normal(1, 2, units)
    means, errors = means_and_errors(values[np.newaxis], np.full(units, 1 / units))
    assert errors == pytest.approx([stats.sem(values)])
    assert means / errors == pytest.approx([stats.ttest_1samp(values, 0).statistic])
    assert max_abs_t(values[np.newaxis], np.full(units, 1 / units)) == pytest.approx(abs(means / errors)[0])


def test_errors_borrow_from_the_middle_row() -> None:
    scores = np.random.default_rng(3).normal(0, [[1], [2], [9]], (3, 5))
    squared = stats.sem(scores, axis=1) ** 2
    means, errors = means_and_errors(scores, np.full(5, 0.2))
    assert errors**2 == pytest.approx((PRIOR_DEGREES * np.median(squared) + 4 * squared) / (PRIOR_DEGREES + 4))
    assert max_abs_t(scores, np.full(5, 0.2)) == pytest.approx(np.max(np.abs(means) / errors))


def test_errors_of_many_arrangements_are_those_of_each() -> None:
    random = np.random.default_rng(5)
    many, weights = random.normal(size=(7, 3, 6)), np.array([0.1, 0.3, 0.1, 0.2, 0.2, 0.1])
    means, errors = means_and_errors(many, weights)
    one_by_one = [means_and_errors(each, weights) for each in many]
    assert means == pytest.approx(np.array([each[0] for each in one_by_one]))
    assert errors == pytest.approx(np.array([each[1] for each in one_by_one]))


def test_weights_of_units_tell_in_the_error() -> None:
    values = np.array([[1.0, 4.0, 2.0, 7.0]])
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    mean = float((values @ weights)[0])
    _, errors = means_and_errors(values, weights)
    assert errors == pytest.approx([np.sqrt(4 / 3 * ((weights * (values[0] - mean)) ** 2).sum())])


@pytest.mark.parametrize("size", [1.0, 1e9])
def test_what_never_varies_has_a_small_error_but_one(size: float) -> None:
    _, errors = means_and_errors(np.full((2, 5), size), np.full(5, 0.2))
    assert errors == pytest.approx([NEGLIGIBLE * size] * 2)
    assert means_and_errors(np.ones((1, 1)), np.ones(1))[1] == pytest.approx([NEGLIGIBLE])


def test_rounding_errors_are_nothing() -> None:
    left = zero_rounding_errors(np.array([1e-11, -1e-15, 0.5]), np.array([100.0, -1000.0]))
    assert left.tolist() == [0, 0, 0.5]
