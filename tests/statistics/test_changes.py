"""A change is more than chance where scipy's test over all signs says so, and its interval agrees."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tipbench.statistics.paired import LEVEL, changes, detectable, units_to_detect
from tipbench.statistics.units import PRIOR_DEGREES, Paired, paired

Floats = NDArray[np.float64]


def sizes(differences: Floats) -> Floats:
    """Means in standard errors, these drawn towards the middle one."""
    units = differences.shape[1]
    squared = stats.sem(differences, axis=1) ** 2
    errors = np.sqrt((PRIOR_DEGREES * np.median(squared) + (units - 1) * squared) / (PRIOR_DEGREES + units - 1))
    found: Floats = np.abs(differences.mean(axis=1)) / np.maximum(errors, 1e-6)
    return found


def enumerated_p(differences: Floats) -> Floats:
    signs = product([1, -1], repeat=differences.shape[1])
    largest = np.array([sizes(differences * np.array(sign)).max() for sign in signs])
    return np.array([np.mean(largest >= size - 1e-9) for size in sizes(differences)])


def near(p: Floats | float, draws: int = 4_999) -> float:
    return 4 * sqrt(float(np.max(np.asarray(p) * (1 - np.asarray(p)))) / draws) + 1.5 / draws


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0])
def test_of_one_pair_p_is_scipys(shift: float) -> None:
    differences = np.random.default_rng(4).normal(shift, 1, 9)

    def statistic(values: Floats) -> float:
        return abs(float(stats.ttest_1samp(values, 0).statistic))

    expected = float(
        stats.permutation_test(
            (differences,), statistic, permutation_type="samples", n_resamples=np.inf, alternative="greater"
        ).pvalue
    )
    found = changes(paired(differences[np.newaxis]))
    assert found.p[0] == pytest.approx(expected, abs=near(expected))
    assert enumerated_p(differences[np.newaxis])[0] == pytest.approx(expected, abs=1e-9)
    assert found.means == pytest.approx([differences.mean()])


@pytest.mark.parametrize("seed", range(4))
def test_of_several_pairs_p_is_that_of_all_signs(seed: int) -> None:
    random = np.random.default_rng(seed)
    differences = random.integers(-3, 4, (3, 6)) + np.array([[2.0], [1.0], [0.0]])
    found = changes(paired(differences))
    expected = enumerated_p(differences)
    assert found.p == pytest.approx(expected, abs=near(expected))


@settings(deadline=None, max_examples=60)
@given(
    rows=st.integers(1, 4),
    units=st.integers(1, 14),
    seed=st.integers(0, 10_000),
    shift=st.sampled_from([0.0, 0.7, 3.0]),
    scale=st.sampled_from([1.0, -1.0, 1e-3, 1e7]),
)
def test_the_interval_holds_0_unless_p_is_small(rows: int, units: int, seed: int, shift: float, scale: float) -> None:
    random = np.random.default_rng(seed)
    weights = random.dirichlet(np.full(units, 5))
    data = Paired(scale * (random.integers(-3, 4, (rows, units)).astype(np.float64) + shift), weights)
    found = changes(data, draws=399)
    assert found.means == pytest.approx(data.means)
    assert (found.lows <= found.means).all()
    assert (found.means <= found.highs).all()
    if detectable(units):
        beyond = (found.lows > 0) | (found.highs < 0)
        assert not (beyond & (found.p > LEVEL)).any()
    else:
        assert (found.lows == -np.inf).all()
        assert (found.highs == np.inf).all()


def test_the_clearest_outcome_is_told_from_the_number_of_units_on_that_is_said() -> None:
    for units in range(2, 9):
        p = changes(paired(np.ones((1, units)))).p[0]
        smallest = 2.0 ** (1 - units)
        assert p == pytest.approx(smallest, abs=near(smallest))
        assert detectable(units) == (p <= LEVEL)
        assert detectable(units, smallest)
        assert not detectable(units, smallest * 0.999)
    assert [units_to_detect(level) for level in (1, 0.5, 0.05, 0.01)] == [1, 2, 6, 8]


def test_no_difference_is_no_change_and_nor_are_rounding_errors() -> None:
    none = changes(paired(np.zeros((2, 10))))
    assert none.p.tolist() == [1, 1]
    assert none.lows == pytest.approx([0, 0], abs=1e-9)
    rounding = changes(paired(np.full((1, 10), 100.1 - 100 - 0.1)))
    assert rounding.p.tolist() == [1]


def test_an_interval_is_about_students_for_many_units() -> None:
    differences = np.random.default_rng(1).normal(0.3, 1, (1, 60))
    found = changes(paired(differences))
    expected = stats.ttest_1samp(differences[0], 0).confidence_interval(0.95)
    assert (found.lows[0], found.highs[0]) == pytest.approx((expected.low, expected.high), abs=0.03)


def test_intervals_hold_for_all_pairs_together() -> None:
    random = np.random.default_rng(3)
    truth = np.array([[0.0], [0.0], [0.5], [1.0]])
    covered = 0
    for n in range(300):
        found = changes(paired(random.normal(0, 1, (4, 10)) + truth), draws=199, seed=n)
        covered += bool(((found.lows <= truth[:, 0]) & (truth[:, 0] <= found.highs)).all())
    assert stats.binomtest(covered, 300).proportion_ci(0.99).high >= 0.95
    assert covered >= 276


@pytest.mark.parametrize("shared", [0.0, 2.0])
def test_unchanged_pairs_are_called_changed_as_seldom_as_the_level_says(shared: float) -> None:
    """Even next to one that changed a lot, and where all of a unit hang together."""
    random = np.random.default_rng(9)
    wrong = 0
    for n in range(400):
        differences = random.normal(0, 1, (12, 12)) + shared * random.normal(0, 1, 12)
        differences[0] += 10 * (1 + shared)
        wrong += bool((changes(paired(differences), draws=199, seed=n).p[1:] <= LEVEL).any())
    assert stats.binomtest(wrong, 400).proportion_ci(0.99).low <= LEVEL
    assert wrong <= 32


def test_pairs_that_hang_together_are_one_and_not_many() -> None:
    """All of twelve rows changed by the same: that is as clear as one row that did."""
    row = np.random.default_rng(2).normal(1, 1, 10)
    alone, many = changes(paired(row[np.newaxis])), changes(paired(np.tile(row, (12, 1))))
    assert many.p == pytest.approx(np.full(12, alone.p[0]))


def test_order_does_not_matter_and_the_same_seed_is_the_same_result() -> None:
    random = np.random.default_rng(3)
    differences = random.normal(0.5, 1, (4, 10))
    found = changes(paired(differences))
    order = [2, 0, 3, 1]
    again = changes(paired(differences[order][:, random.permutation(10)]))
    assert again.p == pytest.approx(found.p[order], abs=0.03)
    assert changes(paired(differences)).p.tolist() == found.p.tolist()
    mirrored = changes(paired(-differences))
    assert mirrored.lows == pytest.approx(-found.highs)
    assert mirrored.p == pytest.approx(found.p)
