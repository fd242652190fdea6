"""What a simulation found, as data."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.recommender.simulation.worlds import LIKES_INBOX, a_plan, a_world
from tipbench.recommender.simulation.experiment import Results, simulate
from tipbench.recommender.simulation.outcome import answer_data, arm_data, outcome_data, plan_data


def _found(seeds: int) -> Results:
    return simulate(a_plan("egreedy", "egreedy/v2", seeds=seeds), 1, lambda done: None)


def test_means_and_intervals_are_scipys() -> None:
    results = _found(seeds=6)
    data = outcome_data(results)
    rewards = results.means("egreedy/v2")
    for place, persona in enumerate(data["personas"]):
        metric = persona["arms"]["egreedy/v2"]["reward"]
        low, high = stats.t.interval(0.95, 5, loc=rewards[place].mean(), scale=stats.sem(rewards[place]))
        assert metric["mean"] == pytest.approx(rewards[place].mean())
        assert (metric["mean"] - metric["margin"], metric["mean"] + metric["margin"]) == pytest.approx(
            (low, high), abs=1e-3
        )
        assert metric["total"] == pytest.approx(rewards[place].mean() * 12)
        assert np.mean(metric["over_time"]) == pytest.approx(metric["mean"])
    overall = data["overall"]["egreedy/v2"]["reward"]
    assert overall["mean"] == pytest.approx(rewards.mean())
    assert overall["margin"] == pytest.approx(stats.t.ppf(0.975, 5) * stats.sem(rewards.mean(axis=0)), rel=1e-3)


def test_one_seed_has_no_interval() -> None:
    assert np.isnan(outcome_data(_found(seeds=1))["overall"]["egreedy"]["reward"]["margin"])


def test_the_best_is_compared_life_by_life() -> None:
    results = _found(seeds=6)
    answer = answer_data(results)
    best, [other] = answer["best"], answer["ahead"]
    assert {best, other} == {"egreedy", "egreedy/v2"}
    paired = stats.ttest_rel(results.means(best).mean(axis=0), results.means(other).mean(axis=0))
    found = answer["ahead"][other]
    assert (found["low"], found["high"]) == pytest.approx(paired.confidence_interval(), abs=1e-3)
    assert found["mean"] >= 0
    assert answer["certain"] == (paired.pvalue < 0.05)
    assert answer_data(_found(seeds=1))["certain"] is False


def test_a_plan_says_all_that_results_depend_on() -> None:
    base = plan_data(a_plan())
    assert json.loads(json.dumps(base)) == base
    others = [
        a_plan("egreedy"),
        a_plan("egreedy/v2", "egreedy"),
        a_plan("egreedy", "egreedy/v2-flat"),
        a_plan(seeds=4),
        a_plan(first_seed=1),
        a_plan(steps=13),
        a_plan(offered=4),
        a_plan(world=a_world(LIKES_INBOX)),
    ]
    assert all(plan_data(other) != base for other in others)
    policy = arm_data(a_plan().arms[1])
    assert policy["feature_version"] == "v2"
    assert policy["parameters"]["ridge"] == 1.0
    assert policy["parameters"]["epsilon_floor"] == 0.05
