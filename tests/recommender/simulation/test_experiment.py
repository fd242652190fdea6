"""Every arm serves every persona with every seed."""

import numpy as np
import pytest

from tests.recommender.simulation.worlds import LIKES_INBOX, MOODY, a_life, a_plan, a_world
from tipbench.recommender.simulation.experiment import METRICS, Plan, bin_sizes, simulate
from tipbench.recommender.simulation.rollout import InProcess, arm, roll_out


def _silent(done: int) -> None:
    pass


def _plan(steps: int) -> Plan:
    return a_plan("egreedy", "linucb", steps=steps)


@pytest.mark.parametrize("steps", [1, 2, 29, 30, 31, 70])
def test_sums_are_those_of_single_lives(steps: int) -> None:
    plan = a_plan("egreedy", "linucb", world=a_world(LIKES_INBOX), seeds=2, steps=steps, first_seed=5, offered=6)
    results = simulate(plan, 1, _silent)
    assert bin_sizes(plan).sum() == steps
    assert results.sums.shape == (2, 1, 2, len(METRICS), min(30, steps) + len(plan.stages))
    for name in ("egreedy", "linucb"):
        for number, seed in enumerate((5, 6)):
            draws = a_life(LIKES_INBOX, seed, steps)
            lived = roll_out(plan.world, LIKES_INBOX, seed, draws, arm(name), InProcess(arm(name).policy))
            metrics = (lived.rewards, lived.completed, lived.dismissed, lived.regrets)
            for metric, values in zip(METRICS, metrics, strict=True):
                assert results.means(name, metric)[0, number] == pytest.approx(values.mean())
                by_stage = [values[stage.start : stage.stop].mean() for stage in plan.stages]
                assert results.stages(name, metric)[0, number] == pytest.approx(by_stage)
    curves = results.curves("linucb", "regret")
    assert (curves * bin_sizes(plan)).sum(axis=-1) == pytest.approx(results.means("linucb", "regret") * steps)


@pytest.mark.parametrize(
    ("steps", "last_of_each"), [(1, [1]), (10, [10]), (11, [10, 11]), (100, [10, 30, 100]), (200, [10, 30, 100, 200])]
)
def test_stages_end_after_the_first_10_30_and_100(steps: int, last_of_each: list[int]) -> None:
    stages = _plan(steps).stages
    assert [stage.stop for stage in stages] == last_of_each
    assert [decision for stage in stages for decision in stage] == list(range(steps))


def test_any_number_of_workers_gives_the_same_to_the_bit() -> None:
    plan = _plan(20)
    told: list[int] = []
    one = simulate(plan, 1, told.append)
    two = simulate(plan, 2, told.append)
    assert np.array_equal(one.sums, two.sums)
    assert told == [*range(1, 7), *range(1, 7)]


def test_a_persona_alone_lives_as_in_company() -> None:
    alone = simulate(a_plan("egreedy", world=a_world(MOODY)), 1, _silent)
    together = simulate(a_plan("egreedy", world=a_world(LIKES_INBOX, MOODY)), 1, _silent)
    assert np.array_equal(alone.sums[:, 0], together.sums[:, 1])
