"""Student's t as scipy has it, and margins that are never 0."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tipbench.statistics.drift import mean_and_margin, t_quantile, t_quantile_at


@pytest.mark.parametrize(
    ("degrees", "tolerance"), [*((d, 1e-6) for d in (1, 2, 3)), *((d, 1e-3) for d in range(4, 10))]
)
def test_few_degrees_of_freedom_are_right_to_a_thousandth(degrees: int, tolerance: float) -> None:
    assert t_quantile(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), abs=tolerance)


def test_from_10_degrees_of_freedom_on_it_is_right_to_5_digits() -> None:
    degrees = [*range(10, 200), 1000, 100_000]
    assert [t_quantile(d) for d in degrees] == pytest.approx(list(stats.t.ppf(0.975, degrees)), abs=1e-5)


@pytest.mark.parametrize(("degrees", "tolerance"), [(9, 2e-3), (19, 4e-5), (29, 1e-5), (99, 1e-6), (10_000, 1e-6)])
def test_any_quantile_of_enough_degrees_of_freedom(degrees: int, tolerance: float) -> None:
    for probability in (0.5, 0.9, 0.95, 0.99, 0.995, 0.9995):
        for side in (probability, 1 - probability):
            assert t_quantile_at(side, degrees) == pytest.approx(stats.t.ppf(side, degrees), abs=tolerance)


def test_too_few_degrees_of_freedom_for_the_expansion() -> None:
    with pytest.raises(ValueError, match="8 degrees of freedom are too few"):
        t_quantile_at(0.95, 8)


@settings(max_examples=100)
@given(values=st.lists(st.integers(-9, 9), min_size=2, max_size=50).filter(lambda values: len(set(values)) > 1))
def test_the_interval_is_scipys(values: list[int]) -> None:
    mean, margin = mean_and_margin(values)
    low, high = stats.t.interval(0.95, len(values) - 1, loc=sum(values) / len(values), scale=stats.sem(values))
    assert (mean - margin, mean + margin) == pytest.approx((low, high), rel=1e-3, abs=1e-2)


@pytest.mark.parametrize("value", [0, -2])
@pytest.mark.parametrize("n", [2, 3, 20, 400])
def test_equal_values_are_as_uncertain_as_with_one_of_them_off_by_one(n: int, value: int) -> None:
    mean, margin = mean_and_margin([value] * n)
    assert mean == value
    assert margin == pytest.approx(mean_and_margin([value] * (n - 1) + [value + 1])[1])


def test_one_value_tells_next_to_nothing() -> None:
    assert mean_and_margin([1]) == pytest.approx((1, 12.706), abs=1e-3)


def test_no_values_have_no_mean() -> None:
    with pytest.raises(ValueError, match="no values"):
        mean_and_margin([])
