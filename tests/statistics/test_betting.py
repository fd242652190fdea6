"""Bets against every row: held against a slow, plain implementation, against chance, and against Monte Carlo."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.statistics.betting import (
    CLAIMS,
    Claim,
    Rules,
    decide,
    expected_gain,
    positive_part_of_t,
    wealth_for,
)

STAKES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 0.98)


class PlainAccounts:
    """The same bets in plain Python, item by item, as one would write them down; no row is parked."""

    def __init__(self, scores: Sequence[Sequence[float]], claim: Claim, pool: int, wealth: float) -> None:
        rows = len(scores[0])
        left = list(range(rows))
        self.out_after: list[int | None] = [None] * rows
        self.wealth = [1.0] * rows
        fixed = [[1.0] * len(STAKES) for _ in range(rows)]
        adaptive = [1.0] * rows
        taken = 0
        while taken < len(scores) and len(left) > 1:
            batch = range(taken, min(taken + 4, len(scores)))
            for n in batch:
                past = {row: [scores[item][row] for item in range(n)] for row in left}
                order = sorted(left, key=lambda row: (-round(sum(past[row]), 9), row))
                for row in left:
                    rival = order[0] if row != order[0] else order[1]
                    differences = [a - b for a, b in zip(past[rival], past[row], strict=True)]
                    total = sum(differences)
                    share = total / (pool - n) if claim == "pool" else 0.0
                    top = 1 - share
                    d = scores[n][rival] - scores[n][row] + share
                    if top < -1e-9:
                        adaptive[row] = math.inf
                        continue
                    mean = total / (n + 4)
                    variance = (sum(one**2 for one in differences) + 0.16) / (n + 4) - mean**2
                    expected = mean + share
                    stake = min(max(expected / (variance + expected**2), 0.0), 0.95 / max(top, 1e-12))
                    adaptive[row] *= max(1 + stake * d, 0)
                    for number, each in enumerate(STAKES):
                        fixed[row][number] *= max(1 + each / max(1, top) * d, 0)
            taken = batch[-1] + 1
            for row in left:
                self.wealth[row] = (sum(fixed[row]) / len(STAKES) + adaptive[row]) / 2
            rich = [row for row in left if self.wealth[row] >= wealth]
            if len(rich) < len(left):
                for row in rich:
                    self.out_after[row] = taken
                    left.remove(row)
        self.taken = taken


def grids(rows: int, items: int) -> st.SearchStrategy[list[list[float]]]:
    score = st.integers(0, 15).map(lambda value: value / 15)
    return st.lists(st.lists(score, min_size=rows, max_size=rows), min_size=items, max_size=items)


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("claim", CLAIMS)
def test_accounts_are_those_of_a_plain_implementation(claim: Claim, data: st.DataObject) -> None:
    rows, items = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 24))
    scores = data.draw(grids(rows, items))
    wealth = data.draw(st.sampled_from([1.5, 3.0, 20.0]))  # low ones put rows out soon
    plain = PlainAccounts(scores, claim, items, wealth)
    found = decide(np.array(scores), Rules(claim, items, wealth))
    assert found.items == plain.taken
    assert found.out_after == tuple(plain.out_after)
    for row in range(rows):
        if math.isfinite(plain.wealth[row]):
            assert found.wealth[claim][row] == pytest.approx(plain.wealth[row], rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_accounts_do_not_depend_on_when_somebody_looks(data: st.DataObject) -> None:
    """As long as nobody goes out, the items are the same ones in batches of any size."""
    rows, items = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 24))
    scores = np.array(data.draw(grids(rows, items)))
    one_by_one, at_once = (
        decide(scores, Rules("new", items, wealth=math.inf, batch=batch)).wealth
        for batch in (1, data.draw(st.integers(2, 9)))
    )
    for claim in CLAIMS:
        assert at_once[claim] == pytest.approx(one_by_one[claim], rel=1e-9, abs=1e-12)


def test_a_row_that_cannot_win_any_more_stays_certainly_out() -> None:
    """In the account for the pool, even while the one for new scenarios goes on and the row comes first again."""
    scores = np.array([[1.0, 0.0]] * 7 + [[0.0, 1.0]] * 5)
    for items in (8, 10, 12):
        assert decide(scores[:items], Rules("new", 12, wealth=math.inf, batch=2)).wealth["pool"][1] == math.inf


def test_a_clear_winner_is_proven_and_the_rest_is_judged_no_more() -> None:
    random = np.random.default_rng(1)
    scores = np.clip(random.normal([0.8, 0.4, 0.2], 0.1, (60, 3)), 0, 1)
    found = decide(scores, Rules("new", 60))
    assert found.winner == 0
    assert found.is_over
    assert found.judgements < 60 * 3
    assert found.missing == ()


def test_equal_rows_are_not_told_apart() -> None:
    same = np.full((40, 3), 0.5)
    found = decide(same, Rules("new", 40))
    assert found.winner is None
    assert found.left == (0, 1, 2)


def test_what_is_missing_is_named_and_nothing_after_it_counts() -> None:
    scores = np.full((12, 3), 0.5)
    scores[5, 1] = np.nan
    found = decide(scores, Rules("pool", 12))
    assert found.items == 4
    assert found.missing == ((5, 1),)
    nothing = decide(np.full((8, 2), np.nan), Rules("pool", 8))
    assert (nothing.items, nothing.judgements) == (0, 0)
    assert nothing.missing == tuple((item, row) for item in range(4) for row in range(2))


def test_good_enough_stops_early_and_parks_hopeless_rows() -> None:
    random = np.random.default_rng(2)
    scores = np.clip(random.normal([0.7, 0.69, 0.3, 0.2], 0.12, (200, 4)), 0, 1)
    proof = decide(scores, Rules("new", 200))
    stopped = decide(scores, Rules("new", 200, good_enough=0.01))
    assert stopped.is_good_enough
    assert stopped.judgements < proof.judgements
    assert stopped.expected_loss is not None
    assert stopped.expected_loss <= 0.01
    assert stopped.judged[2] < stopped.judged[0]
    assert stopped.judged[3] < stopped.judged[0]


def test_a_parked_row_that_returns_is_first_judged_on_what_it_missed() -> None:
    """Row 1 is hopeless for a while; then the leader turns out to be bad, and row 1 is wanted again."""
    start = np.tile([0.9, 0.5, 0.85], (8, 1)) + np.random.default_rng(3).normal(0, 0.02, (8, 3))
    later = np.tile([0.0, np.nan, 0.0], (60, 1))
    scores = np.vstack([start, later])
    found = decide(scores, Rules("new", 68, good_enough=0.001))
    assert found.missing
    assert {row for _, row in found.missing} == {1}
    assert min(item for item, _ in found.missing) == 8
    filled = scores.copy()
    filled[8:, 1] = 0.5
    assert decide(filled, Rules("new", 68, good_enough=0.001)).leader == 1


def test_a_budget_is_never_exceeded() -> None:
    scores = np.random.default_rng(4).random((50, 5))
    for budget in (1, 19, 20, 21, 100, 103):
        found = decide(scores, replace(Rules("new", 50), budget=budget))
        assert found.judgements <= budget
        assert found.judgements == budget // 20 * 20


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_best_row_seldom_goes_out(claim: Claim) -> None:
    """Two rows with the same distribution: at most 5 % put row 0 out, looking after every batch for 60 items.

    For the pool, the claim is about its own mean, so a row goes out wrongly only where its mean is the higher one.
    """
    random = np.random.default_rng(5)
    wrong = 0
    for _ in range(400):
        scores = random.beta(2, 2, (60, 2))
        out = decide(scores, Rules(claim, 60)).out_after[0] is not None
        wrong += out and (claim == "new" or scores[:, 0].mean() >= scores[:, 1].mean())
    assert wrong <= 400 * 0.05


def test_the_mean_of_the_positive_part() -> None:
    random = np.random.default_rng(6)
    for mean, scale, freedom in ((0.0, 1.0, 5), (-1.0, 0.5, 9), (0.3, 0.2, 30), (-2.0, 0.3, 4)):
        drawn = np.maximum(mean + scale * random.standard_t(freedom, 400_000), 0)
        assert positive_part_of_t(mean, scale, freedom) == pytest.approx(drawn.mean(), abs=5 * drawn.std() / 600)
    assert expected_gain(np.array([0.1])) == math.inf
    assert expected_gain(np.full(200, -0.5)) < 1e-6


def test_every_restart_asks_for_twice_as_much() -> None:
    assert [wealth_for(restarts) for restarts in range(3)] == [20, 40, 80]
