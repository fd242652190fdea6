"""Kappa and alpha are those of scikit-learn, of the package krippendorff, and of published examples."""

import time
from collections.abc import Sequence
from random import Random
from typing import get_args

import krippendorff
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from tipbench.statistics.agreement import Level, krippendorff_alpha, weighted_kappa

LEVELS: tuple[Level, ...] = get_args(Level)

# Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), example C: 4 coders, 12 units.
CODERS: list[list[int | None]] = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


@st.composite
def two_raters(draw: st.DrawFn) -> tuple[list[int], list[int], int, int]:
    low = draw(st.integers(-3, 3))
    high = low + draw(st.integers(0, 10))
    scores = st.integers(low, high)
    pairs = draw(st.lists(st.tuples(scores, scores), min_size=1, max_size=40))
    return [a for a, _ in pairs], [b for _, b in pairs], low, high


@st.composite
def raters(draw: st.DrawFn) -> list[list[int | None]]:
    units = draw(st.integers(0, 25))
    rating = st.none() | st.integers(0, draw(st.integers(0, 6)))
    return draw(st.lists(st.lists(rating, min_size=units, max_size=units), max_size=6))


@settings(deadline=None, max_examples=100)
@given(raters=two_raters())
@example(raters=([1, 5, 3], [3, 3, 3], 1, 5))
@example(raters=([2, 2, 2], [4, 4, 4], 1, 5))
@example(raters=([1, 5], [5, 1], 1, 5))
def test_kappa_is_scikit_learns(raters: tuple[list[int], list[int], int, int]) -> None:
    first, second, low, high = raters
    found = weighted_kappa(first, second, low, high)
    if len({*first, *second}) == 1:
        assert found is None
        return
    labels = list(range(low, high + 1))
    assert found == pytest.approx(cohen_kappa_score(first, second, weights="quadratic", labels=labels), abs=1e-9)
    assert weighted_kappa(second, first, low, high) == found


def test_kappa_is_what_r_prints() -> None:
    """kappa2(anxiety[, 2:3], "squared") of R's package irr, which numbers the categories that occur: 6 is the fifth."""
    second = [3, 6, 4, 6, 2, 4, 2, 4, 3, 3, 2, 3, 3, 3, 2, 2, 1, 3, 3, 4]
    third = [2, 1, 4, 4, 3, 2, 1, 6, 1, 1, 1, 2, 3, 3, 1, 1, 3, 3, 2, 2]
    numbers = {1: 1, 2: 2, 3: 3, 4: 4, 6: 5}
    found = weighted_kappa([numbers[score] for score in second], [numbers[score] for score in third], 1, 5)
    assert found == pytest.approx(0.2520325, abs=5e-8)


def test_kappa_does_not_depend_on_how_far_the_scale_goes() -> None:
    assert weighted_kappa([2, 3, 3], [2, 2, 3], 1, 5) == weighted_kappa([2, 3, 3], [2, 2, 3], 2, 3)


@pytest.mark.parametrize(("first", "second"), [([], []), ([3], [3]), ([3, 3, 3], [3, 3, 3])])
def test_kappa_is_undefined_without_any_difference_to_be_expected(first: list[int], second: list[int]) -> None:
    assert weighted_kappa(first, second, 1, 5) is None


@pytest.mark.parametrize(("first", "second"), [([1, 2], [1]), ([1, 6], [1, 2]), ([1, 2], [0, 2])])
def test_scores_that_do_not_fit_are_refused(first: list[int], second: list[int]) -> None:
    with pytest.raises(ValueError, match=r"shorter|outside 1\.\.5"):
        weighted_kappa(first, second, 1, 5)


@pytest.mark.parametrize("level", LEVELS)
@settings(deadline=None, max_examples=100)
@given(ratings=raters())
@example(ratings=[[1, 1, 1], [2, 2, 2]])
@example(ratings=[[1, None, 5], [1, 4, None], [None, None, None]])
@example(ratings=[[0, 0, 6], [0, 0, 6], [0, 3, None]])
def test_alpha_is_that_of_the_package_krippendorff(level: Level, ratings: list[list[int | None]]) -> None:
    found = krippendorff_alpha(ratings, level)
    pairable = {value for unit in _units(ratings) if len(unit) > 1 for value in unit}
    if len(pairable) < 2:
        assert found is None
        return
    expected = krippendorff.alpha(_with_nan(ratings), level_of_measurement=level)
    assert found == pytest.approx(expected, abs=1e-9)
    assert krippendorff_alpha(ratings[::-1], level) == pytest.approx(found)


@pytest.mark.parametrize(("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_is_the_published_one(level: Level, published: float) -> None:
    found = krippendorff_alpha(CODERS, level)
    assert found is not None
    assert round(found, 3) == published


def test_alpha_is_ordinal_unless_told() -> None:
    assert krippendorff_alpha(CODERS) == krippendorff_alpha(CODERS, "ordinal")


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        krippendorff_alpha([[1, 2], [1]])


def test_five_raters_of_5000_units_take_no_time() -> None:
    random = Random(5)
    ratings = [[random.choice([None, *range(1, 11)]) for _ in range(5000)] for _ in range(5)]
    start = time.perf_counter()
    found = krippendorff_alpha(ratings)
    assert time.perf_counter() - start < 0.5
    assert found == pytest.approx(0, abs=0.03)


def _units(ratings: Sequence[Sequence[int | None]]) -> list[list[int]]:
    return [[rating for rating in unit if rating is not None] for unit in zip(*ratings, strict=True)]


def _with_nan(ratings: Sequence[Sequence[int | None]]) -> list[list[float]]:
    return [[float("nan") if rating is None else float(rating) for rating in row] for row in ratings]
