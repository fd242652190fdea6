"""A winner beats each other row by scipy's permutation test, and is seldom a false one."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tipbench.statistics.top_group import top_group
from tipbench.statistics.units import Paired, paired
from tipbench.statistics.winner import LEVEL, leader_against_others

Floats = NDArray[np.float64]


def share_of_patterns(differences: list[float], weights: list[float]) -> float:
    """How many of all patterns of signs have a mean difference that is at least as large, one after the other."""

    def size(signs: tuple[int, ...]) -> float:
        return abs(sum(sign * one * weight for sign, one, weight in zip(signs, differences, weights, strict=True)))

    observed = size((1,) * len(weights))
    patterns = list(product((1, -1), repeat=len(weights)))
    return sum(size(signs) >= observed - 1e-5 for signs in patterns) / len(patterns)


@settings(deadline=None, max_examples=40)
@given(rows=st.integers(2, 5), units=st.integers(1, 8), seed=st.integers(0, 10_000), lead=st.sampled_from([0, 1, 3]))
def test_p_is_that_of_all_patterns_of_signs(rows: int, units: int, seed: int, lead: int) -> None:
    random = np.random.default_rng(seed)
    scores = random.integers(1, 6, (rows, units)).astype(float)
    scores[rows // 2] += lead
    weights = random.integers(1, 4, units).astype(float)
    weights /= weights.sum()
    found = leader_against_others(Paired(scores, weights))
    means = [sum(score * weight for score, weight in zip(row, weights, strict=True)) for row in scores]
    assert means[found.leader] == pytest.approx(max(means))
    for row in range(rows):
        differences = [float(one) for one in scores[found.leader] - scores[row]]
        assert found.p[row] == pytest.approx(share_of_patterns(differences, [float(one) for one in weights]))
    others = [found.p[row] for row in range(rows) if row != found.leader]
    assert found.weakest_p == max(others)
    assert found.winner(0.1) == (found.leader if max(others) <= 0.1 else None)


@pytest.mark.parametrize("units", [7, 20, 60])
def test_each_pair_has_scipys_p_of_the_t_statistic(units: int) -> None:
    """With units of equal weight, a pattern's mean and its t statistic come in the same order."""
    scores = np.random.default_rng(units).normal(size=(3, units)) + np.array([[0.5], [0.1], [0.2]])
    found = leader_against_others(paired(scores))

    def statistic(first: Floats, second: Floats) -> float:
        return abs(float(stats.ttest_rel(first, second).statistic))

    for row in {0, 1, 2} - {found.leader}:
        of_scipy = stats.permutation_test(
            (scores[found.leader], scores[row]),
            statistic,
            permutation_type="samples",
            n_resamples=np.inf if units < 10 else 1_999,
            alternative="greater",
            rng=np.random.default_rng(0),
        ).pvalue
        assert found.p[row] == pytest.approx(float(of_scipy), abs=1e-9 if units < 10 else 0.05)


def test_one_pair_that_chance_explains_is_enough_against_a_winner() -> None:
    random = np.random.default_rng(5)
    far = random.normal(0, 1, (4, 12)) + np.array([[6.0], [0.0], [0.0], [0.0]])
    assert leader_against_others(paired(far)).winner() == 0
    near = np.vstack([far, far[0] + random.normal(0, 1, 12)])
    found = leader_against_others(paired(near))
    assert found.winner() is None
    assert sorted(found.p)[2] <= LEVEL < found.weakest_p


def test_a_winner_needs_no_correction_for_the_number_of_rows() -> None:
    """Where the top group, which looks at all rows together, still holds several."""
    random = np.random.default_rng(5)
    scores = random.normal(0, 1, (12, 24)) + np.array([[1.2], *[[0.0]] * 11])
    assert leader_against_others(paired(scores)).winner() == 0
    assert top_group(paired(scores)).members.sum() > 1


@pytest.mark.parametrize(("units", "winner"), [(1, None), (2, None), (5, None), (6, 1), (40, 1)])
def test_differences_that_never_vary_are_no_proof_with_few_units(units: int, winner: int | None) -> None:
    scores = np.array([[5.1], [9.2], [5.3]]) + np.random.default_rng(0).normal(0, 20, units)
    found = leader_against_others(paired(scores))
    assert found.winner() == winner
    assert found.weakest_p == pytest.approx(max(2.0 ** (1 - units), 1 / 5_000), abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 100.0, 1e6])
def test_rounding_errors_and_ties_name_nobody(scale: float) -> None:
    one, other = np.full(12, 0.3 * scale), np.full(12, np.nextafter(0.3 * scale, np.inf))
    assert leader_against_others(paired(np.array([one, other, one]))).p.tolist() == [1, 1, 1]
    tied = np.array([[1.0, 2.0] * 6, [2.0, 1.0] * 6]) * scale
    assert leader_against_others(paired(tied)).weakest_p == 1


def test_a_row_alone_wins_nothing() -> None:
    assert leader_against_others(paired(np.arange(8.0).reshape(1, 8))).winner(1 - 1e-9) is None


def test_many_units_are_put_together_and_the_result_is_the_same_again() -> None:
    scores = np.random.default_rng(2).normal(0, 1, (2, 900)) + np.array([[0.1], [0]])
    found = leader_against_others(paired(scores))
    assert found.weakest_p == pytest.approx(float(stats.ttest_rel(*scores).pvalue), abs=0.02)
    assert found.p.tolist() == leader_against_others(paired(scores)).p.tolist()


@pytest.mark.parametrize(("best", "others"), [(2, 0), (2, 3), (6, 0)])
def test_of_tied_rows_one_is_named_as_seldom_as_the_level_says(best: int, others: int) -> None:
    """Also together with the top group, and whatever all rows share in a unit."""
    random = np.random.default_rng(best + others)
    behind = np.array([*[0.0] * best, *[2.0] * others])[:, np.newaxis]
    alone = together = 0
    for number in range(400):
        grid = paired(np.round(random.normal(0, 1, (best + others, 10)) + random.normal(0, 2, 10) - behind, 1))
        named = leader_against_others(grid).winner() is not None
        alone += named
        together += named or top_group(grid, draws=199, seed=number).members.sum() == 1
    assert stats.binomtest(together, 400).proportion_ci(0.99).low <= 0.05
    assert stats.binomtest(alone, 400).proportion_ci(0.99).low <= LEVEL
    if best == 2:
        assert stats.binomtest(alone, 400).proportion_ci(0.99).high >= LEVEL / 2, "nor far seldomer"
