"""Rearrangements keep what they should, and p and the critical value belong together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tipbench.statistics import units as module
from tipbench.statistics.units import Floats, NullDistribution, Paired, flipped_signs, paired, shuffled_rows


def in_turn(values: list[float]) -> NullDistribution:
    """A chance whose statistics are these."""
    array = np.array(values)
    return NullDistribution(paired(np.ones((1, 1))), lambda *_: array, lambda scores, _: scores, len(values), 0)


@settings(max_examples=100)
@given(
    values=st.lists(st.integers(0, 20).map(float), min_size=1, max_size=60),
    observed=st.integers(-1, 21),
    level=st.sampled_from([0.001, 0.04, 0.05, 0.2, 0.5]),
)
def test_p_is_counted_and_agrees_with_the_critical_value(values: list[float], observed: int, level: float) -> None:
    chance = in_turn(values)
    p = chance.p(np.array([float(observed)]))[0]
    assert p == (1 + sum(value >= observed for value in values)) / (1 + len(values))
    assert (p <= level + 1e-12) == (observed > chance.critical(level))


def test_the_critical_value_is_a_quantile() -> None:
    values = np.random.default_rng(2).permutation(4_999).astype(float)
    chance = in_turn(values.tolist())
    for level in (0.04, 0.05, 0.5):
        assert chance.critical(level) == pytest.approx(np.quantile(values, 1 - level, method="higher"), abs=0.02)
    assert in_turn([1.0] * 10).critical(0.05) == np.inf


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_rounding_error_below_is_as_much(size: float) -> None:
    chance = in_turn([size * (1 - 1e-13)] * 9)
    assert chance.p(np.array([size, size * 1.001])).tolist() == [1, 0.1]


def test_many_arrangements_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 100)
    parts: list[int] = []

    def rearrange(data: Paired, times: int, random: np.random.Generator) -> Floats:
        parts.append(times)
        return np.zeros((times, 1, 1))

    NullDistribution(paired(np.ones((3, 5))), rearrange, lambda scores, _: scores[:, 0, 0], 20, 0)
    assert parts == [6, 6, 6, 2]


def test_shuffling_leaves_units_together_and_is_even() -> None:
    data = paired(np.arange(12.0).reshape(3, 4))
    found = shuffled_rows(data, 6_000, np.random.default_rng(0))
    assert found.shape == (6_000, 3, 4)
    assert (np.sort(found, axis=1) == data.scores).all()
    orders, counts = np.unique(found[:, :, 1], axis=0, return_counts=True)
    assert len(orders) == 6
    assert stats.chisquare(counts).pvalue > 0.001
    together = np.unique(found[:, 0, :2], axis=0, return_counts=True)[1]
    assert len(together) == 9
    assert stats.chisquare(together).pvalue > 0.001


def test_flipping_turns_whole_units() -> None:
    data = paired(np.arange(1.0, 9.0).reshape(2, 4))
    found = flipped_signs(data, 4_000, np.random.default_rng(0))
    signs = found / data.scores
    assert set(signs.ravel().tolist()) == {-1, 1}
    assert (signs[:, 0] == signs[:, 1]).all()
    counts = np.unique(signs[:, 0], axis=0, return_counts=True)[1]
    assert len(counts) == 16
    assert stats.chisquare(counts).pvalue > 0.001
