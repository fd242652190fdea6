"""Who is shut out is what scipy's permutation test and the enumeration of all arrangements say."""

from itertools import permutations, product
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tipbench.statistics.planning import LEVEL, separable, units_to_separate
from tipbench.statistics.top_group import top_group
from tipbench.statistics.units import PRIOR_DEGREES, Paired, paired

Floats = NDArray[np.float64]


def behind(scores: Floats, weights: Floats | None = None) -> list[float]:
    """By how many standard errors each row lies behind another one, pair by pair."""
    rows, units = scores.shape
    relative = np.ones(units) if weights is None else weights * units
    gaps, squared = np.zeros((rows, rows)), np.zeros((rows, rows))
    for one, other in product(range(rows), repeat=2):
        difference = (scores[other] - scores[one]) * relative
        gaps[one, other] = difference.mean()
        off = difference - gaps[one, other] * relative
        squared[one, other] = (off**2).sum() / (units - 1) / units
    usual = squared[~np.eye(rows, dtype=bool)].mean()
    errors = np.sqrt((PRIOR_DEGREES * usual + (units - 1) * squared) / (PRIOR_DEGREES + units - 1))
    errors = np.maximum(np.maximum(errors, np.sqrt(squared)), 1e-6)
    return [float(max(gaps[row] / errors[row])) for row in range(rows)]


def enumerated_p(scores: Floats) -> Floats:
    """Over all ways to deal out the scores within units; the first unit stays, which changes nothing."""
    rows, units = scores.shape
    orders = [list(order) for order in permutations(range(rows))]
    largest = []
    for dealt in product(orders, repeat=units - 1):
        columns = [scores[:, 0], *(scores[order, unit + 1] for unit, order in enumerate(dealt))]
        largest.append(max(behind(np.column_stack(columns))))
    return np.array([np.mean(np.array(largest) >= value - 1e-9) for value in behind(scores)])


def near(p: Floats | float, draws: int) -> float:
    """Four standard errors of a simulated p."""
    return 4 * sqrt(float(np.max(np.asarray(p) * (1 - np.asarray(p)))) / draws) + 1.5 / draws


def test_of_two_rows_the_statistic_is_students() -> None:
    """The critical value is a quantile of scipy's |t| over all ways to swap the rows within units."""
    scores = np.random.default_rng(9).normal(size=(2, 10)) + np.array([[0.5], [0]])
    difference = scores[0] - scores[1]
    signs = np.array(list(product([1, -1], repeat=10)))
    of_scipy = np.abs(stats.ttest_1samp(difference * signs, 0, axis=1).statistic)
    t = stats.ttest_rel(scores[0], scores[1]).statistic
    assert max(behind(scores)) == pytest.approx(abs(t))
    for level in (0.04, 0.2, 0.5):
        low, high = np.quantile(of_scipy, [1 - level - 0.02, 1 - level + 0.02])
        assert low <= top_group(paired(scores), level).critical <= high
    one = top_group(paired(scores), 0.5, draws=1).critical
    assert np.abs(of_scipy - one).min() == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("shift", [0.0, 0.8, 1.5])
def test_of_two_rows_p_is_scipys(shift: float) -> None:
    scores = np.random.default_rng(int(10 * shift)).normal(size=(2, 9)) + np.array([[shift], [0]])

    def statistic(first: Floats, second: Floats) -> float:
        return abs(float(stats.ttest_rel(first, second).statistic))

    worse = int(scores.mean(axis=1).argmin())
    of_scipy = stats.permutation_test(
        scores, statistic, permutation_type="samples", n_resamples=np.inf, alternative="greater"
    ).pvalue
    found = top_group(paired(scores))
    assert found.p[1 - worse] == 1
    enumerated = enumerated_p(scores)[worse]
    assert found.p[worse] == pytest.approx(enumerated, abs=near(enumerated, 4_999))
    assert float(of_scipy) == pytest.approx(enumerated, abs=1e-9)
    assert found.members.tolist() == (found.p > LEVEL).tolist()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("rows", "units"), [(3, 4), (4, 3), (2, 8)])
def test_p_is_that_of_all_arrangements(rows: int, units: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(1, 6, (rows, units)).astype(float)
    found = top_group(paired(scores), level=0)  # nobody leaves, so there is a single step
    expected = enumerated_p(scores)
    assert found.members.all()
    assert found.p == pytest.approx(expected, abs=near(expected, 4_999))


def test_unequal_units_weigh_as_much_as_they_hold() -> None:
    weights = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    scores = np.random.default_rng(8).normal(size=(2, 5)) + np.array([[1.5], [0]])
    observed = max(behind(scores, weights))
    flips = [np.where(np.array(turned), scores[::-1], scores) for turned in product([False, True], repeat=5)]
    expected = np.mean([max(behind(flipped, weights)) >= observed - 1e-9 for flipped in flips])
    found = top_group(Paired(scores, weights), level=0)
    assert found.p.min() == pytest.approx(expected, abs=near(float(expected), 4_999))


@pytest.mark.parametrize(("rows", "units"), [(2, 2), (2, 5), (2, 6), (3, 2), (3, 3), (4, 2), (4, 3), (5, 2)])
def test_the_clearest_outcome_has_the_p_that_separable_says(rows: int, units: int) -> None:
    scores = np.zeros((rows, units))
    scores[0], scores[-1] = 1, -1
    smallest = float(rows * (rows - 1)) ** (1 - units)
    if rows < 5:
        assert enumerated_p(scores)[-1] == pytest.approx(smallest)
    found = top_group(paired(scores))
    assert found.p[-1] == pytest.approx(smallest, abs=near(smallest, 4_999))
    assert separable(rows, units) == (not found.members[-1])
    assert separable(rows, units, smallest * 1.001)
    assert not separable(rows, units, smallest * 0.999)


def test_units_to_separate() -> None:
    assert [units_to_separate(rows) for rows in (2, 3, 4, 6, 12)] == [6, 3, 3, 2, 2]
    assert units_to_separate(2, 0.05) == 6
    assert units_to_separate(2, 0.5) == 2
    assert not separable(1, 100)
    assert not separable(12, 1)


@pytest.mark.parametrize("scores", [[[3.0, 4.0, 5.0, 1.0]], [[1.0], [5.0]]])
def test_one_row_or_one_unit_shuts_nobody_out(scores: list[list[float]]) -> None:
    found = top_group(paired(np.array(scores)))
    assert found.members.all()
    assert (found.p == 1).all()
    assert found.critical == np.inf


def test_an_obvious_best_row_is_found_and_so_is_a_pair_of_them() -> None:
    random = np.random.default_rng(0)
    scores = random.normal(0, 1, (6, 12)) + 2 * random.normal(0, 1, 12)
    scores[4] += 3
    assert top_group(paired(scores)).members.tolist() == [False] * 4 + [True, False]
    scores[1] = scores[4] + random.normal(0, 0.5, 12)
    assert top_group(paired(scores)).members.tolist() == [False, True, False, False, True, False]


def test_the_second_look_shuts_out_what_bad_rows_hid() -> None:
    random = np.random.default_rng(2)
    three = random.normal(0, 1, (3, 8)) + np.array([[1.5], [1.5], [0]])
    all_rows = np.vstack([three, random.normal(-30, 1, (6, 8))])
    one_look = top_group(paired(all_rows), level=1e-12).p  # nobody leaves
    found = top_group(paired(all_rows))
    assert one_look[2] > LEVEL
    assert found.p[2] <= LEVEL
    assert found.members.tolist() == [True, True, *[False] * 7]


def test_who_lies_less_far_behind_has_no_smaller_p() -> None:
    """Not even where a later look, without the worst rows, makes it smaller."""
    for seed in range(40):
        scores = np.random.default_rng(seed).normal(0, 1, (4, 7)) + np.array([[3.0], [1.2], [0.9], [0.6]])
        found = top_group(paired(scores), draws=199)
        p = found.p[np.argsort(behind(scores))]
        assert (np.diff(p) <= 1e-12).all()


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(2, 6),
    units=st.integers(2, 9),
    seed=st.integers(0, 1000),
    spread=st.sampled_from([0.0, 1.0, 3.0]),
    scale=st.sampled_from([1.0, -1.0, 1e-3, 1e7]),
)
def test_who_is_worse_has_a_smaller_p(rows: int, units: int, seed: int, spread: float, scale: float) -> None:
    random = np.random.default_rng(seed)
    scores = scale * (random.integers(1, 6, (rows, units)) + spread * np.arange(rows)[:, np.newaxis])
    found = top_group(paired(scores), draws=199)
    best = int(scores.mean(axis=1).argmax())
    assert found.members[best]
    assert found.p[best] == 1
    assert ((found.p <= LEVEL) == ~found.members).all()
    assert found.p.min() >= 1 / 200
    if (~found.members).any():
        assert found.p[found.members].min() >= found.p[~found.members].max()


def test_all_rows_share_what_units_add_and_the_order_of_rows_and_units_does_not_matter() -> None:
    random = np.random.default_rng(3)
    scores = random.normal(0, 1, (4, 9)) + np.array([[1.2], [0.6], [0.0], [0.3]])
    found = top_group(paired(scores))
    shifted = top_group(paired(scores + random.normal(0, 1e7, 9)))
    assert shifted.p == pytest.approx(found.p, abs=1e-9)
    order, units = [2, 0, 3, 1], random.permutation(9)
    again = top_group(paired(scores[order][:, units]))
    assert again.p == pytest.approx(found.p[order], abs=0.03)
    assert again.critical == pytest.approx(found.critical, abs=0.15)


def test_the_same_seed_is_the_same_result() -> None:
    data = paired(np.random.default_rng(3).normal(size=(4, 9)))
    assert top_group(data).p.tolist() == top_group(data).p.tolist()
    assert top_group(data).critical != top_group(data, seed=1).critical


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e6])
def test_rounding_errors_in_every_unit_shut_nobody_out(scale: float) -> None:
    one, other = np.full(12, 0.3 * scale), np.full(12, np.nextafter(0.3 * scale, np.inf))
    found = top_group(paired(np.array([one, other, one])))
    assert (found.p == 1).all()


def test_rows_that_lie_apart_by_the_same_everywhere_are_told_apart() -> None:
    """Nothing varies, so there is no scatter to measure with; and the scores are no round numbers."""
    base = np.random.default_rng(0).normal(70, 20, 8)
    found = top_group(paired(np.array([base + 0.1, base, base + 0.2])))
    assert found.members.tolist() == [False, False, True]


def shut_out_wrongly(scores: list[Floats], best: slice) -> int:
    return sum(not top_group(paired(each), draws=199, seed=n).members[best].all() for n, each in enumerate(scores))


def test_of_equal_rows_one_is_shut_out_as_seldom_as_the_level_says() -> None:
    random = np.random.default_rng(12)
    equal = [np.round(random.normal(0, 1, (5, 7)) + random.normal(0, 2, 7)) for _ in range(400)]
    wrong = shut_out_wrongly(equal, slice(None))
    interval = stats.binomtest(wrong, 400).proportion_ci(0.99)
    assert interval.low <= LEVEL
    assert interval.high >= LEVEL / 2


def test_bad_rows_that_never_vary_do_not_make_the_best_look_surer() -> None:
    random = np.random.default_rng(13)
    mixed = [np.vstack([random.normal(4, 1, (2, 6)), np.ones((10, 6))]) for _ in range(300)]
    assert stats.binomtest(shut_out_wrongly(mixed, slice(2)), 300).proportion_ci(0.99).low <= LEVEL
    assert shut_out_wrongly(mixed, slice(2)) <= 21


def test_many_units_are_put_together() -> None:
    random = np.random.default_rng(2)
    scores = random.normal(0, 1, (2, 400)) + np.array([[0.3], [0]])
    found = top_group(paired(scores))
    assert found.members.tolist() == [True, False]
    assert found.p[1] == pytest.approx(stats.ttest_rel(*scores).pvalue, abs=0.01)
