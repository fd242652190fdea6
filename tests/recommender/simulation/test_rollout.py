"""A policy serves a simulated user: what it is told, and what it never sees."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from tests.recommender.making import a_request as a_score_request
from tests.recommender.simulation.worlds import (
    CATEGORIES,
    LIKES_ALL_ALIKE,
    LIKES_INBOX,
    VARIED,
    VARIED_CONTROL,
    Recording,
    a_life,
    a_world,
    a_world_of_version_3,
    served,
)
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.egreedy import Decay, EGreedy
from tipbench.recommender.records import Profile
from tipbench.recommender.simulation.rollout import FLAT, InProcess, Trajectory, arm, roll_out
from tipbench.recommender.simulation.user_model import Draws, draw_life
from tipbench.recommender.simulation.world import Persona, World
from tipbench.server.jobs.simulation_asked import built_in_world

ALWAYS = Decay(first=1.0, floor=1.0)
VERSION_2 = {  # by arm: a digest of all choices, rewards and regrets, as they were before there was a version 3
    "egreedy": ("d2272bbc82995fae", 88.898839, 195.173730),
    "egreedy/v2": ("a1c3855c2488c6c5", 148.943109, 154.107929),
    "linucb": ("c2d57f7df92efb1f", 135.465989, 186.300168),
    "category-mean": ("e73dc3b3bf47c26d", 167.817318, 111.941639),
    "egreedy/v2-flat": ("1ecb46da0bc86987", 111.786973, 186.933784),
}


def _recorded(by: str = "egreedy", steps: int = 30) -> tuple[Recording, Trajectory]:
    server = Recording([step % 6 for step in range(steps)])
    found = roll_out(a_world(LIKES_INBOX), LIKES_INBOX, 0, a_life(LIKES_INBOX, steps=steps), arm(by), server)
    return server, found


def _recorded_in_version_3() -> tuple[Recording, Trajectory, Draws]:
    world, server = a_world_of_version_3(), Recording([step % 6 for step in range(60)])
    draws = draw_life(world, VARIED, 0, 60, 6)
    return server, roll_out(world, VARIED, 0, draws, arm("egreedy"), server), draws


def _same(one: Trajectory, other: Trajectory) -> bool:
    return all(np.array_equal(vars(one)[name], vars(other)[name]) for name in vars(one))


@pytest.mark.parametrize("name", ["egreedy", "egreedy/v2", "linucb", "category-mean"])
def test_two_arms_of_one_policy_with_the_same_luck_live_the_same_life(name: str) -> None:
    assert _same(served(LIKES_INBOX, name), served(LIKES_INBOX, replace(arm(name), name="namesake")))


def test_other_luck_is_another_life() -> None:
    other = served(LIKES_INBOX, replace(arm("egreedy"), luck="-again"))
    assert not _same(served(LIKES_INBOX, "egreedy"), other)


def test_arms_meet_the_same_moments_whatever_they_choose() -> None:
    one, _ = _recorded()
    two = Recording([0] * 30)
    roll_out(a_world(LIKES_INBOX), LIKES_INBOX, 0, a_life(LIKES_INBOX, steps=30), arm("egreedy/v2"), two)
    for a, b in zip(one.asked, two.asked, strict=True):
        assert (a.context, a.event_id) == (b.context, b.event_id)
        assert [candidate.id for candidate in a.candidates] == [candidate.id for candidate in b.candidates]


def test_the_profile_is_what_was_seen_before_and_nothing_of_the_event_itself() -> None:
    server, found = _recorded()
    shown = dict.fromkeys(CATEGORIES, 0)
    completed = dict.fromkeys(CATEGORIES, 0)
    for step, request in enumerate(server.asked):
        told = {name: (entry.shown, entry.completed) for name, entry in request.profile_features.categories.items()}
        assert told == {name: (shown[name], completed[name]) for name in CATEGORIES if shown[name]}
        category = request.candidates[found.chosen[step]].category
        shown[category] += 1
        completed[category] += bool(found.completed[step])


def test_a_flat_profile_is_of_the_user_as_a_whole() -> None:
    server, found = _recorded(FLAT.name)
    assert server.asked[0].profile_features == Profile()
    last = server.asked[-1].profile_features
    assert not last.categories
    assert last.tip_volume == 29
    assert last.completion_rate == pytest.approx(found.completed[:29].mean())


def test_a_policy_learns_the_reward_of_what_it_chose_and_sees_no_truth() -> None:
    server, found = _recorded()
    assert list(server.learned.values()) == found.rewards.tolist()
    asked = server.asked[5].model_dump()
    assert set(asked) == {"user_id", "event_id", "context", "candidates", "profile_features"}
    assert set(asked["context"]) == {"hour", "focus_category"}
    seen = {"id", "category", "len_chars", "effort_min", "hours_since_shown", "source", "judged"}
    assert set(asked["candidates"][0]) == seen


def test_completed_dismissed_and_rewards_agree() -> None:
    found = served(LIKES_INBOX, "linucb", steps=200)
    assert (found.completed == (found.rewards == 1)).all()
    assert (found.dismissed == (found.rewards == -0.5)).all()
    assert (found.regrets >= 0).all()


def test_a_late_reward_is_learned_when_it_arrives_and_a_missing_one_never() -> None:
    server, found, draws = _recorded_in_version_3()
    order = [step for due in draws.due() for step in due]
    assert order != sorted(order)
    assert len(order) < 60
    assert server.learned == {f"e{step}": found.rewards[step] for step in order}
    assert list(server.learned) == [f"e{step}" for step in order]
    assert server.asked_at == [round(hours * 3_600_000) for hours in draws.at_hours.tolist()]


def test_the_profile_begins_with_what_was_declared_and_grows_by_what_has_arrived() -> None:
    server, found, draws = _recorded_in_version_3()
    shown = {"inbox": 5}
    for step, due in enumerate(draws.due()):
        profile = server.asked[step].profile_features
        assert profile.preferred_hour == 9.0
        assert {name: entry.shown for name, entry in profile.categories.items()} == shown
        for past in due:
            category = server.asked[past].candidates[found.chosen[past]].category
            shown[category] = shown.get(category, 0) + 1


def test_candidates_carry_what_judges_gave_and_not_how_good_they_are() -> None:
    server, _, draws = _recorded_in_version_3()
    by_id = {candidate.id: candidate for request in server.asked for candidate in request.candidates}
    judged = [by_id[f"tip-{number}"].judged for number in range(12)]
    assert judged == [None if np.isnan(value) else value for value in draws.tips.judged.tolist()]
    assert 0 < judged.count(None) < 12


def test_a_policy_learns_a_late_reward_from_what_it_saw_then() -> None:
    """In process, with rewards in an order of their own, ridge regression gets the same sums as in the usual order."""
    requests = [a_score_request(f"e{number}", hour=float(number)) for number in range(6)]
    in_order, late = InProcess(EGreedy("random", V1, decay=ALWAYS)), InProcess(EGreedy("random", V1, decay=ALWAYS))
    for number, request in enumerate(requests):
        in_order.choose(request, number)
        in_order.learn(request, number / 10)
        late.choose(request, number)
    for number in (3, 0, 5, 1, 4, 2):
        late.learn(requests[number], number / 10)
    ours, theirs = (server._state.as_data() for server in (in_order, late))
    assert ours["n"] == theirs["n"] == 6
    assert np.allclose(ours["xr"], theirs["xr"])
    assert np.allclose(ours["xx"], theirs["xx"])


@pytest.mark.parametrize(("name", "figures"), VERSION_2.items())
def test_version_2_of_the_world_gives_the_figures_that_it_gave_before_version_3(
    name: str, figures: tuple[str, float, float]
) -> None:
    world, who = built_in_world(2), arm(name)
    lives = [
        roll_out(world, persona, 3, draw_life(world, persona, 3, 60, 10), who, InProcess(who.policy))
        for persona in world.personas
    ]
    chosen = bytes(position for life in lives for position in life.chosen.tolist())
    rewards, regrets = (
        sum(values) for values in zip(*((life.rewards.sum(), life.regrets.sum()) for life in lives), strict=True)
    )
    digest, *sums = figures
    assert sha256(chosen).hexdigest()[:16] == digest
    assert [rewards, regrets] == pytest.approx(sums, abs=1e-6)


@pytest.mark.parametrize(
    ("world", "persona"), [(a_world(LIKES_ALL_ALIKE), LIKES_ALL_ALIKE), (a_world_of_version_3(), VARIED_CONTROL)]
)
def test_with_a_control_all_policies_earn_the_same(world: World, persona: Persona) -> None:
    draws = draw_life(world, persona, 0, 60, 6)
    arms = [arm(name, world=world) for name in ("egreedy", "egreedy/v2", "linucb", "most-popular")]
    rewards = [roll_out(world, persona, 0, draws, who, InProcess(who.policy)).rewards.tolist() for who in arms]
    assert rewards.count(rewards[0]) == len(arms)


def test_what_is_learned_pays() -> None:
    """Categories tell this persona's tips apart, and version 2 sees them."""
    lives = range(8)
    early, late = np.zeros(8), np.zeros(8)
    for seed in lives:
        found = served(LIKES_INBOX, "egreedy/v2", seed, 200)
        early[seed], late[seed] = found.regrets[:40].mean(), found.regrets[160:].mean()
    assert late.mean() < early.mean() / 1.5
