"""The interval is Clopper and Pearson's for yes-or-no scores, and that of random Dirichlet weights for all others."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.api import OLS
from statsmodels.stats.proportion import proportion_confint

from tipbench.statistics.bounded import bounded_interval, bounded_intervals, intraclass_correlation

Floats = NDArray[np.float64]
CLOSE = 0.004  # of the scale; the formula for the tail is an approximation
VALUES = st.lists(st.integers(0, 8).map(lambda n: n / 8), min_size=1, max_size=20)


def drawn_interval(values: Floats, shapes: Floats, random: np.random.Generator, level: float) -> tuple[float, float]:
    """By random numbers: weights from a Dirichlet distribution, and one more value at the end of the scale 0..1."""
    weights = random.dirichlet([*shapes, 1], 60_000)
    low = np.quantile(weights @ np.append(values, 0), (1 - level) / 2)
    high = np.quantile(weights @ np.append(values, 1), (1 + level) / 2)
    return float(low), float(high)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("yes", "n"), [(0, 1), (1, 1), (1, 2), (0, 8), (3, 8), (8, 8), (19, 20), (30, 100), (1, 1000)])
def test_of_yes_and_no_it_is_clopper_and_pearsons(yes: int, n: int, level: float) -> None:
    found = bounded_interval([1] * yes + [0] * (n - yes), 0, 1, level=level)
    of_scipy = stats.binomtest(yes, n).proportion_ci(level)
    of_statsmodels = proportion_confint(yes, n, alpha=1 - level, method="beta")
    assert found == pytest.approx((of_scipy.low, of_scipy.high), abs=CLOSE)
    assert found == pytest.approx(of_statsmodels, abs=CLOSE)


@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_of_any_scores_it_is_that_of_random_weights(n: int, level: float) -> None:
    random = np.random.default_rng(n)
    for values in (random.random(n), random.beta(6, 1, n), random.integers(0, 5, n) / 4):
        found = bounded_interval(values, 0, 1, level=level)
        assert found == pytest.approx(drawn_interval(values, np.ones(n), random, level), abs=0.008)


@pytest.mark.parametrize("sizes", [[3, 3, 3, 3], [6, 2, 1, 1, 2], [9, 1]])
def test_of_groups_it_is_that_of_random_weights_of_the_size_that_dependence_leaves(sizes: Sequence[int]) -> None:
    random = np.random.default_rng(sum(sizes))
    groups = np.repeat(np.arange(len(sizes)), sizes)
    for share in (0.0, 0.5, 1.0):
        values = share * random.random(len(sizes))[groups] + (1 - share) * random.random(len(groups))
        design_effect = 1 + intraclass_correlation(values, groups) * (np.square(sizes).sum() / len(groups) - 1)
        expected = drawn_interval(values, np.full(len(groups), 1 / design_effect), random, 0.95)
        assert bounded_interval(values, 0, 1, groups) == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("value", [0, 0.001, 0.3, 0.5, 0.999, 1])
@pytest.mark.parametrize("n", [1, 2, 8, 50])
def test_equal_scores_leave_room_up_to_a_quantile_of_beta(value: float, n: int) -> None:
    found = bounded_interval([value] * n, 0, 1)
    room = stats.beta.ppf(0.975, 1, n)
    assert found == pytest.approx((value * (1 - room), value + (1 - value) * room), abs=CLOSE)
    assert found.low < found.high


def test_fully_dependent_scores_in_groups_of_one_size_count_as_one_each() -> None:
    few = [0.1, 0.6, 0.8, 0.4]
    found = bounded_interval(np.repeat(few, 5), 0, 1, np.repeat(["a", "b", "c", "d"], 5))
    assert found == pytest.approx(bounded_interval(few, 0, 1), abs=0.002)


def test_groups_may_have_any_names_in_any_order() -> None:
    values = [0.1, 0.2, 0.9, 0.8, 0.5, 0.5]
    named = bounded_interval(values, 0, 1, [("a", 1), ("a", 1), None, None, 3, 3])
    again = bounded_interval(values[::-1], 0, 1, [0, 0, 1, 1, 2, 2])
    assert named == pytest.approx(again, abs=1e-9)
    assert named.high - named.low > np.diff(bounded_interval(values, 0, 1))[0]


@settings(deadline=None, max_examples=40)
@given(values=VALUES, groups=st.none() | st.integers(1, 5), level=st.sampled_from([0.5, 0.9, 0.95, 0.999]))
@example(values=[1.0] * 8, groups=None, level=0.95)
@example(values=[1.0] * 15 + [0.0] * 3, groups=15, level=0.95)
def test_it_holds_the_mean_and_lies_on_the_scale(values: list[float], groups: int | None, level: float) -> None:
    names = None if groups is None else [max(0, n - groups) for n in range(len(values))]
    found = bounded_interval(values, 0, 1, names, level)
    assert 0 <= found.low <= np.mean(values) + 1e-12
    assert np.mean(values) - 1e-12 <= found.high <= 1
    assert found.low < found.high
    wider = bounded_interval(values, 0, 1, names, (1 + level) / 2)
    assert wider.low <= found.low + 1e-9
    assert wider.high >= found.high - 1e-9


@settings(deadline=None, max_examples=40)
@given(values=VALUES, low=st.sampled_from([-7.0, 0.0, 0.1, 1.0]), width=st.sampled_from([1e-6, 0.6, 4.0, 1e6]))
def test_order_mirror_and_scale_change_nothing(values: list[float], low: float, width: float) -> None:
    plain = bounded_interval(values, 0, 1)
    assert bounded_interval(sorted(values), 0, 1) == pytest.approx(plain, abs=1e-9)
    mirrored = bounded_interval([1 - value for value in values], 0, 1)
    assert mirrored == pytest.approx((1 - plain.high, 1 - plain.low), abs=1e-9)
    high = low + width
    scaled = bounded_interval([min(low + width * value, high) for value in values], low, high)
    assert low <= scaled.low <= scaled.high <= high
    assert [(end - low) / width for end in scaled] == pytest.approx(plain, abs=1e-6)


def test_many_rows_are_each_row() -> None:
    random = np.random.default_rng(4)
    rows, groups = random.random((5, 12)), [*"aaabbbcccddd"]
    assert bounded_intervals(rows, 0, 1, groups) == [bounded_interval(row, 0, 1, groups) for row in rows]


def test_a_rounding_error_off_the_scale_is_none() -> None:
    assert bounded_interval([17.000000000000004] * 3 + [5], 1, 17) == bounded_interval([17] * 3 + [5], 1, 17)
    assert bounded_interval([0.9999999999999998, 2], 1, 17) == bounded_interval([1, 2], 1, 17)


@pytest.mark.parametrize("values", [[1.0, 5.001], [0.999, 3], [float("nan"), 3], [float("inf"), 3]])
def test_values_off_the_scale_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="outside"):
        bounded_interval(values, 1, 5)


def test_what_has_no_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        bounded_interval([], 1, 5)
    with pytest.raises(ValueError, match="not a scale"):
        bounded_interval([3], 3, 3)
    with pytest.raises(ValueError, match="2 groups for 3 values"):
        bounded_interval([1, 2, 3], 1, 5, ["a", "b"])


def test_it_covers_the_mean_of_few_skewed_scores() -> None:
    """8 scores of 1..5 that are mostly 5: where Student's t does not."""
    random = np.random.default_rng(1)
    scores = random.choice([1.0, 4.0, 5.0], (600, 8), p=[0.04, 0.06, 0.9])
    covered = sum(found.low <= 4.78 <= found.high for found in bounded_intervals(scores, 1, 5))
    assert covered >= stats.binom.ppf(0.01, 600, 0.95)
    with np.errstate(invalid="ignore"):
        of_student = np.abs(scores.mean(axis=1) - 4.78) <= stats.t.ppf(0.975, 7) * stats.sem(scores, axis=1)
    assert of_student.mean() < 0.75


@settings(deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=4, max_size=8).filter(lambda sizes: max(sizes) > 1),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_the_correlation_is_that_of_statsmodels_mean_squares(sizes: list[int], seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    values = random.normal(size=len(sizes))[groups] + random.normal(size=len(groups))
    fit = OLS(values, np.eye(len(sizes))[groups]).fit()
    between, within = fit.mse_model, fit.mse_resid
    typical = (len(groups) - np.square(sizes).sum() / len(groups)) / (len(sizes) - 1)
    expected = np.clip((between - within) / (between + (typical - 1) * within), 0, 1)
    assert intraclass_correlation(scale * (values + 10), groups) == pytest.approx(expected, abs=1e-7)


def test_the_correlation_at_its_ends() -> None:
    assert intraclass_correlation([1, 1, 3, 3, 2, 2, 5, 5], [*"aabbccdd"]) == 1
    assert intraclass_correlation([1, 3, 1, 3, 1, 3, 1, 3], [*"aabbccdd"]) == 0
    assert intraclass_correlation([1, 3, 1, 3, 1, 3], [*"aabbcc"]) == 1  # too few groups to tell
    assert intraclass_correlation([1, 2, 3], [*"abc"]) == 0
    assert intraclass_correlation([1, 2, 3], [*"aaa"]) == 1
    assert intraclass_correlation([0.3, 0.1 + 0.2, 0.3, 0.3], [*"aabb"]) == 1
    assert bounded_interval([0, 0, 0, 0], 0, 1, [*"aabb"]) == pytest.approx((0, 0.8442), abs=1e-4)
