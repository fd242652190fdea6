"""A policy serves a simulated user: what it is told, and what it never sees."""

from dataclasses import replace

import numpy as np
import pytest

from tests.recommender.simulation.worlds import (
    CATEGORIES,
    LIKES_ALL_ALIKE,
    LIKES_INBOX,
    Recording,
    a_life,
    a_world,
    served,
)
from tipbench.recommender.records import Profile
from tipbench.recommender.simulation.rollout import FLAT, Trajectory, arm, roll_out


def _recorded(by: str = "egreedy", steps: int = 30) -> tuple[Recording, Trajectory]:
    server = Recording([step % 6 for step in range(steps)])
    found = roll_out(a_world(LIKES_INBOX), LIKES_INBOX, 0, a_life(LIKES_INBOX, steps=steps), arm(by), server)
    return server, found


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
    assert server.learned == found.rewards.tolist()
    asked = server.asked[5].model_dump()
    assert set(asked) == {"user_id", "event_id", "context", "candidates", "profile_features"}
    assert set(asked["context"]) == {"hour", "focus_category"}
    assert set(asked["candidates"][0]) <= {
        "id",
        "category",
        "len_chars",
        "effort_min",
        "hours_since_shown",
        "source",
        "judged",
    }


def test_completed_dismissed_and_rewards_agree() -> None:
    found = served(LIKES_INBOX, "linucb", steps=200)
    assert (found.completed == (found.rewards == 1)).all()
    assert (found.dismissed == (found.rewards == -0.5)).all()
    assert (found.regrets >= 0).all()


def test_with_a_control_all_policies_earn_the_same() -> None:
    rewards = [served(LIKES_ALL_ALIKE, name, steps=60).rewards.tolist() for name in ("egreedy", "egreedy/v2", "linucb")]
    assert rewards[0] == rewards[1] == rewards[2]


def test_what_is_learned_pays() -> None:
    """Categories tell this persona's tips apart, and version 2 sees them."""
    lives = range(8)
    early, late = np.zeros(8), np.zeros(8)
    for seed in lives:
        found = served(LIKES_INBOX, "egreedy/v2", seed, 200)
        early[seed], late[seed] = found.regrets[:40].mean(), found.regrets[160:].mean()
    assert late.mean() < early.mean() / 1.5
