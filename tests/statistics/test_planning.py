"""How many units are needed is what statsmodels works out."""

from math import ceil, inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.power import NormalIndPower

from tipbench.statistics.planning import POWER, more_units, units_needed
from tipbench.statistics.top_group import critical_at_many_units
from tipbench.statistics.winner import units_to_win


@settings(deadline=None, max_examples=40)
@given(
    gap=st.floats(0.05, 2),
    scatter=st.floats(0.1, 4),
    critical=st.floats(1.5, 4),
    power=st.sampled_from([0.6, 0.8, 0.95]),
)
def test_so_many_units_have_that_power_as_statsmodels_has_it(
    gap: float, scatter: float, critical: float, power: float
) -> None:
    needed = units_needed(gap, scatter, critical, power)
    of_statsmodels = NormalIndPower().power(
        gap / scatter, needed, stats.norm.sf(critical), ratio=0, alternative="larger"
    )
    assert of_statsmodels == pytest.approx(power, abs=1e-9)
    assert units_needed(-gap, scatter, critical, power) == units_needed(gap, scatter, critical, power)


@pytest.mark.parametrize(("gap", "critical"), [(0.2, 1.645), (0.3, 2.5), (0.5, 3.3)])
def test_it_is_the_number_that_statsmodels_solves_for(gap: float, critical: float) -> None:
    expected = NormalIndPower().solve_power(
        effect_size=gap / 1.2, alpha=stats.norm.sf(critical), power=POWER, ratio=0, alternative="larger"
    )
    assert units_needed(gap, 1.2, critical) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize(("gap", "scatter"), [(0, 1), (0, 0), (1e-17, 0.5), (-5e-324, 1)])
def test_no_gap_takes_forever(gap: float, scatter: float) -> None:
    assert units_needed(gap, scatter, 2) == inf
    assert more_units(gap, scatter, 2, 10, 2) == inf


def test_where_nothing_is_ever_beyond_chance_it_takes_forever() -> None:
    assert units_needed(1, 0, inf) == units_needed(1, 1, inf) == more_units(1, 1, inf, 3, 2) == inf


def test_a_power_that_any_number_has_takes_none() -> None:
    assert units_needed(1, 1, 0.5, power=0.1) == 0


def test_more_units_are_those_missing_and_at_least_one() -> None:
    needed = units_needed(0.5, 1, 2)
    assert more_units(0.5, 1, 2, 10, 2) == ceil(needed) - 10 == 23
    assert more_units(0.5, 1, 2, 32, 2) == 1
    assert more_units(0.5, 1, 2, 500, 2) == 1
    assert more_units(0.5, 0, 2, 5, 2) == 1


def test_many_units_ask_for_fewer_standard_errors_than_few() -> None:
    few, many = units_needed(0.5, 1, 4), units_needed(0.5, 1, 3)
    found = more_units(0.5, 1, 4, 4, 3) + 4
    assert many < found < few
    at_found = 3 + (4 - 3) * 4 / found
    assert found == pytest.approx(units_needed(0.5, 1, at_found), abs=1)


@pytest.mark.parametrize("rows", [2, 3, 12, 30])
def test_the_critical_value_at_many_units_is_tukeys(rows: int) -> None:
    expected = stats.studentized_range.ppf(0.96, rows, 100_000) / sqrt(2)
    assert critical_at_many_units(rows, 0.04) == pytest.approx(expected, rel=0.02)


def spread_out(random: np.random.Generator, rivals: int, units: int) -> np.ndarray:
    """Differences of a leader with rivals that are all as good: each has the leader's own scatter in it."""
    drawn = random.normal(size=(rivals + 1, units))
    return np.asarray(drawn[0] - drawn[1:], dtype=np.float64)


@pytest.mark.parametrize(("rivals", "gap"), [(1, 0.5), (3, 0.7), (11, 0.5), (11, 1.0)])
def test_so_many_units_prove_a_winner_as_often_as_asked(rivals: int, gap: float) -> None:
    random = np.random.default_rng(rivals)
    needed = int(units_to_win(spread_out(random, rivals, 4_000) + gap, 0.04))
    won = 0
    for _ in range(600):
        p = stats.ttest_1samp(spread_out(random, rivals, needed) + gap, 0, axis=1)
        won += bool(((p.pvalue <= 0.04) & (p.statistic > 0)).all())
    assert won / 600 == pytest.approx(POWER, abs=0.06)


def test_more_rivals_take_more_units_and_nobody_wins_with_fewer_than_six() -> None:
    drawn = spread_out(np.random.default_rng(4), 5, 50) + 0.6
    assert units_to_win(drawn[:1], 0.04) < units_to_win(drawn, 0.04) < inf
    assert units_to_win(drawn, 0.04) == units_to_win(drawn, 0.04)
    assert units_to_win(np.full((3, 8), 2.0), 0.04) == 6
    behind = drawn.copy()
    behind[2] -= 5
    assert units_to_win(behind, 0.04) == inf
    assert units_to_win(np.zeros((1, 8)), 0.04) == inf
