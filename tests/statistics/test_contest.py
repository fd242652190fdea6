"""The simulated rows of benchmarks/deciding: their gaps, the least that deciding takes, and numbers of their own."""

import numpy as np
import pytest
from benchmarks.parts.contest import ROWS, SHAPES, Contest, random_for
from benchmarks.parts.deciding_simulations import Setting, look_always, measure, upper_bound
from benchmarks.parts.fixed_designs import DESIGNS, judgements_needed


@pytest.mark.parametrize("world", ["even", "ceiling", "scatter 6×"])
def test_rows_are_as_far_behind_as_they_should_be(world: str) -> None:
    """Also where every other row is of another kind, whichever row is at which position."""
    contest = Contest(world, SHAPES["stairs"])
    random = random_for("rows", world)
    for order in (np.arange(ROWS), np.arange(ROWS)[::-1]):
        means = contest.draw(random, order, 40_000).mean(axis=1)
        assert means.max() - means == pytest.approx(contest.behind[order], abs=0.12)


def test_the_least_that_any_method_takes() -> None:
    """For equal gaps it has a closed form; the even world has a variance of 4.43 beside what rows share."""
    for shape, known in (("gap 2", 109), ("gap 1", 438), ("gap 0.5", 1_752)):
        assert Contest("even", SHAPES[shape]).least() == pytest.approx(known, rel=0.02)


def test_a_simulation_is_the_same_again_and_another_one_is_not() -> None:
    setting = Setting("even", "gap 2", "new", 60)
    assert measure(setting, 3, seed=1) == measure(setting, 3, seed=1)
    draws = [
        random_for(*what).random() for what in ((1, setting), (2, setting), (1, Setting("even", "gap 2", "pool", 60)))
    ]
    assert len(set(draws)) == 3


def test_a_small_run_of_each_kind() -> None:
    found = measure(Setting("even", "gap 2", "new", 120), 4, seed=1)
    assert (found.decided, found.wrong) == (1.0, 0)
    open_ones = measure(Setting("even", "gap 0.5", "new", 8), 2, seed=1)
    assert open_ones.median == np.inf
    users = look_always(Setting("even", "users", "pool", 40), 4, seed=1)
    assert users.until_tired <= min(users.until_named, users.restarting)
    one_each = DESIGNS[1]
    assert 300 < judgements_needed("even", "gap 2", one_each, grids=6, seed=1) < 1_000


def test_the_upper_bound_of_a_share() -> None:
    """By the definition: with a share of that bound, so few wrong ones have a probability of 2.5 %."""
    assert upper_bound(0, 1_000) == pytest.approx(1 - 0.025 ** (1 / 1_000))
    assert upper_bound(5, 5) == 1.0
