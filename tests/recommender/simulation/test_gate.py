"""The gate, on results that were made up so that one condition fails at a time."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from tests.recommender.prior.priors import prior_content
from tests.recommender.simulation.worlds import a_persona, a_world
from tipbench.recommender.prior.interface import PriorRecord
from tipbench.recommender.simulation.experiment import METRICS, Plan, Results
from tipbench.recommender.simulation.gate import (
    Lineup,
    Rules,
    Verdict,
    as_data,
    compare,
    judge,
    lineup_of,
    wins_needed,
)
from tipbench.recommender.simulation.rollout import arm

RULES = Rules(
    least_gain=0.01, least_wins=0.6, worst_loss=0.05, least_prior_gain=0.02, worst_prior_loss=0.02, level=0.95
)
PERSONAS, CONTROLS, SEEDS = 8, 2, 30
WORLD = a_world(
    *(a_persona(f"p{number}") for number in range(PERSONAS)),
    *(a_persona(f"c{number}", control=True) for number in range(CONTROLS)),
)
CANDIDATE, INCUMBENT, AGAIN, PLACEBO = "egreedy/v2", "egreedy", "egreedy, again", "egreedy/v2-placebo"
NOTHING = [0.0] * (PERSONAS + CONTROLS)
WINS = [0.2] * PERSONAS + [0.0] * CONTROLS
DIGEST = "0123456789abcdef"
PRIOR = PriorRecord.model_validate({"id": DIGEST, **prior_content(tips={"tip-1": 0.5})})
WITH_PRIOR = f"ucb/v3@{DIGEST}"


def read_prior(digest: str) -> PriorRecord:
    return PRIOR.model_copy(update={"id": digest})


def a_lineup(candidate: str = CANDIDATE, incumbent: str = INCUMBENT) -> Lineup:
    return lineup_of(arm(candidate, read_prior, WORLD), arm(incumbent, read_prior, WORLD), WORLD)


def made_up(
    gains: Mapping[str, Sequence[float]], scatter: float = 0.01, lineup: Lineup | None = None, steps: int = 1
) -> Results:
    """Every persona's gain over nothing by arm, and how much it scatters from seed to seed."""
    plan = Plan(WORLD, (lineup or a_lineup()).arms, range(SEEDS), steps, 5)
    sums = np.zeros((len(plan.arms), len(WORLD.personas), SEEDS, len(METRICS), plan.bins + len(plan.stages)))
    chance = np.random.default_rng(5)
    for place, one in enumerate(plan.arms):
        noise = chance.normal(0, scatter, sums.shape[1:3])
        noise -= noise.mean(axis=1, keepdims=True)  # so that gains are what was asked for
        sums[place, :, :, 0] = (noise + np.array(gains.get(one.name, NOTHING))[:, None])[:, :, None]
    return Results(plan, sums)


def judged(gains: Mapping[str, Sequence[float]], scatter: float = 0.01, lineup: Lineup | None = None) -> Verdict:
    lineup = lineup or a_lineup()
    return judge(made_up(gains, scatter, lineup), lineup, RULES)


def _failed(verdict: Verdict) -> list[str]:
    return [condition.name for condition in verdict.candidate.conditions if not condition.passed]


_BEATS = ["beats category-mean", "beats most-popular"]


def test_the_arms_by_their_roles() -> None:
    lineup = a_lineup()
    assert lineup.roles == {
        "egreedy/v2": "candidate",
        "egreedy": "incumbent",
        "category-mean": "baseline",
        "most-popular": "baseline",
        "egreedy, again": "must fail",
        "egreedy/v2-placebo": "must fail",
    }
    assert [one.name for one in lineup.arms] == list(lineup.roles)
    again = lineup.controls[0].arm
    assert again.policy is lineup.incumbent.policy
    assert again.luck != lineup.incumbent.luck


@pytest.mark.parametrize(
    ("candidate", "incumbent", "left_out"),
    [("linucb", "egreedy", "linucb-placebo"), ("category-mean", "egreedy", "x"), ("egreedy", "most-popular", "x")],
)
def test_nobody_is_in_it_twice(candidate: str, incumbent: str, left_out: str) -> None:
    names = [one.name for one in a_lineup(candidate, incumbent).arms]
    assert len(set(names)) == len(names)
    assert left_out not in names


def test_a_prior_brings_its_own_comparisons_and_controls() -> None:
    lineup = a_lineup(WITH_PRIOR, "egreedy/v2")
    assert lineup.roles == {
        WITH_PRIOR: "candidate",
        "egreedy/v2": "incumbent",
        "category-mean": "baseline",
        "most-popular": "baseline",
        "ucb/v3, no prior": "comparison",
        "ucb/v3, prior as served": "comparison",
        "egreedy/v2, again": "must fail",
        f"{WITH_PRIOR}-placebo": "must fail",
        "ucb/v3, permuted prior": "must fail",
        "ucb/v3, turned prior": "must fail",
        "ucb/v3, shuffled tips": "must fail",
    }
    kinds = [one.simulated_prior.kind if one.simulated_prior else None for one in lineup.arms]
    assert kinds == [
        *("fitted", None, None, None, None, None, None),
        *("shuffled", "permuted", "turned", "shuffled"),
    ]
    assert lineup.as_served
    served = lineup.as_served.policy
    assert served.parameters["prior"] == DIGEST
    assert not served.prior.tips  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("candidate", "incumbent", "kind"),
    [
        (WITH_PRIOR, "ucb/v3@fedcba9876543210", "none"),
        (WITH_PRIOR, "egreedy/v3@fedcba9876543210", "fitted"),
        ("ucb/v3", WITH_PRIOR, "fitted"),
        ("egreedy/v3", WITH_PRIOR, "fitted"),
    ],
)
def test_what_an_incumbent_with_a_prior_is_simulated_with(candidate: str, incumbent: str, kind: str) -> None:
    lineup = a_lineup(candidate, incumbent)
    assert lineup.incumbent.simulated_prior
    assert lineup.incumbent.simulated_prior.kind == kind
    assert (lineup.without_prior == lineup.incumbent) == (kind == "none")


def test_without_a_prior_is_the_incumbent_where_that_is_it() -> None:
    lineup = a_lineup(WITH_PRIOR, "ucb/v3")
    assert lineup.without_prior == lineup.incumbent
    assert lineup.roles["ucb/v3"] == "incumbent"


def test_a_clear_win_passes() -> None:
    verdict = judged({CANDIDATE: WINS})
    assert verdict.passed
    assert _failed(verdict) == []
    assert [check.passed for check in verdict.checks] == [True, True]
    gains = verdict.candidate.personas
    assert [gain.wins for gain in gains] == [True] * PERSONAS + [False] * CONTROLS
    assert all(gain.gain.mean == pytest.approx(0.2) for gain in gains[:PERSONAS])
    assert verdict.candidate.pooled.mean == pytest.approx(0.16)
    assert verdict.candidate.pooled.degrees == SEEDS - 1  # lives of one seed are one observation


def test_nothing_won_does_not_pass() -> None:
    verdict = judged({})
    assert not verdict.passed
    assert _failed(verdict) == ["gains overall", "wins with enough personas", *_BEATS]


def test_gains_that_are_sure_and_too_small_fail_alone() -> None:
    small = [0.008] * (PERSONAS + CONTROLS)
    assert _failed(judged({CANDIDATE: small}, scatter=0.001)) == ["gains overall", *_BEATS]


def test_wins_with_too_few_personas_fail_alone() -> None:
    few = [0.4] * 4 + [0.0] * 6
    verdict = judged({CANDIDATE: few})
    assert _failed(verdict) == ["wins with enough personas"]
    assert (
        "4 of 8 personas other than controls (p0, p1, p2, p3); 5 are needed" in verdict.candidate.conditions[1].reason
    )


@pytest.mark.parametrize("who", [7, 8])
def test_harm_to_one_fails_alone_even_to_a_control(who: int) -> None:
    gains = [*WINS]
    gains[who] = -0.06
    verdict = judged({CANDIDATE: gains})
    assert _failed(verdict) == ["harms nobody"]
    assert WORLD.personas[who].name in verdict.candidate.conditions[2].reason


def test_harm_that_can_not_be_ruled_out_is_harm() -> None:
    unsure = judged({CANDIDATE: [0.9] * PERSONAS + [0.0] * CONTROLS}, scatter=0.2)
    assert _failed(unsure) == ["harms nobody"]


@pytest.mark.parametrize("which", [AGAIN, PLACEBO])
def test_a_gate_that_lets_through_what_must_fail_lets_nothing_through(which: str) -> None:
    verdict = judged({CANDIDATE: WINS, which: WINS})
    assert verdict.candidate.passed
    assert not verdict.passed
    (failed,) = [check for check in verdict.checks if not check.passed]
    assert "can't tell good from bad" in failed.reason


def test_without_new_features_there_is_one_check() -> None:
    verdict = judged({"linucb": WINS}, lineup=a_lineup("linucb"))
    assert verdict.passed
    assert len(verdict.checks) == 1


def test_many_personas_share_what_may_go_wrong_by_chance() -> None:
    """One alone would be taken for a win at 95 %; Holm lets none of eight through, and bounds are wider."""
    results = made_up({CANDIDATE: [0.005 if number == 0 else 0.0 for number in range(10)]}, scatter=0.01)
    found = compare(results, a_lineup().candidate, a_lineup(), RULES)
    assert found.personas[0].gain.lower_bound(0.95) > 0
    assert not any(gain.wins for gain in found.personas)
    for gain in found.personas:
        assert gain.lower_bound == gain.gain.lower_bound(1 - 0.05 / 10)


def test_a_control_wins_nothing() -> None:
    results = made_up({CANDIDATE: [0.0] * PERSONAS + [0.2] * CONTROLS})
    found = compare(results, a_lineup().candidate, a_lineup(), RULES)
    assert not any(gain.wins for gain in found.personas)


@pytest.mark.parametrize(("personas", "needed"), [(0, 1), (1, 1), (5, 3), (7, 5), (8, 5), (10, 6)])
def test_how_many_have_to_win(personas: int, needed: int) -> None:
    assert wins_needed(personas, RULES) == needed


@pytest.mark.parametrize("name", ["category-mean", "most-popular"])
def test_a_baseline_that_is_as_good_stops_it(name: str) -> None:
    verdict = judged({CANDIDATE: WINS, name: [0.19] * PERSONAS + [0.0] * CONTROLS})
    assert _failed(verdict) == [f"beats {name}"]
    assert verdict.says.startswith(f"egreedy/v2 may not go live, because its gain over {name} in reward per decision")


def test_harm_at_one_stage_fails_alone() -> None:
    lineup = a_lineup()
    results = made_up({CANDIDATE: WINS}, lineup=lineup, steps=40)
    first = [one.name for one in results.plan.arms].index(CANDIDATE), slice(None), slice(None), 0, results.plan.bins
    results.sums[first] = -0.06 * 10
    verdict = judge(results, lineup, RULES)
    assert _failed(verdict) == ["harms at no stage"]
    assert "is decisions 1–10: -0.0" in verdict.says


class TestWithAPrior:
    lineup = a_lineup(WITH_PRIOR, "egreedy/v2")
    helps = [0.25] * (PERSONAS + CONTROLS)

    def judged(self, **gains: Sequence[float]) -> Verdict:
        names = {one.name.removeprefix("ucb/v3, ").replace(" ", "_"): one.name for one in self.lineup.arms}
        given = {names[name]: of_arm for name, of_arm in gains.items()}
        usual = {WITH_PRIOR: self.helps, "ucb/v3, prior as served": WINS, "ucb/v3, no prior": WINS}
        return judged({**usual, **given}, lineup=self.lineup)

    def test_it_passes_if_its_prior_helps(self) -> None:
        verdict = self.judged()
        assert verdict.passed
        assert len(verdict.checks) == 5

    def test_a_prior_that_helps_too_little_stops_it(self) -> None:
        nearly = [0.24] * (PERSONAS + CONTROLS)
        verdict = self.judged(no_prior=nearly, prior_as_served=nearly)
        assert _failed(verdict) == ["its prior helps"]

    def test_the_file_that_is_to_be_served_must_not_lose_to_no_prior(self) -> None:
        assert self.judged(prior_as_served=[0.19] * PERSONAS + [0.0] * CONTROLS).passed
        verdict = self.judged(prior_as_served=[0.17] * PERSONAS + [0.0] * CONTROLS)
        assert _failed(verdict) == ["its prior can be served"]

    @pytest.mark.parametrize("control", ["permuted_prior", "turned_prior", "shuffled_tips"])
    def test_a_control_that_is_no_better_than_no_prior_fails(self, control: str) -> None:
        assert self.judged(**{control: WINS}).passed
        verdict = self.judged(**{control: self.helps})
        assert verdict.candidate.passed
        assert not verdict.passed
        assert "passes, so this gate can't tell good from bad" in verdict.says


def test_the_verdict_is_one_sentence() -> None:
    verdict = judged({CANDIDATE: WINS, "most-popular": [0.05] * 10})
    assert verdict.says == (
        "egreedy/v2 may go live: it earns 0.160 more a decision than egreedy and 0.110 more than the better baseline, "
        "most-popular; nobody is harmed."
    )


def test_as_data() -> None:
    lineup = a_lineup()
    results = made_up({CANDIDATE: WINS})
    data = as_data(judge(results, lineup, RULES), results, lineup)
    assert data["passed"] is True
    assert len(data["conditions"]) == 8
    assert all(set(condition) == {"name", "passed", "reason"} for condition in data["conditions"])
    assert [persona["control"] for persona in data["personas"]] == [False] * PERSONAS + [True] * CONTROLS
    assert data["roles"] == lineup.roles
    scorecard = data["scorecard"]
    assert scorecard["stages"] == ["1–1"]
    assert [one["name"] for one in scorecard["arms"]] == list(lineup.roles)
    assert scorecard["arms"][0]["means"] == [pytest.approx(0.16)]
    assert 0 < scorecard["arms"][0]["margins"][0] < 0.01
