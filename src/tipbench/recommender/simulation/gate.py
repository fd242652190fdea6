"""The promotion gate: whether the candidate beats the incumbent and plain baselines, by a test that a worse one fails.

    verdict = judge(results, lineup)    # of a plan whose arms are lineup.arms

Beside the candidate and the incumbent, the baselines are simulated, and arms that are tested against the same
conditions every time and must fail: the incumbent again with other random numbers, the candidate with its new features
assigned to the wrong tips, and, where it has a prior, the candidate with priors that are worth nothing. A gate that
lets one of them pass proves nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Floats
from tipbench.recommender.policies.catalog import POLICIES, prior_of
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.simulation.experiment import Plan, Results
from tipbench.recommender.simulation.popularity import MOST_POPULAR
from tipbench.recommender.simulation.rollout import Arm, PriorKind, SimulatedPrior, arm, placebo_of, with_permuted
from tipbench.recommender.simulation.world import World
from tipbench.statistics.drift import t_quantile
from tipbench.statistics.paired import Difference, difference, holm_wins


@dataclass(frozen=True)
class Rules:
    """The thresholds, tuned on seeds that no gate and no measurement uses (docs/decisions/0002)."""

    least_gain: float = 0.01  # for the pooled lower bound over the incumbent and each baseline, in reward per decision
    least_wins: float = 0.6  # share of the personas that are not controls
    worst_loss: float = 0.05  # no persona's and no stage's lower bound may be below minus this
    least_prior_gain: float = 0.02  # for the pooled lower bound of a prior's gain over the same policy without one
    worst_prior_loss: float = 0.02  # the same bound of the prior that is to be served must not be below minus this
    level: float = 0.95


@dataclass(frozen=True)
class Size:
    """The size of the simulation. The gate's error rates are known for the default one."""

    seeds: int = 30
    steps: int = 200
    offered: int = 10


RULES = Rules()
DEFAULT_SIZE = Size()
FIRST_SEED = 10_000  # lower ones were used to tune the thresholds
BASELINES = ("category-mean", MOST_POPULAR)


# The arms of a gate.


@dataclass(frozen=True)
class Control:
    """An arm that must fail, and what it is."""

    arm: Arm
    about: str


@dataclass(frozen=True)
class Lineup:
    """The arms of a gate by their roles."""

    candidate: Arm
    incumbent: Arm
    baselines: tuple[Arm, ...]
    controls: tuple[Control, ...]
    without_prior: Arm | None = None  # the candidate without its prior; may be the incumbent
    as_served: Arm | None = None  # the candidate with the prior that is to be served, but for its tips

    @property
    def arms(self) -> tuple[Arm, ...]:
        """All arms, each once; the first two are the candidate and the incumbent."""
        of_prior = [one for one in (self.without_prior, self.as_served) if one and one != self.incumbent]
        controls = [control.arm for control in self.controls]
        return (self.candidate, self.incumbent, *self.baselines, *of_prior, *controls)

    @property
    def roles(self) -> dict[str, str]:
        """What each arm is there for, by name."""
        found = {self.candidate.name: "candidate", self.incumbent.name: "incumbent"}
        found |= {one.name: "baseline" for one in self.baselines}
        found |= {one.name: "comparison" for one in (self.without_prior, self.as_served) if one}
        found |= {control.arm.name: "must fail" for control in self.controls}
        return found | {self.incumbent.name: "incumbent"}


def lineup_of(candidate: Arm, incumbent: Arm, world: World) -> Lineup:
    """Return the arms to simulate.

    Policies with a prior are simulated with one that is fitted in this world. Two priors of one policy would be fitted
    alike, so an incumbent that differs by its prior alone is simulated without one: the new prior has to help at least.
    """
    has_prior, plain = prior_of(candidate.name) is not None, candidate.policy.name
    if prior_of(incumbent.name):
        same = incumbent.policy.name == plain
        incumbent = _simulated(incumbent, "none" if has_prior and same else "fitted")
    again = replace(incumbent, name=f"{incumbent.name}, again", luck="-again")
    controls = [Control(again, "the incumbent with other random numbers")]
    taken = (candidate.name, incumbent.name)
    baselines = tuple(arm(name, world=world) for name in BASELINES if name not in taken)
    if not has_prior:
        placebo = placebo_of(candidate, incumbent)
        controls += [Control(placebo, _PERMUTED)] if placebo else []
        return Lineup(candidate, incumbent, baselines, tuple(controls))
    assert isinstance(candidate.policy, Ucb)
    without_tips = candidate.policy.with_prior(replace(candidate.policy.prior, tips={}))
    without_prior = incumbent if incumbent.policy.name == plain else Arm(f"{plain}, no prior", POLICIES[plain])
    return Lineup(
        candidate=_simulated(candidate, "fitted"),
        incumbent=incumbent,
        baselines=baselines,
        controls=(*controls, *_prior_controls(candidate, incumbent)),
        without_prior=without_prior,
        as_served=Arm(f"{plain}, prior as served", without_tips),
    )


_PERMUTED = "the candidate with its new features permuted"


def _prior_controls(candidate: Arm, incumbent: Arm) -> list[Control]:
    """Return a control for each thing that a candidate with a prior brings along."""
    plain = candidate.policy.name

    def with_prior(kind: PriorKind, name: str) -> Arm:
        return replace(_simulated(candidate, kind), name=f"{plain}, {name}")

    shuffled = with_permuted(with_prior("shuffled", ""), ["judged"], f"{plain}, shuffled tips")
    controls = [
        Control(with_prior("permuted", "permuted prior"), "the candidate with a prior fitted to permuted rewards"),
        Control(with_prior("turned", "turned prior"), "the candidate with the sign of its prior turned"),
        Control(shuffled, "the candidate told the qualities of other tips"),
    ]
    placebo = placebo_of(_simulated(candidate, "shuffled"), incumbent)
    return [*([Control(placebo, _PERMUTED)] if placebo else []), *controls]


def _simulated(arm: Arm, kind: PriorKind) -> Arm:
    return replace(arm, simulated_prior=SimulatedPrior(kind, arm.policy.name))


# The verdict.


@dataclass(frozen=True)
class Condition:
    name: str
    passed: bool
    reason: str


@dataclass(frozen=True)
class PersonaGain:
    """One persona's gain with the candidate."""

    persona: str
    control: bool
    gain: Difference
    lower_bound: float  # at a level corrected for the number of personas
    wins: bool  # by Holm's adjustment


@dataclass(frozen=True)
class Comparison:
    """One arm compared with the incumbent, and with everything else that it has to beat."""

    arm: str
    pooled: Difference
    pooled_bound: float
    personas: tuple[PersonaGain, ...]
    conditions: tuple[Condition, ...]
    over_baselines: Mapping[str, Difference]

    @property
    def passed(self) -> bool:
        return all(condition.passed for condition in self.conditions)


@dataclass(frozen=True)
class Verdict:
    candidate: Comparison
    incumbent: str
    checks: tuple[Condition, ...]  # that arms which must fail do fail

    @property
    def passed(self) -> bool:
        return self.candidate.passed and all(check.passed for check in self.checks)

    @property
    def says(self) -> str:
        """The verdict in one sentence."""
        if not self.passed:
            first, *others = [one for one in (*self.candidate.conditions, *self.checks) if not one.passed]
            also = f"; nor is this met: {', '.join(one.name for one in others)}" if others else ""
            return f"{self.candidate.arm} may not go live, because {first.reason}{also}."
        over = self.candidate.over_baselines
        better = min(over, key=lambda name: over[name].mean, default="")
        beside = f" and {over[better].mean:.3f} more than the better baseline, {better}" if better else ""
        return (
            f"{self.candidate.arm} may go live: it earns {self.candidate.pooled.mean:.3f} more a decision than "
            f"{self.incumbent}{beside}; nobody is harmed."
        )


def judge(results: Results, lineup: Lineup, rules: Rules = RULES) -> Verdict:
    """Judge the candidate from results whose arms are those of the lineup."""
    candidate = compare(results, lineup.candidate, lineup, rules)
    if lineup.as_served:
        candidate = replace(candidate, conditions=(*candidate.conditions, _serves_well(results, lineup, rules)))
    checks = [_fails(compare(results, one.arm, lineup, rules), one.about) for one in lineup.controls]
    return Verdict(candidate, lineup.incumbent.name, tuple(checks))


def compare(results: Results, arm: Arm, lineup: Lineup, rules: Rules = RULES) -> Comparison:
    """Compare an arm with what a candidate has to beat."""
    gains = results.means(arm.name) - results.means(lineup.incumbent.name)
    pooled = difference(gains.mean(axis=0))
    by_persona = _persona_gains(gains, results.plan.world, rules)
    over = {one.name: _pooled_gain(results, arm, one) for one in lineup.baselines}
    conditions = [
        _gains("gains overall", pooled, "the incumbent", rules.least_gain, rules),
        _wins(by_persona, rules),
        _harms_nobody(by_persona, rules),
        _harms_no_stage(results, arm, lineup.incumbent, rules),
        *(_gains(f"beats {name}", gain, name, rules.least_gain, rules) for name, gain in over.items()),
    ]
    if lineup.without_prior:
        gain = _pooled_gain(results, arm, lineup.without_prior)
        conditions.append(
            _gains("its prior helps", gain, "the same policy without a prior", rules.least_prior_gain, rules)
        )
    bound = pooled.lower_bound(rules.level)
    return Comparison(arm.name, pooled, bound, by_persona, tuple(conditions), over)


def _pooled_gain(results: Results, arm: Arm, over: Arm) -> Difference:
    return difference((results.means(arm.name) - results.means(over.name)).mean(axis=0))


def _persona_gains(gains: Floats, world: World, rules: Rules) -> tuple[PersonaGain, ...]:
    """Return each persona's gain, from the gains by persona and seed."""
    differences = [difference(row) for row in gains]
    shared = 1 - (1 - rules.level) / len(world.personas)
    counted = [index for index, persona in enumerate(world.personas) if not persona.control]
    won = dict(zip(counted, holm_wins([differences[index] for index in counted], 1 - rules.level), strict=True))
    return tuple(
        PersonaGain(persona.name, persona.control, gain, gain.lower_bound(shared), won.get(index, False))
        for index, (persona, gain) in enumerate(zip(world.personas, differences, strict=True))
    )


def _gains(name: str, gain: Difference, over: str, least: float, rules: Rules) -> Condition:
    bound = gain.lower_bound(rules.level)
    return Condition(
        name,
        bound > least,
        f"its gain over {over} in reward per decision, over all personas, is {bound:+.4f} or more, with "
        f"{100 * rules.level:g} % confidence; more than {least:+.4f} is needed",
    )


def _wins(personas: Sequence[PersonaGain], rules: Rules) -> Condition:
    counted = [persona for persona in personas if not persona.control]
    won = [persona.persona for persona in counted if persona.wins]
    needed = wins_needed(len(counted), rules)
    names = f" ({', '.join(won)})" if won else ""
    return Condition(
        "wins with enough personas",
        len(won) >= needed,
        f"it is better for {len(won)} of {len(counted)} personas other than controls{names}; {needed} are needed",
    )


def wins_needed(personas: int, rules: Rules) -> int:
    """Return how many personas must win, rounded up: 5 of 7, because 4 are less than 60 %."""
    return max(1, math.ceil(rules.least_wins * personas))


def _harms_nobody(personas: Sequence[PersonaGain], rules: Rules) -> Condition:
    worst = min(personas, key=lambda persona: persona.lower_bound)
    return Condition(
        "harms nobody",
        worst.lower_bound > -rules.worst_loss,
        f"the persona with the lowest bound is {worst.persona}: {worst.lower_bound:+.4f}; "
        f"more than {-rules.worst_loss:+.4f} is needed",
    )


def _harms_no_stage(results: Results, arm: Arm, incumbent: Arm, rules: Rules) -> Condition:
    """Test every stage of a life, over all personas, with the confidence shared among the stages."""
    gains = (results.stages(arm.name) - results.stages(incumbent.name)).mean(axis=0)
    shared = 1 - (1 - rules.level) / gains.shape[1]
    bounds = [difference(of_stage).lower_bound(shared) for of_stage in gains.T]
    worst = int(np.argmin(bounds))
    return Condition(
        "harms at no stage",
        bounds[worst] > -rules.worst_loss,
        f"the stage of a life with the lowest bound is decisions {stage_name(results.plan, worst)}: "
        f"{bounds[worst]:+.4f}; more than {-rules.worst_loss:+.4f} is needed",
    )


def _serves_well(results: Results, lineup: Lineup, rules: Rules) -> Condition:
    assert lineup.as_served
    assert lineup.without_prior
    bound = _pooled_gain(results, lineup.as_served, lineup.without_prior).lower_bound(rules.level)
    return Condition(
        "its prior can be served",
        bound > -rules.worst_prior_loss,
        f"the prior that is to be served, without what it says of tips, which are others here, gains {bound:+.4f} or "
        f"more over no prior; more than {-rules.worst_prior_loss:+.4f} is needed",
    )


def _fails(comparison: Comparison, who: str) -> Condition:
    failed = [condition.name for condition in comparison.conditions if not condition.passed]
    does = f"fails as it should, on: {', '.join(failed)}" if failed else "passes, so this gate can't tell good from bad"
    return Condition(f"{comparison.arm} fails", bool(failed), f"{who} {does}")


def stage_name(plan: Plan, number: int) -> str:
    stage = plan.stages[number]
    return f"{stage.start + 1}–{stage.stop}"


def as_data(verdict: Verdict, results: Results, lineup: Lineup) -> dict[str, Any]:
    """Return the verdict as plain data for JSON."""
    return {
        "passed": verdict.passed,
        "says": verdict.says,
        "pooled": {"gain": verdict.candidate.pooled.mean, "lower_bound": verdict.candidate.pooled_bound},
        "conditions": [vars(condition) for condition in (*verdict.candidate.conditions, *verdict.checks)],
        "roles": lineup.roles,
        "scorecard": {
            "stages": [stage_name(results.plan, number) for number in range(len(results.plan.stages))],
            "arms": [_score(results, arm) for arm in lineup.arms],
        },
        "personas": [
            {
                "persona": persona.persona,
                "control": persona.control,
                "gain": persona.gain.mean,
                "lower_bound": persona.lower_bound,
                "wins": persona.wins,
            }
            for persona in verdict.candidate.personas
        ],
    }


def _score(results: Results, arm: Arm) -> dict[str, Any]:
    """Return an arm's reward per decision by stage of the life, each with half the width of its 95 % interval."""
    by_seed = results.stages(arm.name).mean(axis=0)
    margins = t_quantile(len(by_seed) - 1) * by_seed.std(axis=0, ddof=1) / math.sqrt(len(by_seed))
    return {"name": arm.name, "means": by_seed.mean(axis=0).tolist(), "margins": margins.tolist()}
