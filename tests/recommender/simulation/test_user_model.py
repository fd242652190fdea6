"""The truth that policies don't see."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from tests.recommender.simulation.worlds import (
    LIKES_ALL_ALIKE,
    LIKES_INBOX,
    MOODY,
    SWITCHES,
    TIRES,
    a_life,
    a_persona,
    a_world,
    a_world_of_version_3,
)
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.simulation.user_model import Draws, Life, draw_life, dwell, expected_reward, reaction_odds
from tipbench.recommender.simulation.world import Persona

INBOX, REST = 0, 1


def _life(persona: Persona, steps: int = 40, seed: int = 0) -> Life:
    return Life(a_world(persona), a_life(persona, seed, steps))


def _live(life: Life, choose: Callable[[int, list[int]], int]) -> None:
    for step, offered in enumerate(life.draws.offered.tolist()):
        life.show(step, choose(step, life.draws.tips.category[offered].tolist()))


def _first(step: int, categories: list[int]) -> int:
    return 0


@pytest.mark.parametrize("utility", [-4.0, -1.0, 0.0, 1.5, 4.0])
def test_the_expected_reward_is_the_mean_of_many_outcomes(utility: float) -> None:
    persona = a_persona(base=utility)
    life = Life(a_world(persona), a_life(persona, steps=20_000, offered=1))
    rewards = np.array([life.show(step, 0).reward for step in range(20_000)])
    expected, best = life.expected()
    assert expected == pytest.approx(best)
    assert abs(rewards.mean() - expected[0]) < 4 * rewards.std() / math.sqrt(len(rewards))


@pytest.mark.parametrize("utility", np.linspace(-8, 8, 9).tolist())
def test_the_expected_reward_is_the_integral(utility: float) -> None:
    """Of what is looked at, over a normal distribution: exact but for the kink at ten minutes."""
    completes, dismisses = reaction_odds(utility)

    def looked(chance: float) -> float:
        return float(math.log(1 + min(dwell(utility, chance), 600)) / math.log(601) * stats.norm.pdf(chance))

    exact = completes - 0.5 * dismisses + 0.2 * (1 - completes - dismisses) * integrate.quad(looked, -8, 8)[0]
    assert expected_reward(np.array([utility]))[0] == pytest.approx(exact, abs=2e-4)


@pytest.mark.parametrize("utility", [-3.0, -1.0, 0.5])
@pytest.mark.parametrize("moods", [0.5, 2.0, 3.0])
def test_moods_are_integrated_over(utility: float, moods: float) -> None:
    def in_one(mood: float) -> float:
        return float(expected_reward(np.array([utility + moods * mood]))[0] * stats.norm.pdf(mood))

    exact = integrate.quad(in_one, -8, 8)[0]
    assert expected_reward(np.array([utility]), moods)[0] == pytest.approx(exact, abs=0.01)


@given(utility=st.floats(-100, 100))
def test_odds_are_odds(utility: float) -> None:
    completes, dismisses = reaction_odds(utility)
    assert 0 <= completes <= 1
    assert 0 <= dismisses <= 1 - completes + 1e-12
    assert reaction_odds(utility + 1)[0] >= completes


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    base=st.floats(-3, 3),
    taste=st.floats(-3, 3),
    fatigue=st.floats(0, 3),
    hour_weight=st.floats(-2, 2),
    moods=st.sampled_from([0.0, 1.5]),
)
def test_nobody_does_better_than_the_oracle(
    seed: int, base: float, taste: float, fatigue: float, hour_weight: float, moods: float
) -> None:
    persona = a_persona(
        base=base,
        taste={"inbox": taste},
        fatigue=fatigue,
        best_hours={"rest": 9.0},
        hour_weight=hour_weight,
        length_weight=0.5,
        effort_weight=-0.5,
        focus_weight=1.0,
        moods=moods,
    )
    life = _life(persona, 20, seed)
    _live(life, lambda step, categories: (step * 7 + seed) % len(categories))
    expected, best = life.expected()
    assert (best >= expected).all()


def test_to_the_indifferent_all_choices_are_the_same() -> None:
    lives = [_life(LIKES_ALL_ALIKE), _life(LIKES_ALL_ALIKE)]
    outcomes = [
        [life.show(step, place if step % 2 else 0) for step in range(40)]
        for life, place in zip(lives, (1, 5), strict=True)
    ]
    assert outcomes[0] == outcomes[1]
    for life in lives:
        expected, best = life.expected()
        assert (expected == best).all()


def test_moods_make_a_difference_that_is_nobodys_merit() -> None:
    """Two ways to choose fare differently, by chance; on average alike, and as was to be expected."""
    lives = [_life(MOODY, 20_000), _life(MOODY, 20_000)]
    rewards = np.array(
        [[life.show(step, place).reward for step in range(20_000)] for life, place in zip(lives, (1, 5), strict=True)]
    )
    differences = rewards[0] - rewards[1]
    assert differences.std() > 0.3
    assert abs(differences.mean()) < 4 * differences.std() / math.sqrt(20_000)
    for life, earned in zip(lives, rewards, strict=True):
        expected, best = life.expected()
        assert (expected == best).all()
        assert abs(earned.mean() - expected[0]) < 4 * earned.std() / math.sqrt(20_000)


def test_the_switcher_switches() -> None:
    always_inbox = _life(SWITCHES, 400)
    _live(always_inbox, lambda step, categories: categories.index(INBOX) if INBOX in categories else 0)
    expected, _ = always_inbox.expected()
    assert expected[:200].mean() > expected[200:].mean() + 0.3


def test_a_taste_that_does_not_change_stays() -> None:
    always_inbox = _life(LIKES_INBOX, 400)
    _live(always_inbox, lambda step, categories: categories.index(INBOX) if INBOX in categories else 0)
    expected, _ = always_inbox.expected()
    assert expected[:200].mean() == pytest.approx(expected[200:].mean(), abs=0.05)


def _closeness_to_8(draws: Draws, tips: NDArray[np.intp]) -> Floats:
    cosine: Floats = np.cos(math.tau * (draws.hours - 8) / 24)
    return np.where(draws.tips.category[tips] == INBOX, cosine, 0.0)


@pytest.mark.parametrize(
    ("weight", "factor"),
    [
        ({"hour_weight": 0.7, "best_hours": {"inbox": 8.0}}, _closeness_to_8),
        ({"length_weight": 0.7}, lambda draws, tips: 2 * np.log1p(draws.tips.length[tips]) / math.log(2001) - 1),
        ({"effort_weight": 0.7}, lambda draws, tips: 2 * np.minimum(draws.tips.effort_min[tips] / 60, 1) - 1),
        ({"focus_weight": 0.7}, lambda draws, tips: draws.tips.category[tips] == draws.focus),
    ],
)
def test_what_each_weight_weighs(
    weight: dict[str, Any], factor: Callable[[Draws, NDArray[np.intp]], NDArray[Any]]
) -> None:
    persona = a_persona(base=-1.0, **weight)
    life = _life(persona, 100)
    _live(life, _first)
    factors = factor(life.draws, life.draws.offered[:, 0])
    assert len(set(factors.tolist())) > 1
    assert life.expected()[0] == pytest.approx(expected_reward(-1.0 + 0.7 * factors))


def test_one_category_again_and_again_tires_and_rest_helps() -> None:
    same, mixed = _life(TIRES, 200), _life(TIRES, 200)
    _live(same, lambda step, categories: categories.index(INBOX) if INBOX in categories else 0)
    _live(mixed, lambda step, categories: categories.index(step % 3) if step % 3 in categories else 0)
    assert same.expected()[0].mean() < mixed.expected()[0].mean() - 0.03


def test_the_first_of_a_life_tires_nobody() -> None:
    life = _life(TIRES)
    _live(life, _first)
    assert life.expected()[0][0] == pytest.approx(expected_reward(np.array([TIRES.base]))[0])


def test_when_a_tip_was_shown_is_known() -> None:
    life = _life(LIKES_INBOX)
    assert life.hours_since_shown(0) == [None] * 6
    shown_at: dict[int, float] = {}
    for step, offered in enumerate(life.draws.offered.tolist()):
        now = float(life.draws.at_hours[step])
        known = [now - shown_at[tip] if tip in shown_at else None for tip in offered]
        assert life.hours_since_shown(step) == known
        life.show(step, step % 6)
        shown_at[offered[step % 6]] = now


def test_what_a_reaction_earns() -> None:
    life = _life(a_persona(base=0.0), 300)
    outcomes = [life.show(step, 0) for step in range(300)]
    by_reaction = {
        reaction: {o.reward for o in outcomes if o.reaction == reaction} for reaction in ("completed", "dismissed")
    }
    assert by_reaction == {"completed": {1.0}, "dismissed": {-0.5}}
    ignored = [o for o in outcomes if o.reaction == "ignored"]
    assert ignored
    for outcome in ignored:
        assert outcome.reward == pytest.approx(0.2 * math.log(1 + min(outcome.dwell_s, 600)) / math.log(601))


def test_everybody_likes_a_good_tip_better() -> None:
    persona = a_persona(quality_weight=0.7)
    world = a_world_of_version_3(persona)
    life = Life(world, draw_life(world, persona, 0, 100, 6))
    _live(life, _first)
    quality = life.draws.tips.quality[life.draws.offered[:, 0]]
    assert life.expected()[0] == pytest.approx(expected_reward(-1.0 + 0.7 * quality, shape=world.dwell))


def test_a_drifting_taste_is_the_first_one_and_how_far_it_has_moved() -> None:
    persona = a_persona(taste={"inbox": 0.5}, drift=0.8)
    world = a_world_of_version_3(persona)
    life = Life(world, draw_life(world, persona, 0, 100, 6))
    _live(life, _first)
    categories = life.draws.tips.category[life.draws.offered[:, 0]]
    tastes = np.where(categories == INBOX, 0.5, 0.0) + life.draws.drift[np.arange(100), categories]
    assert life.expected()[0] == pytest.approx(expected_reward(-1.0 + tastes, shape=world.dwell))


def test_dwell_says_less_in_version_3() -> None:
    """How dwell goes along with what the user thinks of a tip: 20,000 impressions in each version."""
    tastes = {"inbox": 1.5, "rest": -1.5}
    persona = a_persona(taste=tastes)
    correlations = []
    for world in (a_world(persona), a_world_of_version_3(persona)):
        life = Life(world, draw_life(world, persona, 0, 20_000, 1))
        dwells = [math.log(life.show(step, 0).dwell_s) for step in range(20_000)]
        correlations.append(np.corrcoef(life.expected()[0], dwells)[0, 1])
    assert correlations[0] > 0.5
    assert 0.05 < correlations[1] < 0.25


def test_the_known_first_reactions() -> None:
    """Whoever changes how users react needs a new version of the simulator, or records of gates would lie."""
    persona = a_persona(
        taste={"inbox": 1.0},
        taste_after={"rest": 1.0},
        best_hours={"focus": 9.0},
        hour_weight=0.7,
        length_weight=0.5,
        effort_weight=-0.5,
        focus_weight=1.0,
        fatigue=0.6,
        moods=1.2,
    )
    life = _life(persona, 8)
    outcomes = [life.show(step, 0) for step in range(8)]
    reactions = {"ignored": "i", "dismissed": "d", "completed": "c"}
    assert "".join(reactions[outcome.reaction] for outcome in outcomes) == "idiiiidc"
    assert [round(outcome.dwell_s, 2) for outcome in outcomes] == [16.66, 1.33, 1.65, 7.16, 3.14, 5.54, 12.29, 161.69]
    expected, best = life.expected()
    assert expected.round(4).tolist() == [0.6181, 0.1039, 0.2848, 0.0791, 0.0496, -0.0379, 0.025, 0.5002]
    assert best.round(4).tolist() == [0.6181, 0.6512, 0.4023, 0.3637, 0.6232, 0.455, 0.3844, 0.5002]
