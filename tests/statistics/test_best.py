"""Probabilities of being the best, held against sums that can be worked out and a slow loop."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from tipbench.statistics.top_group import draw_means, expected_loss, probability_best
from tipbench.statistics.units import Paired, paired

Floats = NDArray[np.float64]


def best(data: Paired, draws: int = 10_000) -> Floats:
    return probability_best(draw_means(data, draws))


def slowly(scores: Floats, weights: Floats, draws: int) -> list[float]:
    random = Random(5)
    rows, units = scores.shape
    wins = [0.0] * rows
    for _ in range(draws):
        dealt = scores[:, random.randrange(units)].tolist()
        random.shuffle(dealt)
        unseen = random.expovariate(1)
        seen = [random.expovariate(1) * weight * units for weight in weights]
        sums = [
            sum(w * score for w, score in zip(seen, row, strict=True)) + unseen * other
            for row, other in zip(scores, dealt, strict=True)
        ]
        best = [row for row in range(rows) if sums[row] > max(sums) - 1e-9]
        for row in best:
            wins[row] += 1 / len(best)
    return [win / draws for win in wins]


@pytest.mark.parametrize("units", [1, 2, 4, 7])
@pytest.mark.parametrize("offset", [0.0, -10.0, 1e6])
def test_a_row_that_is_ahead_everywhere_is_the_best_unless_the_unseen_unit_outweighs_all(
    units: int, offset: float
) -> None:
    """It does so if it gets more than half of the weight and if the rows change places in it."""
    expected = 1 - stats.beta.sf(0.5, 1, units) / 2
    found = best(paired(np.array([np.full(units, 1.0), np.zeros(units)]) + offset), draws=40_000)
    assert found == pytest.approx([expected, 1 - expected], abs=0.006)


def test_four_units_ahead_are_97_percent() -> None:
    assert best(paired(np.array([[1.0] * 4, [0.0] * 4])))[0] == pytest.approx(1 - 1 / 32, abs=0.006)


def test_two_units_that_disagree() -> None:
    """Worked out: ahead by 3 in one and behind by 1 in the other; by the weights of three exponentials."""
    first, second, unseen = np.random.default_rng(0).standard_exponential((3, 400_000))
    sums = [3 * first - second + unseen * other for other in (3, -3, 1, -1)]
    expected = np.mean([each > 0 for each in sums])
    assert best(paired(np.array([[3.0, 0.0], [0.0, 1.0]])), draws=40_000)[0] == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("seed", range(4))
def test_it_is_what_a_slow_loop_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows, units = (int(n) for n in random.integers(2, 6, 2))
    scores = random.integers(1, 6, (rows, units)).astype(float)
    weights = random.dirichlet(np.full(units, 3))
    found = best(Paired(scores, weights), draws=20_000)
    assert found == pytest.approx(slowly(scores, weights, 5_000), abs=0.032)


@settings(deadline=None, max_examples=60)
@given(
    scores=st.integers(1, 7).flatmap(
        lambda units: st.lists(st.lists(st.integers(-3, 3), min_size=units, max_size=units), min_size=1, max_size=5)
    ),
    scale=st.sampled_from([1e-12, 1.0, 1e9]),
    up=st.sampled_from([0.5, 2.0, 10.0]),
)
def test_they_add_up_to_1_and_a_better_row_is_not_less_likely(scores: list[list[int]], scale: float, up: float) -> None:
    data = paired(np.array(scores) * scale)
    found = best(data, draws=4_000)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()
    lifted = data.scores + up * scale * np.eye(data.rows)[:, :1]
    assert best(paired(lifted), draws=4_000)[0] >= found[0] - 0.03


@pytest.mark.parametrize("score", [0.0, -3.0, 4.2])
def test_equal_rows_share(score: float) -> None:
    assert best(paired(np.full((4, 3), score))).tolist() == [0.25] * 4
    mixed = np.array([[5.0] * 9, [5.0] * 9, [1.0] * 9]) + score
    assert best(paired(mixed)) == pytest.approx([0.5, 0.5, 0], abs=0.01)


def test_rounding_errors_do_not_decide() -> None:
    found = best(paired(np.array([[0.1 + 0.2] * 20, [0.3] * 20])))
    assert found.tolist() == [0.5, 0.5]


def test_only_order_of_draws_hangs_on_the_order_of_rows_and_units() -> None:
    random = np.random.default_rng(6)
    scores = random.normal(size=(4, 6))
    found = best(paired(scores), draws=20_000)
    order = [3, 1, 0, 2]
    again = best(paired(scores[order][:, random.permutation(6)]), draws=20_000)
    assert again == pytest.approx(found[order], abs=0.02)
    assert best(paired(scores)).tolist() == best(paired(scores)).tolist()


def test_larger_units_count_for_more() -> None:
    scores = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    even, heavy = Paired(scores, np.full(3, 1 / 3)), Paired(scores, np.array([0.8, 0.1, 0.1]))
    assert best(even)[0] < 0.35
    assert best(heavy)[0] > 0.65


def test_the_expected_loss_is_what_a_slow_loop_finds() -> None:
    random = Random(7)
    scores = np.array([[3.0, 5.0, 4.0], [4.0, 4.0, 4.5], [2.0, 6.0, 1.0]])
    weights = np.array([0.5, 0.25, 0.25])
    losses = []
    for _ in range(40_000):
        dealt = scores[:, random.randrange(3)].tolist()
        random.shuffle(dealt)
        shares = [*(random.expovariate(1) * weight * 3 for weight in weights), random.expovariate(1)]
        means = [np.dot(shares, [*row, other]) / sum(shares) for row, other in zip(scores, dealt, strict=True)]
        losses.append(max(means) - means[1])
    found = expected_loss(draw_means(Paired(scores, weights), 40_000), 1)
    assert found == pytest.approx(float(np.mean(losses)), abs=0.02)


def test_picking_one_of_equal_rows_costs_nothing() -> None:
    assert expected_loss(draw_means(paired(np.full((3, 4), 7.0))), 0) == pytest.approx(0, abs=1e-12)


def test_the_more_units_agree_the_less_the_leader_is_expected_to_lose() -> None:
    def loss(units: int) -> float:
        return expected_loss(draw_means(paired(np.array([np.full(units, 6.0), np.full(units, 5.0)]))), 0)

    assert 0.1 > loss(2) > loss(4) > loss(16) >= 0
