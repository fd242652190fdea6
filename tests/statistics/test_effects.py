"""Effects are the sum-coded coefficients of statsmodels, and p agrees with its repeated-measures analysis."""

from itertools import permutations, product
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from statsmodels.api import OLS
from statsmodels.stats.anova import AnovaRM

from tipbench.statistics.effects import LEVEL, Effects, interaction, main_effects
from tipbench.statistics.units import PRIOR_DEGREES, paired

Floats = NDArray[np.float64]


def even(units: int) -> Floats:
    return np.full(units, 1 / units)


def coded(levels: int) -> Floats:
    """A column for each level but the last, which is the others' negative sum."""
    return np.vstack([np.eye(levels - 1), -np.ones(levels - 1)])


def coefficients(grid: Floats) -> tuple[Floats, Floats, Floats]:
    """Of the first factor, the second and their interaction, all levels, by least squares."""
    first, second, units = grid.shape
    codes_a, codes_b = coded(first), coded(second)
    design = [
        [1, *codes_a[a], *codes_b[b], *np.kron(codes_a[a], codes_b[b])] for a, b in product(range(first), range(second))
    ]
    found = OLS(grid.reshape(first * second, units).T.ravel(), np.tile(design, (units, 1))).fit().params
    a, b, both = np.split(found[1:], [first - 1, first + second - 2])
    return codes_a @ a, codes_b @ b, (codes_a @ both.reshape(first - 1, second - 1) @ codes_b.T).ravel()


def anova_p(grid: Floats) -> list[float]:
    places = list(np.ndindex(*grid.shape))
    table = pd.DataFrame([(*place, grid[place]) for place in places], columns=["a", "b", "unit", "score"])
    found: list[float] = AnovaRM(table, "score", "unit", within=["a", "b"]).fit().anova_table["Pr > F"].tolist()
    return found


def all_effects(grid: Floats, draws: int = 999, seed: int = 0) -> tuple[Effects, Effects, Effects]:
    return (
        main_effects(paired(grid.mean(axis=1)), draws=draws, seed=seed),
        main_effects(paired(grid.mean(axis=0)), draws=draws, seed=seed),
        interaction(grid, even(grid.shape[2]), draws=draws, seed=seed),
    )


def largest(left: Floats) -> float:
    """The largest mean in standard errors, those drawn towards the middle one."""
    units = left.shape[1]
    squared = stats.sem(left, axis=1) ** 2
    errors = np.sqrt((PRIOR_DEGREES * np.median(squared) + (units - 1) * squared) / (PRIOR_DEGREES + units - 1))
    return float((np.abs(left.mean(axis=1)) / np.maximum(errors, 1e-6)).max())


@settings(deadline=None, max_examples=30)
@given(first=st.integers(2, 4), second=st.integers(2, 4), units=st.integers(1, 9), seed=st.integers(0, 10_000))
def test_sizes_are_statsmodels_coefficients(first: int, second: int, units: int, seed: int) -> None:
    grid = np.random.default_rng(seed).integers(-2, 6, (first, second, units)).astype(np.float64)
    for found, expected in zip(all_effects(grid, draws=99), coefficients(grid), strict=True):
        assert found.sizes == pytest.approx(expected, abs=1e-9)
        assert (found.lows <= found.sizes).all()
        assert (found.sizes <= found.highs).all()
        assert 1 / 100 <= found.p <= 1
        beyond = bool(((found.lows > 0) | (found.highs < 0)).any())
        assert not beyond or found.p <= LEVEL


def test_p_agrees_with_the_repeated_measures_analysis() -> None:
    random = np.random.default_rng(7)
    ours, theirs = [], []
    for n in range(30):
        effects = random.normal(0, 0.5, (3, 1, 1)), random.normal(0, 0.4, (1, 2, 1)), random.normal(0, 0.5, (3, 2, 1))
        grid = random.normal(0, 1, (3, 2, 9)) + random.normal(0, 2, 9) + sum(effects)
        ours.append([found.p for found in all_effects(grid, draws=499, seed=n)])
        theirs.append(anova_p(grid))
    for found, expected in zip(np.transpose(ours), np.transpose(theirs), strict=True):
        assert stats.spearmanr(found, expected).statistic > 0.9
        assert found[expected < 0.005].max() < 0.05
        assert found[expected > 0.3].min() > 0.1
        assert min((expected < 0.005).sum(), (expected > 0.3).sum()) > 0


@pytest.mark.parametrize("shift", [0.0, 0.6])
def test_of_two_levels_p_is_scipys_over_all_signs(shift: float) -> None:
    scores = np.random.default_rng(3).normal(size=(2, 8)) + np.array([[shift], [0]])

    def statistic(difference: Floats) -> float:
        return abs(float(stats.ttest_1samp(difference, 0).statistic))

    expected = stats.permutation_test(
        (scores[0] - scores[1],), statistic, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    ).pvalue
    assert main_effects(paired(scores)).p == pytest.approx(float(expected), abs=4 * sqrt(0.25 / 4_999))


def test_p_is_that_of_all_arrangements_of_levels() -> None:
    scores = np.random.default_rng(5).normal(size=(3, 4)) + np.array([[0.9], [0], [0]])
    centred = scores - scores.mean(axis=0)
    orders = [list(order) for order in permutations(range(3))]
    dealt = [
        largest(np.column_stack([centred[order, unit] for unit, order in enumerate(each)]))
        for each in product(orders, repeat=4)
    ]
    expected = np.mean(np.array(dealt) >= largest(centred) - 1e-9)
    assert main_effects(paired(scores)).p == pytest.approx(float(expected), abs=4 * sqrt(0.25 / 4_999))


@pytest.mark.parametrize("together", [0.0, 1.0])
def test_ps_of_interactions_are_those_of_all_arrangements_of_both_factors(together: float) -> None:
    grid = np.random.default_rng(6).normal(size=(2, 3, 4))
    grid[0, 0] += together
    left = grid - grid.mean(axis=0) - grid.mean(axis=1, keepdims=True) + grid.mean(axis=(0, 1))
    orders = list(product(permutations(range(2)), permutations(range(3))))
    arranged = [[left[np.ix_(a, b)][..., unit].ravel() for a, b in orders] for unit in range(4)]
    dealt = [largest(np.column_stack([left[..., 0].ravel(), *rest])) for rest in product(*arranged[1:])]
    expected = np.mean(np.array(dealt) >= largest(left.reshape(6, 4)) - 1e-9)
    found = interaction(grid, even(4))
    assert found.p == pytest.approx(float(expected), abs=4 * sqrt(0.25 / 4_999))


def test_without_an_interaction_all_ps_are_as_likely() -> None:
    """However strong the main effects are."""
    random = np.random.default_rng(11)
    ps = []
    for n in range(250):
        main = random.normal(0, 3, (3, 1, 6)) + random.normal(0, 3, (1, 2, 6)) + 5 * np.arange(3)[:, None, None]
        ps.append(interaction(main + random.normal(0, 1, (3, 2, 6)), even(6), draws=99, seed=n).p)
    assert stats.kstest(ps, "uniform").pvalue > 0.01
    assert stats.binomtest(sum(p <= LEVEL for p in ps), 250).proportion_ci(0.99).low <= LEVEL


def test_without_a_main_effect_all_ps_are_as_likely() -> None:
    random = np.random.default_rng(12)
    ps = [
        main_effects(paired(random.normal(0, 1, (3, 6)) + random.normal(0, 9, 6)), draws=99, seed=n).p
        for n in range(250)
    ]
    assert stats.kstest(ps, "uniform").pvalue > 0.01


def test_a_strong_interaction_is_found_where_there_is_no_main_effect() -> None:
    grid = np.random.default_rng(1).normal(0, 1, (2, 2, 12)) + 3 * np.array([[1, -1], [-1, 1]])[..., np.newaxis]
    first, second, both = all_effects(grid)
    assert both.p <= 0.003
    assert min(first.p, second.p) > LEVEL
    assert both.sizes == pytest.approx([3, -3, -3, 3], abs=0.5)


def test_intervals_are_about_students_for_two_levels_and_many_units() -> None:
    scores = np.random.default_rng(2).normal(size=(2, 32)) + np.array([[0.4], [0]])
    found = main_effects(paired(scores))
    expected = stats.ttest_rel(scores[0], scores[1]).confidence_interval(0.95)
    assert (found.lows[0], found.highs[0]) == pytest.approx((expected.low / 2, expected.high / 2), abs=0.02)
    assert (found.lows[1], found.highs[1]) == pytest.approx((-found.highs[0], -found.lows[0]))


def test_intervals_hold_for_all_levels_together() -> None:
    random = np.random.default_rng(3)
    truth = np.array([-1.0, 0.2, 0.8])
    covered = 0
    for n in range(300):
        found = main_effects(paired(random.normal(0, 1, (3, 8)) + truth[:, np.newaxis]), draws=199, seed=n)
        covered += bool(((found.lows <= truth) & (truth <= found.highs)).all())
    assert stats.binomtest(covered, 300).proportion_ci(0.99).high >= 0.95
    assert covered >= 276


@pytest.mark.parametrize("scale", [1.0, -100.0, 1e7])
def test_sums_of_two_factors_are_no_interaction_and_equal_levels_no_effect(scale: float) -> None:
    """Up to rounding errors, which are there in every unit."""
    random = np.random.default_rng(4)
    unit = 0.1 * random.random(10)
    grid = scale * (random.random((4, 1, 1)) + random.random((1, 3, 1)) + unit)
    assert interaction(grid, even(10)).p == 1
    assert main_effects(paired(np.tile(scale * unit, (3, 1)))).p == 1
    assert interaction(grid[:1], even(10)).p == 1


def test_one_unit_tells_nothing() -> None:
    found = all_effects(np.random.default_rng(0).normal(size=(3, 2, 1)))
    assert [each.p for each in found] == [1, 1, 1]
    assert all((each.lows == -np.inf).all() and (each.highs == np.inf).all() for each in found)


def test_units_weigh_as_they_should() -> None:
    grid, weights = np.random.default_rng(0).normal(size=(2, 3, 4)), np.array([0.1, 0.2, 0.3, 0.4])
    mean = (grid * weights).sum(axis=2)
    expected = mean - mean.mean(axis=0) - mean.mean(axis=1, keepdims=True) + mean.mean()
    assert interaction(grid, weights, draws=9).sizes == pytest.approx(expected.ravel())


def test_order_does_not_matter_and_the_same_seed_is_the_same_result() -> None:
    random = np.random.default_rng(8)
    grid = random.normal(size=(3, 4, 9))
    found = interaction(grid, even(9))
    again = interaction(grid[[2, 0, 1]][:, [1, 3, 0, 2]][..., random.permutation(9)], even(9))
    assert again.p == pytest.approx(found.p, abs=0.03)
    assert again.sizes.reshape(3, 4) == pytest.approx(found.sizes.reshape(3, 4)[[2, 0, 1]][:, [1, 3, 0, 2]])
    assert interaction(grid, even(9)).p == found.p
    turned = interaction(grid.transpose(1, 0, 2), even(9))
    assert pytest.approx(found.sizes.reshape(3, 4)) == turned.sizes.reshape(4, 3).T
    assert turned.p == pytest.approx(found.p, abs=0.03)
