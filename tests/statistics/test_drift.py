"""A judge's offset, kappa and consistency, with intervals that hold what they promise and are never a point."""

from math import atanh, sqrt, tanh
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from tipbench.statistics.agreement import weighted_kappa
from tipbench.statistics.drift import Consistency, Kappa, consistency, kappa, offset

SCALE = [1, 2, 3, 4, 5]
PAIRS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=30)


def test_the_offset_is_the_mean_difference_with_scipys_interval() -> None:
    given_scores, reference = [4, 5, 3, 4, 5, 2, 4, 5], [3, 5, 3, 3, 4, 2, 4, 3]
    found = offset(given_scores, reference)
    expected = stats.ttest_rel(given_scores, reference).confidence_interval(0.95)
    assert (found.mean, found.n) == (0.625, 8)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-3)


def test_a_judge_who_never_errs_is_not_beyond_doubt() -> None:
    few, many = offset(SCALE, SCALE), offset(SCALE * 20, SCALE * 20)
    assert (few.mean, many.mean) == (0, 0)
    assert few.low < many.low < 0 < many.high < few.high


def test_scores_without_their_reference_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        offset([1, 2], [1])
    with pytest.raises(ValueError, match="shorter"):
        kappa([1, 2], [1], 1, 5)


def test_items_scored_twice() -> None:
    found = consistency([(3, 3), (4, 5), (5, 4), (2, 2), (1, 3)])
    differences = [0, 1, 1, 0, 2]
    assert found == Consistency(mean_difference=0.8, same=0.4, n=5, high=found.high)
    assert found.high == pytest.approx(0.8 + stats.t.ppf(0.975, 4) * stats.sem(differences), abs=1e-3)


def test_scoring_the_same_twice_leaves_room_for_a_difference() -> None:
    found = consistency([(3, 3)] * 20)
    assert (found.mean_difference, found.same) == (0, 1)
    assert found.high == pytest.approx(stats.t.ppf(0.975, 19) / 20, abs=1e-4)


def test_no_items_have_neither_offset_nor_consistency() -> None:
    with pytest.raises(ValueError, match="no values"):
        offset([], [])
    with pytest.raises(ValueError, match="no values"):
        consistency([])


def test_kappas_interval_is_the_jackknife_on_fishers_scale() -> None:
    random = Random(3)
    reference = [random.choice(SCALE) for _ in range(25)]
    scores = [min(5, max(1, score + random.choice([-1, 0, 0, 1]))) for score in reference]

    def z(leave: int | None) -> float:
        kept = [i for i in range(25) if i != leave]
        first, second = [scores[i] for i in kept], [reference[i] for i in kept]
        return atanh(cohen_kappa_score(first, second, weights="quadratic", labels=SCALE))

    left_out = [z(i) for i in range(25)]
    mean = sum(left_out) / 25
    error = sqrt(24 / 25 * sum((value - mean) ** 2 for value in left_out))
    margin = stats.t.ppf(0.975, 24) * error
    found = kappa(scores, reference, 1, 5)
    assert found.value == weighted_kappa(scores, reference, 1, 5)
    assert (found.low, found.high) == pytest.approx((tanh(z(None) - margin), tanh(z(None) + margin)), abs=1e-6)


@settings(deadline=None, max_examples=100)
@given(pairs=PAIRS)
@example(pairs=[(1, 5), (5, 1), (2, 4), (4, 2)])
@example(pairs=[(3, 4), (3, 4), (4, 3)])
@example(pairs=[(5, 5), (5, 5), (5, 4), (5, 5)])
@example(pairs=[(3, 1), (3, 5), (3, 2), (3, 4)])
def test_an_interval_holds_its_value_and_is_never_a_point(pairs: list[tuple[int, int]]) -> None:
    scores, reference = [a for a, _ in pairs], [b for _, b in pairs]
    agreement = kappa(scores, reference, 1, 5)
    assert -1 <= agreement.low < agreement.high <= 1
    assert agreement.value is None or agreement.low <= agreement.value <= agreement.high
    drift = offset(scores, reference)
    assert drift.low < drift.mean < drift.high
    again = consistency(pairs)
    assert 0 <= again.mean_difference < again.high
    assert abs(drift.mean) <= again.mean_difference + 1e-12


@pytest.mark.parametrize(
    ("scores", "reference", "value"),
    [([], [], None), ([4, 4, 4], [4, 4, 4], None), ([1], [2], 0), ([1, 2], [1, 2], 1)],
)
def test_where_nothing_is_known_the_interval_is_everything(
    scores: list[int], reference: list[int], value: float | None
) -> None:
    assert kappa(scores, reference, 1, 5) == Kappa(value, -1, 1)


def test_more_items_in_agreement_make_it_surer() -> None:
    lows = [kappa(SCALE * times, SCALE * times, 1, 5).low for times in (1, 2, 10, 100)]
    assert lows == sorted(lows)
    assert lows[0] < 0.5
    assert lows[-1] > 0.99


def test_agreement_that_rests_on_one_item_proves_little() -> None:
    scores = [3] * 49 + [4]
    found = kappa(scores, scores, 1, 5)
    assert found.value == 1
    assert found.low < 0


@pytest.mark.parametrize("slips", [0.05, 0.2, 0.6])
@pytest.mark.parametrize("weights", [[1, 1, 1, 1, 1], [1, 2, 6, 10, 3]])
def test_kappas_interval_covers_the_truth(weights: list[int], slips: float) -> None:
    """30 items, 400 times over; the plain jackknife would cover 71 % to 95 %."""
    random = Random(7)

    def judged(n: int) -> tuple[list[int], list[int]]:
        reference = random.choices(SCALE, weights, k=n)
        steps = random.choices([0, -1, 1, -2, 2], [1 - slips, slips / 3, slips / 3, slips / 6, slips / 6], k=n)
        return [min(5, max(1, due + step)) for due, step in zip(reference, steps, strict=True)], reference

    truth = weighted_kappa(*judged(50_000), 1, 5)
    assert truth is not None
    found = [kappa(*judged(30), 1, 5) for _ in range(400)]
    assert sum(one.low <= truth <= one.high for one in found) / 400 > 0.92
