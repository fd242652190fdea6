"""The tip that most users like."""

import numpy as np
import pytest

from tests.recommender.making import a_request as a_score_request
from tests.recommender.simulation.worlds import a_persona, a_plan, a_request, a_world_of_version_3
from tipbench.recommender.policies.choosing import EventRng
from tipbench.recommender.records import Candidate
from tipbench.recommender.simulation.experiment import simulate
from tipbench.recommender.simulation.popularity import MostPopular
from tipbench.recommender.simulation.user_model import shared_tips
from tipbench.recommender.simulation.world import World

LIKES_QUALITY = a_persona("likes-quality", quality_weight=2.0)


def _scores(world: World) -> list[float]:
    policy = MostPopular(world=world)
    candidates = tuple(Candidate(id=f"tip-{number}", category="inbox") for number in range(world.tips))
    request = a_score_request().model_copy(update={"candidates": candidates})
    found: list[float] = policy.choose(policy.new_state(), request, EventRng("", "", ""), 0).scores.tolist()
    return found


def test_it_has_seen_what_other_users_like() -> None:
    world = a_world_of_version_3(LIKES_QUALITY)
    scores, quality = _scores(world), shared_tips(world).quality
    assert np.corrcoef(scores, quality)[0, 1] > 0.9
    assert _scores(world) == scores


def test_a_user_more_changes_what_is_popular_only_for_that_user() -> None:
    policy = MostPopular(world=a_world_of_version_3(LIKES_QUALITY))
    before, state = policy.new_state().as_data(), policy.new_state()
    request = a_score_request().model_copy(update={"candidates": (Candidate(id="tip-1", category="inbox"),)})
    policy.learn(state, policy.features.matrix(request)[0], 1.0, 0)
    assert state.as_data() != before
    assert policy.new_state().as_data() == before


def test_it_is_an_arm_of_gates_and_says_what_it_was_counted_on() -> None:
    for names in (("most-popular", "egreedy/v2"), ("egreedy/v2", "most-popular")):
        plan = a_request(*names, world=a_world_of_version_3(), kind="gate", seeds=10).plan()
        assert [arm.name for arm in plan.arms] == [
            *(*names, "category-mean", f"{names[1]}, again", f"{names[0]}-placebo")
        ]
    assert MostPopular(world=a_world_of_version_3()).parameters == {
        "ridge": 1.0,
        "epsilon_first": 0.05,
        "epsilon_half_after": 50.0,
        "epsilon_floor": 0.05,
        "counted_lives": 10,
        "counted_from_seed": 1000,
    }


def test_it_earns_more_than_who_knows_no_tips() -> None:
    plan = a_plan("most-popular", "egreedy", world=a_world_of_version_3(LIKES_QUALITY), seeds=4, steps=40)
    results = simulate(plan, 1, lambda _: None)
    assert results.means("most-popular").mean() > results.means("egreedy").mean() + 0.1


@pytest.mark.parametrize("workers", [1, 2])
def test_it_is_the_same_in_every_process(workers: int) -> None:
    plan = a_plan("most-popular", world=a_world_of_version_3(), seeds=2, steps=10)
    assert np.array_equal(simulate(plan, workers, lambda _: None).sums, simulate(plan, 1, lambda _: None).sums)
