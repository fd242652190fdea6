"""Priors of a simulated world: fitted as a log's are, and made worthless in three ways."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.recommender.simulation.worlds import a_persona, a_world_of_version_3
from tipbench.recommender.features.v3 import NAMES
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.prior.interface import FLAT, Prior
from tipbench.recommender.simulation import simulated_prior
from tipbench.recommender.simulation.experiment import Plan, simulate
from tipbench.recommender.simulation.rollout import Arm, PriorKind, SimulatedPrior
from tipbench.recommender.simulation.simulated_prior import fit_simulated, recipe, with_simulated_prior
from tipbench.recommender.simulation.world import World

LIKES_QUALITY = a_persona("likes-quality", quality_weight=2.0)
TIP_REWARD = NAMES.index("tip_reward")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Thirty short lives, so that a fit takes a fraction of a second."""
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(simulated_prior, "_STEPS", 20)
        changed.setattr(simulated_prior, "FEWEST_USERS", 30)
        yield a_world_of_version_3(LIKES_QUALITY, a_persona("inbox", taste={"inbox": 1.5}), name="for priors")


def fitted(world: World, kind: PriorKind) -> Prior:
    return fit_simulated(SimulatedPrior(kind, "ucb/v3"), world)


def test_what_tips_earn_is_known_and_counts(world: World) -> None:
    prior = fitted(world, "fitted")
    assert set(prior.tips) == {f"tip-{number}" for number in range(12)}
    assert prior.mean[TIP_REWARD] > 0.1


def test_the_same_recipe_gives_the_same_prior(world: World) -> None:
    first = fitted(world, "fitted")
    simulated_prior._fitted.cache_clear()
    simulated_prior._log.cache_clear()
    assert np.array_equal(first.mean, fitted(world, "fitted").mean)


def test_rewards_in_random_order_say_little(world: World) -> None:
    prior, permuted = fitted(world, "fitted"), fitted(world, "permuted")
    assert np.std(list(permuted.tips.values())) < np.std(list(prior.tips.values())) / 1.5
    assert permuted.mean[TIP_REWARD] < 0.1


def test_turned_is_the_opposite_about_users_and_the_same_about_tips(world: World) -> None:
    prior, turned = fitted(world, "fitted"), fitted(world, "turned")
    assert np.array_equal(turned.mean, -prior.mean)
    assert turned.tips == prior.tips


def test_shuffled_has_the_same_rewards_of_other_tips(world: World) -> None:
    prior, shuffled = fitted(world, "fitted"), fitted(world, "shuffled")
    assert shuffled.tips != prior.tips
    assert sorted(shuffled.tips.values()) == sorted(prior.tips.values())
    assert np.array_equal(shuffled.mean, prior.mean)


def test_every_kind_is_another_prior(world: World) -> None:
    kinds: tuple[PriorKind, ...] = ("none", "fitted", "permuted", "turned", "shuffled")
    assert len({fitted(world, kind) for kind in kinds}) == len(kinds)
    assert fitted(world, "none") is FLAT


def test_an_arm_without_one_stays_as_it_is(world: World) -> None:
    arm = Arm("ucb/v3", POLICIES["ucb/v3"])
    assert with_simulated_prior(arm, world) is arm


def test_a_prior_of_tips_earns_more_than_a_shuffled_one(world: World) -> None:
    kinds: tuple[PriorKind, ...] = ("fitted", "shuffled")
    arms = tuple(Arm(kind, POLICIES["ucb/v3"], simulated_prior=SimulatedPrior(kind, "ucb/v3")) for kind in kinds)
    results = simulate(Plan(world.only(["likes-quality"]), arms, range(8), 25, 6), 1, lambda _: None)
    assert results.means("fitted").mean() > results.means("shuffled").mean() + 0.05


def test_a_recipe_says_what_the_prior_depends_on(world: World) -> None:
    assert recipe(SimulatedPrior("fitted", "ucb/v3"), world) == {
        "kind": "fitted",
        "served_by": "ucb/v3",
        "first_seed": 1100,
        "lives": 15,
        "steps": 20,
        "offered": 10,
    }
    assert recipe(SimulatedPrior("none", "ucb/v3"), world) == {"kind": "none"}
