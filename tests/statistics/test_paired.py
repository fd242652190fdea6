"""Paired differences as scipy has them, and Holm's step-down by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tipbench.statistics.paired import FEWEST, Difference, difference, holm_wins


def _differences(seed: int, means: list[float], count: int = 30) -> tuple[list[Difference], list[float]]:
    chance = np.random.default_rng(seed)
    rows = [chance.normal(mean, 1, count) for mean in means]
    p_values = [float(stats.ttest_1samp(row, 0, alternative="greater").pvalue) for row in rows]
    return [difference(row) for row in rows], p_values


@pytest.mark.parametrize("count", [10, 20, 30, 200])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.995, 0.9995])
def test_the_lower_bound_is_scipys(count: int, level: float) -> None:
    values = np.random.default_rng(count).normal(0.1, 1, count)
    found = difference(values)
    bound = stats.ttest_1samp(values, 0, alternative="greater").confidence_interval(level).low
    assert found.lower_bound(level) == pytest.approx(bound, abs=1e-3)
    assert found.t == pytest.approx(stats.ttest_1samp(values, 0).statistic)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), means=st.lists(st.floats(0, 0.8), min_size=1, max_size=10))
def test_wins_are_holms(seed: int, means: list[float]) -> None:
    differences, p_values = _differences(seed, means)
    order = np.argsort(p_values)
    needed = np.array(p_values)[order] * np.arange(len(means), 0, -1)
    wins = np.zeros(len(means), dtype=bool)
    wins[order] = np.maximum.accumulate(needed) <= 0.05
    if np.abs(needed - 0.05).min() > 1e-4:  # quantiles are right to some digits, so a tie may fall either way
        assert holm_wins(differences, 0.05) == wins.tolist()


def test_holm_step_by_step() -> None:
    """With 29 degrees of freedom the better of two needs t > 2.045; then the other needs 1.699, and not before."""
    sure, likely = Difference(3.0, 1.0, 29), Difference(1.9, 1.0, 29)
    assert holm_wins([likely, sure], 0.05) == [True, True]
    assert holm_wins([likely, likely], 0.05) == [False, False]
    assert holm_wins([likely, sure, Difference(1.6, 1.0, 29)], 0.05) == [False, True, False]


def test_no_differences_at_all() -> None:
    same = difference([0.0] * 20)
    assert same.t == 0
    assert same.lower_bound(0.95) == 0
    assert holm_wins([same], 0.05) == [False]
    assert holm_wins([], 0.05) == []


def test_a_difference_that_is_always_the_same_is_sure() -> None:
    better, worse = difference([0.5] * 20), difference([-0.5] * 20)
    assert better.lower_bound(0.95) == 0.5
    assert holm_wins([worse, better], 0.05) == [False, True]


def test_too_few_say_nothing() -> None:
    with pytest.raises(ValueError, match="9 differences, but at least 10 are needed"):
        difference([1.0] * (FEWEST - 1))
