"""The gate, on results that were made up so that one condition fails at a time."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.recommender.simulation.worlds import a_persona, a_request, a_world
from tipbench.recommender.simulation.experiment import METRICS, Results
from tipbench.recommender.simulation.gate import Rules, Verdict, as_data, compare, gate_arms, judge, wins_needed
from tipbench.recommender.simulation.rollout import arm

RULES = Rules(least_gain=0.01, least_wins=0.6, worst_loss=0.05, level=0.95)
PERSONAS, CONTROLS, SEEDS = 8, 2, 30
WORLD = a_world(
    *(a_persona(f"p{number}") for number in range(PERSONAS)),
    *(a_persona(f"c{number}", control=True) for number in range(CONTROLS)),
)
CANDIDATE, INCUMBENT, AGAIN, PLACEBO = range(4)
NOTHING = [0.0] * (PERSONAS + CONTROLS)
WINS = [0.2] * PERSONAS + [0.0] * CONTROLS


def made_up(gains: Mapping[int, Sequence[float]], scatter: float = 0.01, candidate: str = "egreedy/v2") -> Results:
    """Every persona's gain over the incumbent by arm, and how much it scatters from seed to seed."""
    plan = a_request(candidate, "egreedy", world=WORLD, kind="gate", seeds=SEEDS, steps=1).plan()
    sums = np.zeros((len(plan.arms), len(WORLD.personas), SEEDS, len(METRICS), 1))
    chance = np.random.default_rng(5)
    for place in range(len(plan.arms)):
        noise = chance.normal(0, scatter, sums.shape[1:3])
        noise -= noise.mean(axis=1, keepdims=True)  # so that gains are what was asked for
        sums[place, :, :, 0, 0] = noise + np.array(gains.get(place, NOTHING))[:, None]
    return Results(plan, sums)


def _failed(verdict: Verdict) -> list[str]:
    return [condition.name for condition in verdict.candidate.conditions if not condition.passed]


def test_four_arms_are_simulated_or_three() -> None:
    arms = gate_arms(arm("egreedy/v2"), arm("egreedy"))
    assert [one.name for one in arms] == ["egreedy/v2", "egreedy", "egreedy, again", "egreedy/v2-placebo"]
    assert arms[2].policy is arms[1].policy
    assert arms[2].luck != arms[1].luck
    assert [one.name for one in gate_arms(arm("linucb"), arm("egreedy"))] == ["linucb", "egreedy", "egreedy, again"]


def test_a_clear_win_passes() -> None:
    verdict = judge(made_up({CANDIDATE: WINS}), RULES)
    assert verdict.passed
    assert _failed(verdict) == []
    assert [check.passed for check in verdict.checks] == [True, True]
    gains = verdict.candidate.personas
    assert [gain.wins for gain in gains] == [True] * PERSONAS + [False] * CONTROLS
    assert all(gain.gain.mean == pytest.approx(0.2) for gain in gains[:PERSONAS])
    assert verdict.candidate.pooled.mean == pytest.approx(0.16)
    assert verdict.candidate.pooled.degrees == SEEDS - 1  # lives of one seed are one observation


def test_nothing_won_does_not_pass() -> None:
    verdict = judge(made_up({}), RULES)
    assert not verdict.passed
    assert "gains overall" in _failed(verdict)
    assert "wins with enough personas" in _failed(verdict)


def test_gains_that_are_sure_and_too_small_fail_alone() -> None:
    small = [0.008] * (PERSONAS + CONTROLS)
    assert _failed(judge(made_up({CANDIDATE: small}, scatter=0.001), RULES)) == ["gains overall"]


def test_wins_with_too_few_personas_fail_alone() -> None:
    few = [0.4] * 4 + [0.0] * 6
    verdict = judge(made_up({CANDIDATE: few}), RULES)
    assert _failed(verdict) == ["wins with enough personas"]
    assert (
        "4 of 8 personas other than controls (p0, p1, p2, p3); 5 are needed" in verdict.candidate.conditions[1].reason
    )


@pytest.mark.parametrize("who", [7, 8])
def test_harm_to_one_fails_alone_even_to_a_control(who: int) -> None:
    gains = [*WINS]
    gains[who] = -0.06
    verdict = judge(made_up({CANDIDATE: gains}), RULES)
    assert _failed(verdict) == ["harms nobody"]
    assert WORLD.personas[who].name in verdict.candidate.conditions[2].reason


def test_harm_that_can_not_be_ruled_out_is_harm() -> None:
    unsure = made_up({CANDIDATE: [0.9] * PERSONAS + [0.0] * CONTROLS}, scatter=0.2)
    assert _failed(judge(unsure, RULES)) == ["harms nobody"]


@pytest.mark.parametrize("which", [AGAIN, PLACEBO])
def test_a_gate_that_lets_through_what_must_fail_lets_nothing_through(which: int) -> None:
    verdict = judge(made_up({CANDIDATE: WINS, which: WINS}), RULES)
    assert verdict.candidate.passed
    assert not verdict.passed
    (failed,) = [check for check in verdict.checks if not check.passed]
    assert "can't tell good from bad" in failed.reason


def test_without_new_features_there_is_one_check() -> None:
    verdict = judge(made_up({CANDIDATE: WINS}, candidate="linucb"), RULES)
    assert verdict.passed
    assert len(verdict.checks) == 1


def test_many_personas_share_what_may_go_wrong_by_chance() -> None:
    """One alone would be taken for a win at 95 %; Holm lets none of eight through, and bounds are wider."""
    results = made_up({CANDIDATE: [0.005 if number == 0 else 0.0 for number in range(10)]}, scatter=0.01)
    found = compare(results, results.plan.arms[CANDIDATE], results.plan.arms[INCUMBENT], RULES)
    assert found.personas[0].gain.lower_bound(0.95) > 0
    assert not any(gain.wins for gain in found.personas)
    for gain in found.personas:
        assert gain.lower_bound == gain.gain.lower_bound(1 - 0.05 / 10)


def test_a_control_wins_nothing() -> None:
    results = made_up({CANDIDATE: [0.0] * PERSONAS + [0.2] * CONTROLS})
    found = compare(results, results.plan.arms[CANDIDATE], results.plan.arms[INCUMBENT], RULES)
    assert not any(gain.wins for gain in found.personas)


@pytest.mark.parametrize(("personas", "needed"), [(0, 1), (1, 1), (5, 3), (7, 5), (8, 5), (10, 6)])
def test_how_many_have_to_win(personas: int, needed: int) -> None:
    assert wins_needed(personas, RULES) == needed


def test_as_data() -> None:
    data = as_data(judge(made_up({CANDIDATE: WINS}), RULES))
    assert data["passed"] is True
    assert len(data["conditions"]) == 5
    assert all(set(condition) == {"name", "passed", "reason"} for condition in data["conditions"])
    assert [persona["control"] for persona in data["personas"]] == [False] * PERSONAS + [True] * CONTROLS
